import { randomBytes, randomUUID } from 'node:crypto'
import type { HttpRequest } from 'open-payments-server/adapter'
import { hostileRequests } from '../../../test/support/hostile-requests.js'
import { bankId, bankKey } from '../../../test/support/introspection.js'
import { jwkOf, type KeyPair, keyFromText } from '../../../test/support/keys.js'
import { signedRequest } from '../../../test/support/sign.js'
import { bob, grantEndpoint, resourceServer } from '../fixtures.js'
import { shopCount, walletAddressOf } from './key-hosts.js'
import type { Send } from './sender.js'

const strangers = Array.from({ length: 50 }, (_, i) =>
  keyFromText(`stranger ${i}`, `stranger-${i}`),
)
const access = [{ type: 'incoming-payment', actions: ['create'], identifier: bob }]
const now = () => Math.floor(Date.now() / 1_000)

function post(url: string, key: KeyPair, body: object, token?: string): HttpRequest {
  return signedRequest({
    method: 'POST',
    url,
    key,
    created: now(),
    nonce: randomUUID(),
    body: JSON.stringify(body),
    ...(token !== undefined && { token }),
  })
}

const stranger = (count: number) => strangers[count % strangers.length] as KeyPair

const naming = (client: unknown, count: number) =>
  post(grantEndpoint, stranger(count), { client, access_token: { access } })

/** Hostile requests whose `created` is still valid, made anew each minute. */
function createHostile() {
  let made = 0
  let requests: readonly HttpRequest[] = []
  return (count: number): HttpRequest => {
    if (now() - made > 60) {
      made = now()
      requests = hostileRequests(made)
        .filter(({ server }) => server !== 'authAtOrigin')
        .flatMap(({ variants }) => variants)
    }
    return requests[count % requests.length] as HttpRequest
  }
}

/**
 * The attacks in turn, each by the number of attacks before it. Those that only read what a stranger sends are single
 * requests; an anonymous key has a grant, and creates a payment with each request.
 */
export function createAttacks(send: Send, captured: () => HttpRequest | undefined) {
  const hostile = createHostile()
  let anonymous: { token: string; key: KeyPair; left: number } | undefined

  async function anonymousPayment(count: number): Promise<HttpRequest> {
    if (anonymous === undefined || anonymous.left-- <= 0) {
      const key = stranger(count)
      const { text } = await send(naming({ jwk: jwkOf(key) }, count))
      anonymous = { token: JSON.parse(text).access_token.value, key, left: 100 }
    }
    const metadata = { a: 'x'.repeat(8_000) }
    const { key, token } = anonymous
    return post(`${resourceServer}/incoming-payments`, key, { walletAddress: bob, metadata }, token)
  }
  const garbageToken = () => ({
    access_token: `opa_${randomBytes(22).toString('base64url')}.${randomBytes(32).toString('base64url')}`,
    proof: 'httpsig',
    resource_server: bankId,
  })
  const introspect = `${grantEndpoint}/introspect`
  const attacks: Record<string, (count: number) => HttpRequest | Promise<HttpRequest>> = {
    'slow key host': (count) => naming(`https://slow${count % 5_000}.example`, count),
    'garbage key host': (count) => naming(`https://garbage${count % 5_000}.example`, count),
    'big key set': (count) => naming(`https://big${count % 5_000}.example`, count),
    'path at a client’s key host': (count) =>
      naming(`${walletAddressOf(count % shopCount)}/p${count}`, count),
    'hostile request of up to 64 KiB': hostile,
    'garbage token at introspection': (count) =>
      post(introspect, count % 2 === 0 ? bankKey : stranger(count), garbageToken()),
    replay: (count) => captured() ?? hostile(count),
    'payment by an anonymous key': anonymousPayment,
  }
  const list = Object.entries(attacks)
  let count = 0
  return {
    async attack(): Promise<{ name: string; status: number }> {
      const number = count++
      // In each round all kinds have a turn.
      const [name, make] = list[number % list.length] as (typeof list)[number]
      const { status } = await send(await make(Math.floor(number / list.length)))
      return { name, status }
    },
  }
}
