import fc from 'fast-check'
import {
  type SpendingPorts,
  type SpendingScene,
  spendingProperty,
} from 'open-payments-server-testing'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { payOwn, priceOfOwn } from '../../examples/frameworks/nest/src/own-accounts.js'
import { holdFunds, releaseFunds } from '../../examples/host-transaction/hold-funds.js'
import { moveFunds } from '../../examples/host-transaction/move-funds.js'
import {
  createAuthorizationServer,
  createResourceServer,
  type EventHandler,
  type ResourceServer,
  type ResourceServices,
  type Store,
} from '../../src/index.js'
import { servers } from '../support/databases.js'
import { createHostDatabase } from '../support/host-databases.js'
import { runs, some } from '../support/runs.js'

const baseUrl = 'https://wallet.example'
const [alice, bob] = [`${baseUrl}/alice`, `${baseUrl}/bob`]
const usd = { assetCode: 'USD', assetScale: 2 }
const accountOf = async (url: string) =>
  url === alice || url === bob ? { url, ...usd } : undefined
const centuryMs = 100 * 365 * 86_400_000

/** Moves money between two accounts, as a settlement does. */
type Move = typeof moveFunds

/** The handler of events of production. */
function paymentsOn(
  pool: Pool,
  resources: ResourceServices & Pick<ResourceServer, 'within'>,
  move: Move = moveFunds,
): EventHandler {
  const release = releaseFunds(pool)
  return (event, delivery) =>
    event.type === 'outgoing-payment.created'
      ? payOwn(pool, resources as ResourceServer, event, move)
      : release(event, delivery)
}

async function balanceOf(pool: Pool, account: string): Promise<bigint> {
  const sum = 'SELECT coalesce(sum(amount), 0) AS sum FROM ledger_entries WHERE account_id = $1'
  return BigInt((await pool.query(sum, [account])).rows[0].sum)
}

async function heldFor(pool: Pool, paymentId: string): Promise<bigint> {
  const sum = 'SELECT coalesce(sum(amount), 0) AS sum FROM ledger_holds WHERE payment_id = $1'
  return BigInt((await pool.query(sum, [paymentId])).rows[0].sum)
}

/** Empties the store and the ledger, and gives Alice enough for all payments. */
async function reset(pool: Pool): Promise<void> {
  await pool.query('TRUNCATE open_payments_records, ledger_holds, ledger_entries CASCADE')
  await pool.query("INSERT INTO ledger_entries VALUES ('deposit', $1, 1e18)", [alice])
}

// #region own-accounts
/** Alice pays an incoming payment of Bob's, whose URL `receivers` replaces. */
const scene: SpendingScene = {
  walletAddress: alice,
  asset: usd,
  receivers: [{ url: `${baseUrl}/incoming`, asset: usd, walletAddress: bob }],
}

/** Searches the prices, holds, handler of events and ledger of production. */
function ownAccountsProperty(pool: Pool, handlerOf = paymentsOn) {
  return spendingProperty(fc, {
    servers: (ports) => createServers(pool, ports, handlerOf),
    scene,
    wholePayments: true, // `payOwn` sends no parts
    debitMax: 10n ** 15n, // an incoming payment receives at most 2^64 - 1 in all
  })
}

async function createServers(
  pool: Pool,
  { clock, clientKeys, failing }: SpendingPorts,
  handlerOf: typeof paymentsOn,
) {
  await reset(pool) // an empty store, and a full account
  const store = failing(postgresStore(pool))
  const shared = { store, clock, onError: () => undefined }
  const [grantEndpoint, consentUrl] = [`${baseUrl}/auth`, `${baseUrl}/consent`]
  const auth = { ...shared, clientKeys, grantEndpoint, consentUrl }
  const authorizationServer = createAuthorizationServer(auth)
  const resources: ResourceServer = createResourceServer({
    ...shared,
    baseUrl,
    grants: authorizationServer,
    walletAddresses: { find: accountOf },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: { price: (request) => priceOfOwn(resources, request) },
    policy: {
      mayPay: holdFunds(pool),
      // Histories last for decades: all payments stay, and Bob's stays open.
      incomingPayments: { expiryMaxMs: centuryMs },
      outgoingPayments: { retentionMs: centuryMs },
    },
  })
  const { incomingPayments, outgoingPayments } = resources
  const expiresAt = clock.now() + centuryMs
  const asked = { walletAddress: bob, idempotencyKey: 'search', expiresAt }
  const created = await incomingPayments.create(asked)
  if (!created.ok) throw new Error(created.reason)
  // In a transaction of the handler, the store fails too.
  const within = (inside: Store) => resources.within(failing(inside))
  return {
    authorizationServer,
    resourceServer: resources,
    grantEndpoint,
    baseUrl,
    receivers: [created.url],
    onEvent: handlerOf(pool, { ...resources, within }),
    async problem() {
      let sum = 0n
      for await (const each of outgoingPayments.iterate({ walletAddress: alice })) {
        const { paymentId, debitAmount, sentAmount, endedAt } = each
        sum += BigInt(sentAmount.value)
        const needed = endedAt === undefined ? BigInt(debitAmount.value) : 0n
        const held = await heldFor(pool, paymentId)
        if (held !== needed) return `${paymentId} needs ${needed}, and ${held} is held`
      }
      const moved = await balanceOf(pool, bob)
      return moved === sum ? undefined : `${sum} was sent, and Bob has ${moved}`
    },
  }
}
// #endregion own-accounts

describe.skipIf(servers.PostgreSQL === undefined)('payments between accounts of a wallet', () => {
  let database: Awaited<ReturnType<typeof createHostDatabase>>
  beforeAll(async () => {
    database = await createHostDatabase(servers.PostgreSQL ?? '')
    for (const id of [alice, bob, 'fees']) {
      await database.pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [id, 'USD'])
    }
  })
  afterAll(() => database?.drop())

  test('spend no more than a grant allows, and move what they send, in any history', async () => {
    await fc.assert(ownAccountsProperty(database.pool), { numRuns: runs(100, 3) })
  })

  const moving = (move: Move) => (pool: Pool, resources: Parameters<typeof paymentsOn>[1]) =>
    paymentsOn(pool, resources, move)
  const mistakes: Readonly<Record<string, readonly [typeof paymentsOn, RegExp]>> = {
    'does not move the money': [moving(async () => undefined), /\d+ was sent, and Bob has 0/],
    'credits what another payment sent': [
      moving((client, transfer) => moveFunds(client, { ...transfer, credit: '7' })),
      /\d+ was sent, and Bob has \d+/,
    ],
    'sends nothing': [
      (pool, resources) => async (event, delivery) => {
        if (event.type === 'outgoing-payment.created') return
        await paymentsOn(pool, resources)(event, delivery)
      },
      /the handler of events did not end the payment/,
    ],
    'records the payment outside of its transaction': [
      (pool, resources) => paymentsOn(pool, { ...resources, within: () => resources }),
      /\d+ was sent, and Bob has \d+/,
    ],
    'does not release the hold of a failed payment': [
      (pool, resources) => async (event, delivery) => {
        if (event.type === 'outgoing-payment.failed') return
        await paymentsOn(pool, resources)(event, delivery)
      },
      /needs 0, and \d+ is held/,
    ],
  }
  test.each(some(Object.entries(mistakes)))(
    'are found to be wrong if the handler of events %s',
    async (_, [handlerOf, found]) => {
      const { errorInstance } = await fc.check(ownAccountsProperty(database.pool, handlerOf), {
        numRuns: 200,
        seed: 7,
        endOnFailure: true,
      })
      expect((errorInstance as Error | null)?.message).toMatch(found)
    },
  )
})
