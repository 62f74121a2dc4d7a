import type { AccessItem, Store } from '../../src/index.js'
import { memoryStore } from '../../src/index.js'
import { accessTokenClass, formatCredential, namespaceOf } from '../../src/protocol/credential.js'
import { createGrants } from '../../src/service/grant.js'
import { createIntrospect, introspected } from '../../src/service/introspection.js'
import type { Combiner } from '../../src/service/mechanism/combiner.js'
import type { ServiceContext } from '../../src/service/mechanism/context.js'
import { createOutgoingPayments } from '../../src/service/outgoing-payment.js'
import { createPaymentCreation } from '../../src/service/outgoing-payment-creation.js'
import type { PaymentInput } from '../../src/service/outgoing-payment-request.js'
import { createQuotes } from '../../src/service/quote.js'
import { boundedStore } from './bounded-store.js'
import { unguardedCall } from './calls.js'
import { manualClock } from './clock.js'
import { publishedKeys, testKey } from './keys.js'
import { seededRandom } from './random.js'
import { priceList } from './spending.js'
import { alice } from './world.js'

const day = 86_400_000
const policy = {
  payments: { holdMs: day, retentionMs: 40 * day },
  quotes: { lifetimeMs: 300_000, retentionMs: day },
  budgets: { retentionMs: 41 * day },
}
const grantPolicy = {
  accessTokenLifetimeMs: 30 * day,
  interactionLifetimeMs: 600_000,
  waitMs: 5_000,
  retryMs: 60_000,
  unusedLifetimeMs: 100 * 366 * day,
  retentionMs: day,
  intervalCounting: 'occurrences',
} as const

export interface SpendingSetup {
  readonly store?: Store
  /** Creates concurrent payments under one grant in one commit, as the servers do. Default: none. */
  readonly combiner?: Combiner
}

/** Creates the services of one process that makes payments, without HTTP and signatures. */
export function spendingServices({ store = memoryStore(), combiner }: SpendingSetup = {}) {
  let slept = 0
  const context: ServiceContext = {
    store: boundedStore(store),
    givenStore: store,
    clock: manualClock(),
    random: seededRandom('seed'),
    pacing: {
      elapsedMs: () => slept,
      async sleep(ms) {
        slept += ms + 1
      },
    },
    namespace: () => namespace,
    grantNamespace: () => namespace,
    signatureRules: { ageMaxMs: 300_000, skewMaxMs: 60_000 },
    serverUrl: 'https://wallet.example/op',
    recordsEvents: () => true,
    combiner,
  }
  const account = { url: alice, assetCode: 'USD', assetScale: 2 }
  const walletAddresses = {
    find: async (url: string) => (url === alice ? account : undefined),
  }
  const grants = createGrants(context, grantPolicy)
  const introspect = createIntrospect(context, grants, clientKeys, grantPolicy)
  const quotes = createQuotes(context, { walletAddresses, quotes: priceList }, policy.quotes)
  const payments = createOutgoingPayments(context, policy)
  const creating = { guardsGrants: true, walletAddresses, quotes, payments }
  const create = createPaymentCreation(context, creating, policy)

  return {
    /** Returns the access token of a grant that needs no consent. */
    async token(access: readonly AccessItem[]): Promise<string> {
      const { kid, thumbprint } = key
      const client = { walletAddress: shop, kid, thumbprint }
      const asked = { client, access, needsConsent: false, needsFinish: false }
      const answer = await grants.request(asked, unguardedCall(context))
      if (!answer.ok) throw new Error(answer.reason)
      const [{ secret } = { secret: '' }] = answer.tokens
      return formatCredential(accessTokenClass, { grantId: answer.grant.id, secret })
    },
    async pay(accessToken: string, input: PaymentInput) {
      const renew = () => introspected(introspect, accessToken)
      const active = await renew()
      if (!active.ok) return active
      return create(input, { client: shop, token: active.value, renew }, unguardedCall(context), {})
    },
  }
}

const shop = 'https://shop.example'
const key = testKey('shop')
const clientKeys = publishedKeys()
clientKeys.publish(shop, key)

const namespace = namespaceOf('https://wallet.example/op')
