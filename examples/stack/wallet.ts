import { createHash } from 'node:crypto'
import { eq } from 'drizzle-orm'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { FastifyBaseLogger } from 'fastify'
import { createPages } from 'open-payments-pages'
import { createWallet, type Wallet } from 'open-payments-server'
import { openTelemetry } from 'open-payments-server/opentelemetry'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool } from 'pg'
import { balanceOf, holdFunds } from './ledger.js'
import { ownerOf, signIn } from './login.js'
import { pricingOf } from './payments.js'
import { accounts } from './tables.js'

const { BASE_URL: baseUrl = 'http://localhost:3000', SECRET } = process.env
if (!SECRET) throw new Error('set SECRET to a long random text, and keep it')
const formKey = createHash('sha256').update(`forms\n${SECRET}`).digest()

/** Creates the three servers and the pages for owners. */
export function walletOn(pool: Pool, db: NodePgDatabase, log: FastifyBaseLogger) {
  // pino writes an error that is called `err`; of one with another name it writes {}.
  const onError = (err: unknown) => log.error({ err }, 'a function of ours failed')
  const find = async (url: string) => {
    const [account] = await db.select().from(accounts).where(eq(accounts.url, url))
    return account
  }
  const wallet: Wallet = createWallet({
    baseUrl,
    consentUrl: `${baseUrl}/consent`,
    store: postgresStore(pool),
    walletAddresses: { find },
    // Not on Interledger: only accounts of this wallet can be paid.
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: pricingOf(() => wallet.resources),
    // A hold takes milliseconds. If its process dies, a repeated request waits for 5 s.
    policy: { mayPay: holdFunds(db), outgoingPayments: { decideMs: 5_000 } },
    telemetry: openTelemetry(),
    onRefusal: ({ refusal, reason }) => log.info({ refusal, reason }),
    onError,
  })
  const pages = createPages({
    auth: wallet.auth,
    resources: wallet.resources,
    ownerOf,
    signIn,
    async accountsOf(owner) {
      const own = await db.select().from(accounts).where(eq(accounts.owner, owner))
      const balances = await Promise.all(own.map(({ url }) => balanceOf(db, url)))
      return own.map((account, i) => ({ ...account, balance: balances[i] ?? 0n }))
    },
    formKey,
    connectedAppsUrl: '/apps',
    onError,
  })
  return { wallet, pages }
}
