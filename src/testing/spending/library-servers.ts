import {
  type Clock,
  createAuthorizationServer,
  createResourceServer,
  type Handler,
  type IntervalCounting,
  type Pricing,
  type Store,
} from 'open-payments-server'
import { clientKeysOf, type TestClient, testClient } from '../client.js'
import { manualClock } from '../clock.js'
import { accountsOf, amountOf, receivedOf, type SpendingScene } from './scene.js'
import { type ClientServers, finishOrigin } from './servers-wallet.js'

export interface LibraryServerOptions {
  readonly scene: SpendingScene
  readonly intervalCounting: IntervalCounting
  readonly holdMs: number
}

/** The maximum number of actions of a history that run concurrently. */
const atOnceMax = 4

const hundredYearsMs = 100 * 366 * 86_400_000

/** Creates both servers of this library on a store, and a client instance that they know. */
export function libraryServers(
  store: Store,
  { scene, intervalCounting, holdMs }: LibraryServerOptions,
): ClientServers {
  const { asset } = scene
  const accounts = accountsOf(scene)
  const clock = manualClock()
  const client = spendingClient(clock)
  const origin = `https://wallet.example/${newName()}`
  const grantEndpoint = `${origin}/auth`
  const auth = createAuthorizationServer({
    store,
    clock,
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    clientKeys: clientKeysOf(client),
    policy: { waitMs: 0, accessTokenLifetimeMs: hundredYearsMs, intervalCounting },
  })
  const baseUrl = `${origin}/op`
  const resourceOptions = {
    store,
    clock,
    baseUrl,
    grantEndpoint,
    introspect: auth.introspect,
    walletAddresses: {
      find: async (url: string) => (accounts.includes(url) ? { url, ...asset } : undefined),
    },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: pricesOf(scene),
    policy: { outgoingPaymentHoldMs: holdMs },
  }
  const processes = Array.from({ length: atOnceMax }, () => createResourceServer(resourceOptions))
  const [resources = createResourceServer(resourceOptions)] = processes
  let payments = 0
  /** Creates each payment in the next process: one process combines concurrent payments, which then do not race. */
  const pay: Handler = (request) =>
    (processes[payments++ % processes.length] ?? resources).handle(request)
  const shared = { grantEndpoint, baseUrl, clock, client, auth, resources, pay }
  return { ...shared, resourceOwner: 'owner', tokensExpire: false }
}

/**
 * Creates the client instance that pays. Each has its own key, so that servers with the same URL do not recognize
 * requests of each other's clients as repeats.
 */
export function spendingClient(clock: Clock): TestClient {
  return testClient({ seed: newName(), kid: 'spending', walletAddress: finishOrigin, clock })
}

function pricesOf({ receivers }: SpendingScene): Pricing {
  return {
    async price({ receiver: url, debitAmount }) {
      const receiver = receivers.find((each) => each.url === url)
      if (receiver === undefined) return { ok: false, refusal: 'receiver_invalid' }
      if (debitAmount === undefined) return { ok: false, refusal: 'amount_missing' }
      const received = receivedOf(BigInt(debitAmount.value), receiver)
      if (received === 0n) return { ok: false, refusal: 'amount_too_small' }
      return { ok: true, debitAmount, receiveAmount: amountOf(received, receiver.asset) }
    },
  }
}

/** Gives the servers of each history their own names, although they may share one store. */
function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
