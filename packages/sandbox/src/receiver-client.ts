import { randomUUID } from 'node:crypto'
import type { GuardedFetch } from 'open-payments-server'
import type { ReceiverClient } from '../../../examples/wallet/foreign-receivers.js'
import type { ClientIdentity } from '../../../examples/wallet/guarded-client.js'
import { type SignOptions, signedRequest } from '../../testing/src/sign.js'

/** Reads receivers in other wallets like the published client, which is too large for a program that `npx` starts. */
export function receiverClient(operator: ClientIdentity, fetch: GuardedFetch): ReceiverClient {
  const client = operator.walletAddress
  async function send(message: Pick<SignOptions, 'method' | 'url' | 'body' | 'token'>) {
    const created = Math.floor(Date.now() / 1000)
    // Read anew for each request, because the key can be rotated.
    const { keyId: kid, privateKey } = operator
    const request = { ...message, key: { kid, privateKey }, created, nonce: randomUUID() }
    const { method, headers, body } = signedRequest(request)
    const response = await fetch(new URL(message.url), {
      method,
      headers: { accept: 'application/json', ...Object.fromEntries(headers) },
      ...(body.length > 0 && { body }),
    })
    const { status } = response
    if (status === 200) return JSON.parse(new TextDecoder().decode(response.body))
    throw Object.assign(new Error(`${method} ${message.url}: status ${status}`), { status })
  }
  return {
    grant: {
      request: ({ url }, asked) =>
        send({ method: 'POST', url, body: JSON.stringify({ ...asked, client }) }),
    },
    incomingPayment: {
      get: ({ url, accessToken }) => send({ method: 'GET', url, token: accessToken }),
    },
  }
}
