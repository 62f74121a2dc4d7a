import type { HttpRequest } from 'open-payments-server/adapter'
import { readMessage } from '../../../src/http/fields.js'
import { inspectSignatures } from '../../../src/protocol/http-signature/inspect.js'

const shownMax = 4_000

/**
 * Resolves to the signature base of a request, as a wallet computes it (RFC 9421 section 2.5). Resolves to `undefined`
 * if the request has no signature whose form and coverage are valid.
 *
 * @param origin the origin of the wallet.
 */
export async function signatureBaseOf(
  request: HttpRequest,
  origin: string,
): Promise<string | undefined> {
  const message = readMessage(request, origin, request.url)
  if (!message.ok) return undefined
  const anyAge = { ageMaxMs: Number.POSITIVE_INFINITY, skewMaxMs: Number.POSITIVE_INFINITY }
  const inspection = await inspectSignatures(message.value, Date.now(), anyAge)
  return inspection.ok ? inspection.value[0]?.bases()[0]?.slice(0, shownMax) : undefined
}
