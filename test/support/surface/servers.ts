import type { RecordChange } from '../../../src/entry-adapter.js'
import {
  type AuthorizationServerOptions,
  type CompatibilityOptions,
  createWalletAddressServer,
  type Handler,
  type MayPayAnswer,
  type MayReceiveAnswer,
  memoryStore,
  type Pricing,
  type ServerHooks,
  type ServerRoute,
  type Store,
} from '../../../src/index.js'
import type { ManualClock } from '../clock.js'
import { bankId, bankKey } from '../introspection.js'
import { createSpendingWorld, priceList, usd } from '../spending.js'
import { alice, grantEndpoint, origin, resourceServer } from '../world.js'

/** How the host behaves. A test sets a switch for one request, and then resets it. */
export interface Switches {
  limited: boolean
  mayRequest: boolean
  requiresFinish: boolean
  /** Whether the host allows outgoing payments, and whether the account can pay them. */
  mayPay: boolean
  funded: boolean
  /** Whether outgoing payments need no confirmation of their owner, who has a minute otherwise. */
  unconfirmed: boolean
  /** Whether the owner limits all payments of the account to nearly nothing. */
  capped: boolean
  /** Whether the host allows incoming payments, and of any amount. */
  mayReceive: boolean
  unbounded: boolean
  /** Whether commits take effect, always lose to other writers, or fail with the transaction of the host. */
  store: 'works' | 'contended' | 'failed'
  /** The error that the lookup of a wallet address throws, if any. */
  accounts: Error | undefined
  price: Pricing['price']
}

export function switchesOff(): Switches {
  return {
    limited: false,
    mayRequest: true,
    requiresFinish: false,
    mayPay: true,
    funded: true,
    unconfirmed: true,
    capped: false,
    mayReceive: true,
    unbounded: true,
    store: 'works',
    accounts: undefined,
    price: priceList.price,
  }
}

/** What a test replaces in the servers. */
export interface ServersOptions {
  readonly store?: Store
  readonly clock?: ManualClock
  readonly auth?: Partial<AuthorizationServerOptions>
  readonly hooks?: ServerHooks
  readonly compatibility?: Pick<CompatibilityOptions, 'repeatedRequests'>
}

/** Creates all servers over one store, for a host that follows the switches. */
export function createServers(switches: Switches, options: ServersOptions = {}) {
  const { hooks = {}, compatibility = {} } = options
  const { store, kept } = watchedAndSwitched(switches, options.store)
  const rateLimit = () => (switches.limited ? { retryAfterMs: 2_000 } : undefined)
  const world = createSpendingWorld({
    store,
    ...(options.clock && { clock: options.clock }),
    auth: {
      resourceServers: [{ id: bankId, keys: [bankKey] }],
      rateLimit,
      policy: {
        mayRequest: () => ({ ok: switches.mayRequest }),
        requiresFinish: () => switches.requiresFinish,
      },
      ...hooks,
      compatibility,
      ...options.auth,
    },
    resources: {
      ...hooks,
      compatibility,
      rateLimit,
      pricing: { price: (...asked) => switches.price(...asked) },
      policy: {
        mayPay: ({ outgoingPaymentId }) =>
          permission(switches, outgoingPaymentId, world.clock.now()),
        mayReceive: () => acceptance(switches),
        accountLimits: () => (switches.capped ? [{ debitAmount: usd(1) }] : []),
      },
    },
  })
  const { auth, resources, clock } = world
  const wallets = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServerUrl: resourceServer,
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
    ...hooks,
  })
  const routes: readonly ServerRoute[] = [...auth.routes, ...resources.routes, ...wallets.routes]
  const handle: Handler = (request) =>
    /^\/(?:auth|op)\b/.test(request.url) ? world.handle(request) : wallets.handle(request)
  return { world, routes, handle, kept }
}

function permission(
  { mayPay, funded, unconfirmed }: Switches,
  paymentId: string,
  now: number,
): MayPayAnswer {
  if (!mayPay) return { ok: false, refusal: 'payment_not_allowed' }
  if (!funded) return { ok: false, refusal: 'funds_insufficient' }
  if (unconfirmed) return { ok: true }
  const url = `${origin}/confirm/${paymentId}`
  return { ok: false, refusal: 'confirmation_required', url, until: now + 60_000 }
}

function acceptance({ mayReceive, unbounded }: Switches): MayReceiveAnswer {
  if (!unbounded) return { ok: false, refusal: 'amount_too_large' }
  return mayReceive ? { ok: true } : { ok: false, refusal: 'payment_not_allowed' }
}

/** Wraps a store so that it follows a switch and keeps the changes of every commit that took effect. */
function watchedAndSwitched(
  switches: Switches,
  store = memoryStore(),
): {
  readonly store: Store
  readonly kept: (readonly RecordChange[])[]
} {
  const kept: (readonly RecordChange[])[] = []
  return {
    kept,
    store: {
      ...store,
      async commit(commit) {
        if (switches.store === 'contended') return false
        if (switches.store === 'failed') {
          throw Object.assign(new Error('the transaction has failed'), {
            code: 'ERR_TRANSACTION_FAILED',
          })
        }
        const landed = await store.commit(commit)
        if (landed) kept.push(commit.changes)
        return landed
      },
    },
  }
}
