import { permits } from '../../src/core/access.js'
import {
  type AccessItem,
  memoryStore,
  type Pricing,
  type Store,
  type WalletAddress,
} from '../../src/index.js'
import { accessTokenClass, formatCredential, namespaceOf } from '../../src/protocol/credential.js'
import {
  createPaymentCreation,
  type PaymentInput,
} from '../../src/service/create-outgoing-payment.js'
import { createGrants } from '../../src/service/grant.js'
import { createIntrospect, introspected } from '../../src/service/introspection.js'
import { createOutgoingPayments } from '../../src/service/outgoing-payment.js'
import { createQuotes } from '../../src/service/quote.js'
import type { Proof } from '../../src/service/replay.js'
import { answered } from '../../src/service/write.js'
import { boundedStore } from './bounded-store.js'
import { contextWithRunner, guardedCall, unguardedCall } from './calls.js'
import { type ManualClock, manualClock } from './clock.js'
import { publishedKeys, testKey } from './keys.js'
import { patient } from './outbox.js'
import { seededRandom } from './random.js'
import { priceList } from './spending.js'
import { alice, bob } from './world.js'

const day = 86_400_000

/**
 * All durations differ, so that a test notices when the code uses the wrong one. Payments are kept longer than the
 * period in which the histories of the testing kit repeat requests.
 */
export const spendingPolicy = {
  payments: { holdMs: day, retentionMs: 40 * day },
  quotes: { lifetimeMs: 300_000, retentionMs: day },
  budgets: { retentionMs: 41 * day },
}

export const tokenLifetimeMs = 30 * day

const grantPolicy = {
  accessTokenLifetimeMs: tokenLifetimeMs,
  interactionLifetimeMs: 600_000,
  waitMs: 5_000,
  retryMs: 60_000,
  unusedLifetimeMs: 100 * 366 * day,
  retentionMs: day,
  intervalCounting: 'occurrences',
} as const

export interface SpendingSetup {
  readonly store?: Store
  readonly clock?: ManualClock
  /** Each process needs its own seed. */
  readonly seed?: string
  readonly sleep?: (ms: number) => Promise<unknown>
  readonly pricing?: Pricing
  readonly recordsEvents?: boolean
  /** Creates concurrent payments under one grant in one commit, as the servers do. Default false. */
  readonly combines?: boolean
}

/** A grant to pay, and its current token. */
export interface Payer {
  readonly client: string
  readonly grantId: string
  token: { readonly secret: string; readonly manage: string }
}

export interface PayOptions {
  readonly idempotencyKey?: string
  /** The signature of the request, if it must count only once. */
  readonly proof?: Proof
}

export type SpendingServices = ReturnType<typeof spendingServices>

/** Creates the services of one process that makes payments, without HTTP and signatures. */
export function spendingServices(options: SpendingSetup = {}) {
  const { store = memoryStore(), clock = manualClock(), seed = 'seed', sleep } = options
  const { recordsEvents = true } = options
  let slept = 0
  const unrun = {
    store: boundedStore(store),
    givenStore: store,
    clock,
    random: seededRandom(seed),
    pacing: {
      elapsedMs: () => slept,
      async sleep(ms: number, signal?: AbortSignal) {
        if (signal !== undefined) return patient.sleep(ms, signal)
        slept += ms + 1
        await sleep?.(ms)
      },
    },
    namespace: () => namespace,
    grantNamespace: () => namespace,
    signatureRules: { ageMaxMs: 300_000, skewMaxMs: 60_000 },
    serverUrl: 'https://wallet.example/op',
    recordsEvents: () => recordsEvents,
    storeTimeoutMs: 3_000,
  }
  const context = contextWithRunner(unrun, { sharesCommits: options.combines ?? false })
  const accounts: WalletAddress[] = [alice, bob].map((url) => ({
    url,
    assetCode: 'USD',
    assetScale: 2,
  }))
  const walletAddresses = { find: async (url: string) => accounts.find((each) => each.url === url) }
  const grants = createGrants(context, grantPolicy)
  const introspect = createIntrospect(context, grants, clientKeys, grantPolicy)
  const pricing = options.pricing ?? priceList
  const quotes = createQuotes(context, { walletAddresses, pricing }, spendingPolicy.quotes)
  const payments = createOutgoingPayments(context, spendingPolicy)
  const creating = { guardsGrants: true, walletAddresses, quotes }
  const limits = { ...spendingPolicy.payments, ...spendingPolicy.budgets }
  const create = createPaymentCreation(context, creating, limits)

  async function payer(
    access: readonly AccessItem[],
    name: keyof typeof keys = 'shop',
  ): Promise<Payer> {
    const { kid, thumbprint } = keys[name]
    const client = { walletAddress: `https://${name}.example`, kid, thumbprint }
    const asked = { client, access, needsConsent: false, needsFinish: false }
    const answer = await grants.request(asked, unguardedCall(context))
    if (!answer.ok) throw new Error(answer.reason)
    const { grant, tokens } = answer
    const [token = { secret: '', manage: '' }] = tokens
    return { client: client.walletAddress, grantId: grant.id, token }
  }

  function accessToken({ grantId, token }: Payer): string {
    return formatCredential(accessTokenClass, { grantId, secret: token.secret })
  }

  /** Introspects the token, as for a request with a valid signature. */
  const tokenOf = (payer: Payer) => introspected(introspect, accessToken(payer))

  async function pay(
    payer: Payer,
    input: PaymentInput,
    { proof, idempotencyKey }: PayOptions = {},
  ) {
    const presented = accessToken(payer)
    const active = await introspected(introspect, presented)
    if (!active.ok) return active
    const token = active.value
    if (!permits(token.access, 'outgoing-payment', 'create', input.walletAddress)) {
      return { ok: false, outcome: 'refused', refusal: 'identifier_foreign', reason: '' } as const
    }
    const renew = () => introspected(introspect, presented)
    const call = proof === undefined ? unguardedCall(context) : await guardedCall(context, proof)
    const answer = await create(input, { client: payer.client, token, renew }, call, idempotencyKey)
    // As the servers do for a request that commits nothing.
    return answer.ok ? answer : call.commit(answered(answer))
  }

  return {
    context,
    store,
    clock,
    grants,
    introspect,
    quotes,
    payments,
    payer,
    tokenOf,
    pay,
  }
}

const keys = { shop: testKey('shop'), cafe: testKey('cafe') }
const clientKeys = publishedKeys()
for (const [name, key] of Object.entries(keys)) clientKeys.publish(`https://${name}.example`, key)

const namespace = namespaceOf('https://wallet.example/op')
