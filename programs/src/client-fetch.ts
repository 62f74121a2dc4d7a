import type { GuardedFetch } from 'open-payments-server'
import { BrokenResponse, bytesOf, type SendFetch } from './exchange.js'
import { ReachError } from './network.js'

/**
 * Lets `open-payments-client` send with the `fetch` of a program, which follows no redirect and reads at most 1 MiB of
 * a response. The error of a request without a response has the `ReachError` as its cause.
 */
export function clientFetch(send: SendFetch): GuardedFetch {
  return async (url, { method = 'GET', headers = {}, body, signal } = {}) => {
    try {
      const response = await send(url.href, {
        ...{ method, headers: { ...headers }, redirect: 'manual' },
        ...(body !== undefined && { body: body as Uint8Array<ArrayBuffer> }),
        ...(signal !== undefined && { signal }),
      })
      const { status, headers: fields } = response
      const read = await bytesOf(response, `the response to ${method} ${url}`)
      const contentType = fields.get('content-type') ?? ''
      return { status, contentType, body: read, headers: Object.fromEntries(fields) }
    } catch (error) {
      throw named(error)
    }
  }
}

/** Adds the code by which the client knows whether the request has arrived, and whether another may succeed. */
function named(error: unknown): unknown {
  const facts = factsOf(error)
  if (facts === undefined) return error
  return Object.assign(new Error((error as Error).message, { cause: error }), facts)
}

function factsOf(error: unknown) {
  if (error instanceof ReachError) {
    if (error.failure === 'private') return { code: 'ERR_FETCH_REFUSED', isSent: false }
    return { code: error.isUnsent ? 'ERR_HOST_UNREACHABLE' : 'ERR_NO_RESPONSE' }
  }
  const isUnreadable = error instanceof BrokenResponse && error.kind !== 'cut-off'
  return isUnreadable ? { code: 'ERR_FETCH_REFUSED', isSent: true } : undefined
}
