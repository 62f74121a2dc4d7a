import type { ServerOperation } from '../../../src/index.js'
import { bankId, bankKey } from '../introspection.js'
import type { TestKey } from '../keys.js'
import { shopReceiver, usd } from '../spending.js'
import {
  alice,
  bob,
  grantEndpoint,
  incomingAccess,
  resourceServer,
  type TestClient,
} from '../world.js'
import type { Held } from './held.js'

/** A request before it is signed. */
export interface Ask {
  readonly method: string
  readonly url: string
  readonly token?: string | undefined
  /** JSON text. */
  readonly body?: string | undefined
  /** The key that signs; absent if the operation needs no signature. */
  readonly key?: TestKey
}

type Asks = Readonly<Record<ServerOperation, () => Ask>>

/** Returns a request that succeeds with its own token, or the same request with the token `given`. */
export function askFor(
  shop: TestClient,
  held: Held,
  operation: ServerOperation,
  given?: string,
): Ask {
  const asks: Asks = {
    ...atAuthorizationServer(shop, held, given),
    ...atResourceServer(shop, held, given ?? held.token.value),
    getWalletAddress: () => ({ method: 'GET', url: alice }),
    getWalletAddressKeys: () => ({ method: 'GET', url: `${alice}/jwks.json` }),
    preflight: () => ({ method: 'OPTIONS', url: alice }),
  }
  return asks[operation]()
}

function post(key: TestKey, url: string, token: string | undefined, body?: object): Ask {
  const content = body === undefined ? {} : { body: JSON.stringify(body) }
  return { method: 'POST', url, key, token, ...content }
}

function atAuthorizationServer({ key, client }: TestClient, held: Held, given?: string) {
  const { rotating, revoking, continuing, cancelling, token } = held
  const [next, cancel] = [continuing.body.continue, cancelling.body.continue]
  return {
    requestGrant: () =>
      post(key, grantEndpoint, given, { client, access_token: { access: [incomingAccess] } }),
    discover: () => ({ method: 'OPTIONS', url: grantEndpoint }),
    continueGrant: () =>
      post(key, next.uri, given ?? next.access_token.value, {
        interact_ref: continuing.interactRef,
      }),
    cancelGrant: () => ({
      ...post(key, cancel.uri, given ?? cancel.access_token.value),
      method: 'DELETE',
    }),
    rotateToken: () => post(key, rotating.manage, given ?? rotating.value, {}),
    revokeToken: () => ({
      ...post(key, revoking.manage, given ?? revoking.value),
      method: 'DELETE',
    }),
    introspectToken: () =>
      post(bankKey, `${grantEndpoint}/introspect`, undefined, {
        access_token: given ?? token.value,
        proof: 'httpsig',
        resource_server: bankId,
      }),
  } satisfies Partial<Asks>
}

function atResourceServer({ key }: TestClient, held: Held, token: string) {
  const create = (path: string, body: object) => post(key, resourceServer + path, token, body)
  const get = (url: string): Ask => ({ method: 'GET', url, key, token })
  const list = (path: string, walletAddress: string) =>
    get(`${resourceServer}${path}?wallet-address=${encodeURIComponent(walletAddress)}`)
  const price = { walletAddress: alice, receiver: shopReceiver, method: 'ilp' }
  const direct = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(100) }
  return {
    createIncomingPayment: () => create('/incoming-payments', { walletAddress: bob }),
    listIncomingPayments: () => list('/incoming-payments', bob),
    getIncomingPayment: () => get(held.incoming),
    completeIncomingPayment: () => post(key, `${held.incoming}/complete`, token, {}),
    createQuote: () => create('/quotes', price),
    getQuote: () => get(held.quote),
    createOutgoingPayment: () => create('/outgoing-payments', direct),
    listOutgoingPayments: () => list('/outgoing-payments', alice),
    getOutgoingPayment: () => get(held.outgoing),
    getOutgoingPaymentGrant: () => get(`${resourceServer}/outgoing-payment-grant`),
  } satisfies Partial<Asks>
}
