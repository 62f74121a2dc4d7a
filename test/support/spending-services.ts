import { permits } from '../../src/core/access.js'
import type { AccessItem, Pricing, Store, WalletAddress } from '../../src/index.js'
import { memoryStore } from '../../src/index.js'
import {
  accessTokenClass,
  formatCredential,
  hashSecret,
  namespaceOf,
} from '../../src/protocol/credential.js'
import { sweptBudgets } from '../../src/service/budget.js'
import { createGrants } from '../../src/service/grant.js'
import { createIntrospect, introspected } from '../../src/service/introspection.js'
import type { Combiner } from '../../src/service/mechanism/combiner.js'
import { newCall, type ServiceContext } from '../../src/service/mechanism/context.js'
import { consumingNonce, type Proof, refuseRepeats } from '../../src/service/mechanism/nonces.js'
import { retired, type SweepOptions, sweepKinds } from '../../src/service/mechanism/sweeps.js'
import { createOutgoingPayments } from '../../src/service/outgoing-payment.js'
import { createPaymentCreation } from '../../src/service/outgoing-payment-creation.js'
import type { PaymentInput } from '../../src/service/outgoing-payment-request.js'
import { createQuotes } from '../../src/service/quote.js'
import { boundedStore } from './bounded-store.js'
import { unguardedCall } from './calls.js'
import { type ManualClock, manualClock } from './clock.js'
import { publishedKeys, testKey } from './keys.js'
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
  /** Creates concurrent payments under one grant in one commit, as the servers do. Default: none. */
  readonly combiner?: Combiner
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
  const context: ServiceContext = {
    store: boundedStore(store),
    givenStore: store,
    clock,
    random: seededRandom(seed),
    pacing: {
      elapsedMs: () => slept,
      async sleep(ms) {
        slept += ms + 1
        await sleep?.(ms)
      },
    },
    namespace: () => namespace,
    grantNamespace: () => namespace,
    signatureRules: { ageMaxMs: 300_000, skewMaxMs: 60_000 },
    serverUrl: 'https://wallet.example/op',
    recordsEvents: () => recordsEvents,
    combiner: options.combiner,
  }
  const accounts: WalletAddress[] = [alice, bob].map((url) => ({
    url,
    assetCode: 'USD',
    assetScale: 2,
  }))
  const walletAddresses = { find: async (url: string) => accounts.find((each) => each.url === url) }
  const grants = createGrants(context, grantPolicy)
  const introspect = createIntrospect(context, grants, clientKeys, grantPolicy)
  const pricing = { walletAddresses, quotes: options.pricing ?? priceList }
  const quotes = createQuotes(context, pricing, spendingPolicy.quotes)
  const payments = createOutgoingPayments(context, spendingPolicy)
  const creating = { guardsGrants: true, walletAddresses, quotes, payments }
  const create = createPaymentCreation(context, creating, spendingPolicy)

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

  async function pay(payer: Payer, input: PaymentInput, { proof, ...key }: PayOptions = {}) {
    const presented = accessToken(payer)
    const active = await introspected(introspect, presented)
    if (!active.ok) return active
    const token = active.value
    if (!permits(token.access, 'outgoing-payment', 'create', input.walletAddress)) {
      return { ok: false, outcome: 'refused', refusal: 'identifier_foreign', reason: '' } as const
    }
    const renew = () => introspected(introspect, presented)
    const call = unguardedCall(context)
    if (proof !== undefined) await refuseRepeats(context, proof, call)
    const spender = { client: payer.client, token, renew }
    return consumingNonce(context, call, () => create(input, spender, call, key))
  }

  /** Rotates the token. Resolves to the payer with the new token, or to `undefined` if the rotation was refused. */
  async function rotate(payer: Payer): Promise<Payer | undefined> {
    const grant = await grants.load(payer.grantId)
    if (grant === undefined) return undefined
    const { secret, manage } = payer.token
    const presented = { manage, secret, hash: await hashSecret(secret) }
    const answer = await grants.rotate(grant, presented, unguardedCall(context))
    const [token] = answer.ok ? answer.tokens : []
    return token && { ...payer, token }
  }

  async function revoke({ grantId }: Payer): Promise<void> {
    const grant = await grants.load(grantId)
    const call = newCall(context)
    if (grant !== undefined)
      await grants.run(grant, { type: 'revoke', commandId: call.commandId }, call)
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
    rotate,
    revoke,
    /** Does what `ResourceServer.sweep` does, as far as it concerns spending. */
    sweep: (options?: SweepOptions) =>
      sweepKinds(
        context,
        [
          payments.swept,
          sweptBudgets(context, introspect, spendingPolicy.budgets),
          retired(context, 'quote'),
        ],
        options,
      ),
    quote: (client: string, request: Parameters<typeof quotes.create>[0]) =>
      quotes.create(request, client, unguardedCall(context)),
  }
}

const keys = { shop: testKey('shop'), cafe: testKey('cafe') }
const clientKeys = publishedKeys()
for (const [name, key] of Object.entries(keys)) clientKeys.publish(`https://${name}.example`, key)

const namespace = namespaceOf('https://wallet.example/op')
