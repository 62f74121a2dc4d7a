import type { KeyObject } from 'node:crypto'
import { createHeaders } from '@interledger/http-signature-utils'
import { type AuthenticatedClient, createAuthenticatedClient } from '@interledger/open-payments'
import type { GuardedFetch } from 'open-payments-server'

/** The wallet address of a client, and its signing key. */
export interface ClientIdentity {
  readonly walletAddress: string
  readonly keyId: string
  readonly privateKey: KeyObject
}

/**
 * Returns the published client with every signed request sent by `fetch`. The client alone follows redirects,
 * connects to private addresses, reads responses of any size, and waits as long as `Retry-After` says.
 *
 * Requests without a signature do not pass through `fetch`, because the client has no hook for them. The
 * result can therefore request grants and read incoming payments with a token, but it cannot read public
 * documents.
 */
export async function guardedClient(
  { walletAddress, ...key }: ClientIdentity,
  fetch: GuardedFetch,
): Promise<Pick<AuthenticatedClient, 'grant'> & { readonly incomingPayment: SignedReads }> {
  const send = (request: Request) => sendSigned(request, key, fetch)
  const { grant, incomingPayment } = await createAuthenticatedClient({
    walletAddressUrl: walletAddress,
    // The client passes this hook to its HTTP library, ky, which uses a returned Response instead of sending
    // the request. The client's types only allow a Request.
    authenticatedRequestInterceptor: send as unknown as (request: Request) => Promise<Request>,
    validateResponses: true,
    logLevel: 'silent',
  })
  return { grant, incomingPayment }
}

type SignedReads = Pick<AuthenticatedClient['incomingPayment'], 'get'>

async function sendSigned(
  request: Request,
  { keyId, privateKey }: Pick<ClientIdentity, 'keyId' | 'privateKey'>,
  fetch: GuardedFetch,
): Promise<Response> {
  const { method, url } = request
  const headers = new Headers(request.headers)
  const text = await request.text()
  const body = text === '' ? {} : { body: text }
  const message = { method, url, headers: Object.fromEntries(headers), ...body }
  const signed = await createHeaders({ request: message, privateKey, keyId })
  for (const [name, value] of Object.entries(signed)) headers.set(name, value)

  const answer = await fetch(new URL(url), {
    method,
    headers: Object.fromEntries(headers),
    ...(text !== '' && { body: new TextEncoder().encode(text) }),
  })
  const { status, contentType } = answer
  const content = answer.body.length === 0 || isBodiless(status) ? null : answer.body
  // No other header is passed on: ky would wait for as long as Retry-After says.
  return new Response(content && Buffer.from(content), {
    status,
    headers: { 'content-type': contentType },
  })
}

function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}
