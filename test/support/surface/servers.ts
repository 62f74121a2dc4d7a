import {
  createWalletAddressServer,
  type Handler,
  memoryStore,
  type Pricing,
  type RecordChange,
  type Route,
  type Store,
} from '../../../src/index.js'
import { bankId, bankKey } from '../introspection.js'
import { createSpendingWorld, priceList } from '../spending.js'
import { alice, grantEndpoint, origin, resourceServer } from '../world.js'

/** How the host behaves; a test turns it for one request and back. */
export interface Switches {
  limited: boolean
  mayRequest: boolean
  requiresFinish: boolean
  /** Whether commits take effect, lose against others for ever, or meet a transaction that has failed. */
  store: 'works' | 'contended' | 'failed'
  /** What the wallet addresses throw, if anything. */
  accounts: Error | undefined
  price: Pricing['price']
}

export function switchesOff(): Switches {
  return {
    limited: false,
    mayRequest: true,
    requiresFinish: false,
    store: 'works',
    accounts: undefined,
    price: priceList.price,
  }
}

/** All servers, over one store, of a host that obeys the switches. */
export function createServers(switches: Switches) {
  const { store, kept } = watchedAndSwitched(switches)
  const rateLimit = () => (switches.limited ? { retryAfterMs: 2_000 } : undefined)
  const world = createSpendingWorld({
    store,
    auth: {
      resourceServers: [{ id: bankId, keys: [bankKey] }],
      rateLimit,
      policy: {
        mayRequest: () => switches.mayRequest,
        requiresFinish: () => switches.requiresFinish,
      },
    },
    resources: { rateLimit, pricing: { price: (request) => switches.price(request) } },
  })
  const { auth, resources, clock } = world
  const wallets = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServer,
    walletAddresses: {
      async find(url) {
        if (switches.accounts !== undefined) throw switches.accounts
        return url === alice ? { url, assetCode: 'USD', assetScale: 2 } : undefined
      },
    },
    rateLimit,
    clock,
    onRefusal: (report) => void world.refusals.push(report),
    onError: (error) => void world.errors.push(error),
  })
  const routes: readonly Route[] = [...auth.routes, ...resources.routes, ...wallets.routes]
  const handle: Handler = (request) =>
    /^\/(?:auth|op)\b/.test(request.url) ? world.handle(request) : wallets.handle(request)
  return { world, routes, handle, kept }
}

/** A memory store that obeys a switch, and keeps what every commit that took effect has changed. */
function watchedAndSwitched(switches: Switches): {
  readonly store: Store
  readonly kept: (readonly RecordChange[])[]
} {
  const store = memoryStore()
  const kept: (readonly RecordChange[])[] = []
  return {
    kept,
    store: {
      ...store,
      async commit(commit) {
        if (switches.store === 'contended') return false
        if (switches.store === 'failed') {
          throw Object.assign(new Error('it has failed'), { code: 'ERR_TRANSACTION_FAILED' })
        }
        const landed = await store.commit(commit)
        if (landed) kept.push(commit.changes)
        return landed
      },
    },
  }
}
