import type { HttpRequest } from '../../../src/entry-adapter.js'
import {
  type DocumentFetch,
  memoryStore,
  type Pricing,
  remoteClientKeys,
  type Store,
} from '../../../src/index.js'
import { manualClock } from '../clock.js'
import { hostCall } from '../host-call.js'
import { jwkOf, testKey } from '../keys.js'
import { signedRequest } from '../sign.js'
import { priceList } from '../spending.js'
import { type Ask, askFor } from '../surface/asks.js'
import { createHeld } from '../surface/held.js'
import { createServers, switchesOff } from '../surface/servers.js'
import { unsignedRequest } from '../surface.js'
import type { Passage } from './check.js'

export type Stage = Awaited<ReturnType<typeof createStage>>

/**
 * All servers, which live as long as the stage. `renew` gives them a new store and the shop new grants and payments, so
 * that each batch of inputs meets requests that are valid, and what it stores does not count as memory of the servers.
 *
 * @param newStore is called for each batch; a store on a database may be the same each time.
 */
export async function createStage(newStore: () => Store | Promise<Store> = memoryStore) {
  let inner = await newStore()
  let passage: Passage | undefined
  const store = watchedStore(
    () => inner,
    () => passage,
  )
  const clock = manualClock()
  const { world, routes, handle, kept } = createServers(
    { ...switchesOff(), price },
    {
      store,
      clock,
      auth: { clientKeys: remoteClientKeys({ clock, fetch: async (url) => keySetAt(url) }) },
      hooks: {
        onRefusal(report) {
          if (passage !== undefined) passage.refusal = report
        },
        onError: (error) => void passage?.errors.push(error),
      },
    },
  )
  const shop = world.client()
  let held = await createHeld(world, shop)
  let nonces = 0

  return {
    world,
    shop,
    routes,
    handle,
    store,
    clock,
    held: () => held,
    async renew() {
      while ((await world.auth.sweep()).more);
      while ((await world.resources.sweep()).more);
      inner = await newStore()
      kept.length = 0
      held = await createHeld(world, shop)
    },
    /** Keeps what happens from now on in a passage; inputs are therefore served one after another. */
    keepIn(next?: Passage) {
      passage = next
    },
    asks: () =>
      routes.map(({ operation }) => ({ operation, asked: askFor(shop, held, operation) })),
    sign(asked: Ask, created = Math.floor(clock.now() / 1_000)): HttpRequest {
      if (asked.key === undefined) return unsignedRequest(asked)
      const { key, method, url, token, body } = asked
      const content = { ...(token !== undefined && { token }), ...(body !== undefined && { body }) }
      return signedRequest({ key, method, url, created, nonce: `input-${nonces++}`, ...content })
    },
  }
}

/** A store that keeps for each request what its commits change, and that fails for requests that want this. */
function watchedStore(inner: () => Store, current: () => Passage | undefined): Store {
  const call = <Result>(operate: (store: Store) => Promise<Result>): Promise<Result> => {
    const passage = current()
    if (!passage?.storeFails) return operate(inner())
    passage.storeFailed = true
    return Promise.reject(Object.assign(new Error('lost'), { code: 'ERR_TRANSACTION_FAILED' }))
  }
  return {
    load: (keys) => call((store) => store.load(keys)),
    list: (query) => call((store) => store.list(query)),
    due: (...query) => call((store) => store.due(...query)),
    remove: (records) => call((store) => store.remove(records)),
    async commit(commit) {
      const landed = await call((store) => store.commit(commit))
      if (landed) current()?.written.push(...commit.changes)
      return landed
    },
  }
}

/** The price list of the tests is for accounts in dollars. */
const price: Pricing['price'] = async (request) =>
  request.account.assetCode === 'USD'
    ? priceList.price(request, hostCall)
    : { ok: false, refusal: 'receiver_invalid' }

type Document = Awaited<ReturnType<DocumentFetch>>

const answer = (status: number, text: string, contentType = 'application/json'): Document => {
  return { status, contentType, body: Buffer.from(text) }
}
const shopKey = jwkOf(testKey('shop'))
const shopSet = answer(200, JSON.stringify({ keys: [shopKey] }))
const gone = answer(404, '')
const oddSets: readonly Document[] = [
  answer(200, '['.repeat(30_000)),
  answer(200, `{"keys":[${'[],'.repeat(300)}0]}`),
  answer(200, JSON.stringify({ keys: Array.from({ length: 30 }, () => shopKey) })),
  answer(302, ''),
  answer(410, 'gone', 'text/plain'),
]

/** The hosts of clients: the shop's, one that is down, and others that answer with anything. */
function keySetAt({ hostname, pathname }: URL): Document {
  if (hostname === 'shop.example') return pathname === '/jwks.json' ? shopSet : gone
  if (hostname === 'broken.example') throw new Error('connection refused')
  return oddSets[hostname.length % oddSets.length] ?? gone
}
