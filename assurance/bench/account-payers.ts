import { once } from 'node:events'
import * as library from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { connectionString } from './database.js'
import { benchWallet, bob, newKey } from './fixtures.js'
import { newPayer, type Payer, pay, paymentRequests } from './payer.js'

/** From which accounts the callers pay: all from one, or each from its own. */
export type Accounts = 'one' | 'many'

const [, , schema = '', firstCaller = '', callers = ''] = process.argv

/** The payments of one caller in a round. */
const paymentsEach = 16

/** One of several servers on a database, with its callers. Each of their accounts has a limit of its owner. */
const pool = new Pool({ connectionString })
const debitAmount = { value: '1000000000000', assetCode: 'USD', assetScale: 2 }
const accountLimits = () => [{ debitAmount, interval: 'R/2026-01-01T00:00:00Z/P1M' }]
const wallet = benchWallet(library, postgresStore(pool, { schema }), {}, newKey(), {
  accountLimits,
})

const payers: Record<Accounts, Payer[]> = { one: [], many: [] }
for (let caller = 0; caller < Number(callers); caller++) {
  payers.one.push(await newPayer(wallet, bob))
  payers.many.push(await newPayer(wallet, `${bob}-${Number(firstCaller) + caller}`))
}
process.send?.('ready')

/** Signs the requests of a round, waits until all servers have done so, and lets all callers pay at the same time. */
async function round(accounts: Accounts): Promise<void> {
  const requests = await Promise.all(
    payers[accounts].map((payer) => paymentRequests(payer, paymentsEach)),
  )
  process.send?.('signed')
  await once(process, 'message')
  const payAll = async (own: (typeof requests)[number]) => {
    for (const request of own) await pay(wallet, request)
  }
  await Promise.all(requests.map(payAll))
  process.send?.(requests.length * paymentsEach)
}

for (;;) {
  const [message] = (await once(process, 'message')) as [Accounts | 'end']
  if (message === 'end') break
  await round(message)
}
await pool.end()
process.disconnect()
