import type { HttpRequest, HttpResponse } from '../../../src/index.js'
import type { Climate } from '../connection.js'
import { count, type Journal } from '../journal.js'

/** After this time, the library may give up on records that others keep changing. */
const contentionMs = 3_000

/** A server fails only if a store or port has failed since the request arrived, or after it has tried for 3 s. */
export function refusesOnlyForAReason(
  journal: Journal,
  climate: Climate,
  now: number,
  { method, url }: HttpRequest,
  { status, body }: HttpResponse,
  faultsBefore: number,
  arrivedAt: number,
): void {
  count(journal, `${status}`)
  if (status < 500 || climate.faults > faultsBefore || now - arrivedAt >= contentionMs) return
  journal.breaches.push(`${method} ${url} was answered with ${status} without a fault: ${body}`)
}
