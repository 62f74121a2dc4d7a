import {
  type AuthorizationServer,
  type ClientKeys,
  createAuthorizationServer,
  createResourceServer,
  type MayPay,
  type PaymentMethods,
  type Pricing,
  type ResourceServer,
  type Store,
  type WalletAddress,
} from '../../src/index.js'
import type { Introspect } from '../../src/ports/host.js'
import { seededRandom } from '../../test/support/random.js'
import { usd } from '../../test/support/spending.js'
import { alice, bob, grantEndpoint, origin, resourceServer } from '../../test/support/world.js'
import type { Reachable } from './network.js'
import { hourlyCap, lifetimes } from './rules.js'
import type { Process, Scheduler } from './scheduler.js'

/** One process of the wallet: an authorization server and a resource server. */
export interface ServerProcess extends Reachable {
  readonly auth: AuthorizationServer
  readonly resources: ResourceServer
}

/** A mistake in the code of a wallet, planted to show that the laws find it. */
export interface WalletMistake {
  readonly store?: (store: Store) => Store
  readonly introspect?: (introspect: Introspect, now: () => number) => Introspect
  readonly resources?: (resources: ResourceServer) => ResourceServer
}

export interface ServerPorts {
  readonly store: Store
  readonly clientKeys: ClientKeys
  readonly pricing: Pricing
  readonly mayPay: MayPay
  /** Introspects at another server; absent if the grants are in the store of the resource server. */
  readonly remote?: Introspect | undefined
  readonly keyBinding: 'published' | 'bound'
  readonly onError?: (error: unknown) => void
  readonly mistake?: WalletMistake
}

const accounts: readonly WalletAddress[] = [alice, bob].map((url) => ({
  url,
  assetCode: 'USD',
  assetScale: 2,
}))

const walletAddresses = { find: async (url: string) => accounts.find((each) => each.url === url) }

const paymentMethods: PaymentMethods = {
  detailsOf: async ({ paymentId }) => [
    { type: 'ilp', ilpAddress: `test.wallet.${paymentId}`, sharedSecret: 'c2hhcmVkLXNlY3JldA' },
  ],
  paymentIdOf: (address) => address.slice('test.wallet.'.length),
}

/** Starts a process. `seed` determines its ids and secrets. */
export function startServer(
  scheduler: Scheduler,
  process: Process,
  seed: string,
  { mistake = {}, onError = () => undefined, keyBinding, ...ports }: ServerPorts,
): ServerProcess {
  const clock = { now: () => scheduler.readClock() + process.skewMs }
  const shared = {
    store: mistake.store?.(ports.store) ?? ports.store,
    clock,
    random: seededRandom(seed),
    telemetry: scheduler.telemetry,
    recordsEvents: true,
    onError,
  }
  const auth = createAuthorizationServer({
    ...shared,
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    clientKeys: ports.clientKeys,
    policy: {
      keyBinding,
      grants: { retentionMs: lifetimes.retentionMs, unusedLifetimeMs: lifetimes.retentionMs },
    },
  })
  const { remote: asked = auth.introspect } = ports
  const introspect = mistake.introspect?.(asked, clock.now) ?? asked
  const grants = ports.remote ? { grantEndpoint, introspect } : { ...auth, introspect }
  const correct = createResourceServer({
    ...shared,
    baseUrl: resourceServer,
    grants,
    walletAddresses,
    paymentMethods,
    pricing: ports.pricing,
    policy: {
      incomingPayments: { retentionMs: lifetimes.retentionMs },
      outgoingPayments: {
        holdMs: lifetimes.holdMs,
        retentionMs: lifetimes.retentionMs,
        decideMs: lifetimes.decideMs,
      },
      mayPay: ports.mayPay,
      accountLimits: () => [
        { debitAmount: usd(hourlyCap), interval: 'R/2026-11-21T12:00:00Z/PT1H' },
      ],
    },
  })
  const resources = mistake.resources?.(correct) ?? correct
  return {
    process,
    auth,
    resources,
    handle: (request) =>
      request.url.startsWith('/auth') ? auth.handle(request) : resources.handle(request),
  }
}
