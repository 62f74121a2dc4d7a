import fc from 'fast-check'
import {
  type SpendingHost,
  type SpendingPorts,
  type SpendingScene,
  spendingProperty,
} from 'open-payments-server-testing'
import type { Pool, PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { holdFunds, releaseFunds } from '../../examples/host-transaction/hold-funds.js'
import { post } from '../../examples/host-transaction/settle-outgoing.js'
import { pricing } from '../../examples/payment-limits/own-servers.js'
import {
  createAuthorizationServer,
  createResourceServer,
  type ResourceServer,
  type Store,
} from '../../src/index.js'
import { servers } from '../support/databases.js'
import { createHostDatabase } from '../support/host-databases.js'
import { runs, some } from '../support/runs.js'

const baseUrl = 'https://wallet.example'
const alice = `${baseUrl}/alice`
const [usd, eur] = ['USD', 'EUR'].map((assetCode) => ({ assetCode, assetScale: 2 })) as [
  { assetCode: string; assetScale: number },
  { assetCode: string; assetScale: number },
]
const invoice = 'https://bank.example/incoming-payments/1'
const scene: SpendingScene = {
  walletAddress: alice,
  asset: usd,
  receivers: [{ url: invoice, asset: eur, unitPrice: 2n }],
}
const deposit = 10n ** 18n

async function sumOf(pool: Pool, table: string): Promise<bigint> {
  const sum = `SELECT coalesce(sum(amount), 0) AS sum FROM ${table} WHERE account_id = $1`
  return BigInt((await pool.query(sum, [alice])).rows[0].sum)
}

function postsProperty(pool: Pool, posting: typeof post = post) {
  const ofHistory = (ports: SpendingPorts) => createServers(pool, ports, posting)
  return spendingProperty(fc, { servers: ofHistory, scene, debitMax: 10n ** 15n })
}

async function createServers(
  pool: Pool,
  { clock, clientKeys, failing }: SpendingPorts,
  posting: typeof post,
) {
  await pool.query('TRUNCATE open_payments_records, ledger_holds, ledger_entries CASCADE')
  await pool.query("INSERT INTO ledger_entries VALUES ('deposit', $1, $2)", [alice, deposit])
  const shared = { store: failing(postgresStore(pool)), clock, onError: () => undefined }
  const [grantEndpoint, consentUrl] = [`${baseUrl}/auth`, `${baseUrl}/consent`]
  const auth = { ...shared, clientKeys, grantEndpoint, consentUrl }
  const authorizationServer = createAuthorizationServer(auth)
  const resources = createResourceServer({
    ...shared,
    baseUrl,
    grants: authorizationServer,
    walletAddresses: { find: async (url) => (url === alice ? { url, ...usd } : undefined) },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing,
    policy: {
      mayPay: holdFunds(pool),
      outgoingPayments: { retentionMs: 100 * 365 * 86_400_000 }, // histories last for decades
    },
  })
  const within = (inside: Store) => resources.within(failing(inside)) // the store fails there, too
  const host = ledgerOf(pool, { ...resources, within }, posting)
  return { authorizationServer, resourceServer: resources, grantEndpoint, baseUrl, ...host }
}

// #region report
/** The wallet's own code: makes any report in a transaction, and posts its `debit`. */
function ledgerOf(pool: Pool, resources: ResourceServer, posting = post): SpendingHost {
  const { iterate } = resources.outgoingPayments
  return {
    report: (report) =>
      postgresStore.transaction(pool, async (client: PoolClient, inside) => {
        const result = await report(resources.within(inside).outgoingPayments)
        if (result.ok) await posting(client, result)
        return result
      }),
    onEvent: releaseFunds(pool),
    async problem() {
      let [sent, needed] = [0n, 0n]
      const payments = iterate({ walletAddress: alice })
      for await (const { debitAmount, sentAmount, endedAt } of payments) {
        sent += BigInt(sentAmount.value)
        if (endedAt !== undefined) continue
        needed += BigInt(debitAmount.value) - BigInt(sentAmount.value)
      }
      const debited = deposit - (await sumOf(pool, 'ledger_entries'))
      if (debited !== sent) return `${sent} was sent, and ${debited} debited`
      const held = await sumOf(pool, 'ledger_holds')
      return held === needed ? undefined : `${needed} is needed, and ${held} held`
    },
  }
}
// #endregion report

describe.skipIf(servers.PostgreSQL === undefined)(
  'a ledger that posts the debit of each report',
  () => {
    let database: Awaited<ReturnType<typeof createHostDatabase>>
    beforeAll(async () => {
      database = await createHostDatabase(servers.PostgreSQL ?? '')
      for (const id of [alice, 'settlement:USD']) {
        await database.pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [id, 'USD'])
      }
    })
    afterAll(() => database?.drop())

    test('has debited what the payments have sent, after each step of any history', async () => {
      await fc.assert(postsProperty(database.pool), { numRuns: runs(100, 5) })
    })

    const mistakes: Readonly<Record<string, typeof post>> = {
      'only at the end': async (client, posting) => {
        if (posting.payment.endedAt !== undefined) await post(client, posting)
      },
      'all that was sent': async (client, posting) => {
        const debit = posting.debit > 0n ? BigInt(posting.payment.sentAmount.value) : posting.debit
        await post(client, { ...posting, debit })
      },
      twice: (client, posting) => post(client, { ...posting, debit: 2n * posting.debit }),
    }
    test.each(some(Object.entries(mistakes)))(
      'is found to be wrong if it posts %s',
      async (_, wrong) => {
        const options = { numRuns: 200, seed: 7, endOnFailure: true }
        const { errorInstance } = await fc.check(postsProperty(database.pool, wrong), options)
        const problem = /was sent, and -?\d+ debited|is needed, and \d+ held|duplicate key/
        expect((errorInstance as Error | null)?.message).toMatch(problem)
      },
    )
  },
)
