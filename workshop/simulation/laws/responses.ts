import type { HttpRequest, HttpResponse } from '../../../src/entry-adapter.js'
import { headerOf } from '../../../test/support/sign.js'
import type { Climate } from '../connection.js'
import { count, type Journal } from '../journal.js'

/** After this time, the library may give up on records that others keep changing. */
const contentionMs = 3_000

/** How long a signature is accepted, by the clock of the server. */
const signatureAgeMaxMs = 300_000

/**
 * A server fails only if a store or port has failed since the request arrived, after it has tried for 3 s, or because
 * the signature expired in the meantime.
 */
export function refusesOnlyForAReason(
  journal: Journal,
  climate: Climate,
  now: number,
  request: HttpRequest,
  { status, body }: HttpResponse,
  faultsBefore: number,
  arrivedAt: number,
): void {
  count(journal, `${status}`)
  if (status < 500 || climate.faults > faultsBefore || now - arrivedAt >= contentionMs) return
  const expiresAt = createdAt(request) + signatureAgeMaxMs
  const { skewMaxMs } = climate.weather
  if (status === 503 && arrivedAt - skewMaxMs <= expiresAt && expiresAt <= now + skewMaxMs) return
  const { method, url } = request
  journal.breaches.push(`${method} ${url} was answered with ${status} without a fault: ${body}`)
}

function createdAt(request: HttpRequest): number {
  const [, seconds] = /;created=(\d+)/.exec(headerOf(request, 'signature-input') ?? '') ?? []
  return Number(seconds) * 1_000
}
