import {
  createAuthorizationServer,
  createResourceServer,
  type Handler,
  type IntervalCounting,
  type Pricing,
  type Store,
} from 'open-payments-server'
import { clientKeysOf, testClient } from '../client.js'
import { manualClock } from '../clock.js'
import { accountsOf, amountOf, receivedOf, type SpendingScene } from './scene.js'

export interface LibraryWalletOptions {
  readonly scene: SpendingScene
  readonly intervalCounting: IntervalCounting
  readonly holdMs: number
}

export type LibraryServers = ReturnType<typeof libraryServers>

/** The maximum number of actions of a history that run concurrently. */
const atOnceMax = 4

const hundredYearsMs = 100 * 366 * 86_400_000

/** Creates both servers of this library on a store, and a client instance that they know. */
export function libraryServers(
  store: Store,
  { scene, intervalCounting, holdMs }: LibraryWalletOptions,
) {
  const { asset } = scene
  const accounts = accountsOf(scene)
  const clock = manualClock()
  const client = testClient({
    seed: 'spending',
    kid: 'spending',
    walletAddress: 'https://shop.example',
    clock,
  })
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
  const resourceOptions = {
    store,
    clock,
    baseUrl: `${origin}/op`,
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
  return { origin, clock, client, auth, resources, pay }
}

function pricesOf({ receivers }: SpendingScene): Pricing {
  return {
    async price({ receiver: url, debitAmount }) {
      const receiver = receivers.find((each) => each.url === url)
      if (receiver === undefined) return { refusal: 'receiver_invalid' }
      if (debitAmount === undefined) return { refusal: 'amount_missing' }
      const received = receivedOf(BigInt(debitAmount.value), receiver)
      if (received === 0n) return { refusal: 'amount_too_small' }
      return { debitAmount, receiveAmount: amountOf(received, receiver.asset) }
    },
  }
}

/** Gives the servers of each history their own names, although they may share one store. */
function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
