import type { Clock, FetchedDocument, GuardedFetch, SignRequest } from 'open-payments-server'
import { parseJson } from '../../../src/protocol/json.js'
import { refusedBy } from './answers.js'
import { type Call, ended, waitFor } from './deadline.js'
import type { Answer, Outgoing } from './message.js'
import { outcomeUnknown, type Refused, refused } from './refusal.js'

export type Exchanged = { readonly ok: true; readonly answer: Answer } | Refused

/** Sends a request within a call. Resolves to a response with a status of success, or to a refusal. */
export type Exchange = (call: Call, request: Outgoing) => Promise<Exchanged>

export interface ExchangeOptions {
  readonly sign: SignRequest
  readonly fetch: GuardedFetch
  readonly clock: Clock
  readonly newNonce: () => string
}

/** As many values as 100 payments of a list have. */
const jsonValuesMax = 8_192
/** A custom `fetch` may have no limit of its own. */
const bodyBytesMax = 1024 * 1024
const signaturesMax = 3

export function exchangeWith(options: ExchangeOptions): Exchange {
  return async (call, request) => {
    for (let signatures = 1; ; signatures += 1) {
      const result = await exchangeOnce(options, call, request)
      // Something on the way has sent the request twice, and this is the answer to the second.
      const isUsed = !result.ok && result.refusal === 'signature_used'
      if (!isUsed || signatures === signaturesMax) return result
    }
  }
}

async function exchangeOnce(
  { sign, fetch, clock, newNonce }: ExchangeOptions,
  call: Call,
  request: Outgoing,
): Promise<Exchanged> {
  const { method, url, token, idempotencyKey, isSigned = true } = request
  if (!URL.canParse(url)) return refused('url_refused', `${url} is no absolute URL`)
  const body =
    request.body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(request.body))
  const headers = isSigned
    ? await sign({
        ...{ method, url, createdAt: clock.now(), nonce: newNonce() },
        ...(body !== undefined && { body }),
        ...(token !== undefined && { token }),
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      })
    : {}
  if (call.signal.aborted) return ended(call, `${method} ${url}`)
  try {
    // From here on the request counts as sent.
    const sending = fetch(new URL(url), {
      method,
      headers: { accept: 'application/json', ...headers },
      signal: call.signal,
      ...(body !== undefined && { body }),
    })
    return read(request, await waitFor(call, sending))
  } catch (error) {
    return failed(call, request, error)
  }
}

function read(request: Outgoing, document: FetchedDocument): Exchanged {
  const { status, headers = {}, body: bytes } = document
  if (bytes.length > bodyBytesMax) return invalid(request, 'with too many bytes')
  const answer = { status, headers, body: parseJson(bytes, jsonValuesMax) }
  return status >= 200 && status < 300 ? { ok: true, answer } : refusedBy(request, answer)
}

/** The refusal of a successful response that is not what was asked for. What the request creates may exist. */
export function invalid({ method, url, creates }: Outgoing, problem: string): Refused {
  const reason = `${method} ${url} responded ${problem}`
  return creates === undefined
    ? refused('response_invalid', reason)
    : outcomeUnknown(creates, reason)
}

/** The refusal of a request without a response. Only the guard knows that nothing was sent. */
function failed(call: Call, request: Outgoing, error: unknown): Refused {
  const { code, isSent, message } = Object(error) as Partial<Record<string, unknown>>
  const { method, url, creates } = request
  const reason = `${method} ${url}: ${String(message)}`
  const isRefused = code === 'ERR_FETCH_REFUSED'
  const isUnreachable = code === 'ERR_HOST_UNREACHABLE'
  const isUnsent = isUnreachable || (isRefused && isSent === false)
  if (creates !== undefined && !isUnsent) return outcomeUnknown(creates, reason)
  if (call.signal.aborted) return ended(call, `the response to ${method} ${url}`)
  if (isRefused) return refused(isSent === true ? 'response_invalid' : 'url_refused', reason)
  return refused(isUnreachable ? 'unreachable' : 'no_response', reason)
}
