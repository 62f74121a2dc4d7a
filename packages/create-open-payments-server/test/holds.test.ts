import { expect, test } from 'vitest'
import { emptyPglite } from '../../../test/support/databases.js'
import { releaseHolds } from '../templates/wallet/src/background.js'
import { ledgerOn } from '../templates/wallet/src/ledger.js'
import type { Database, Sql } from '../templates/wallet/src/sql.js'
import type { Wallet } from '../templates/wallet/src/wallet.js'

test('a new wallet releases abandoned holds, although another look-up fails', async () => {
  const lite = await emptyPglite()
  const sql: Sql = async (statement, ...values) => {
    let count = 0
    const numbered = statement.replace(/\?/g, () => `$${++count}`)
    return (await lite.query<Record<string, unknown>>(numbered, [...values])).rows
  }
  await sql('CREATE TABLE holds (payment_id text PRIMARY KEY, held_at bigint NOT NULL)')
  const abandoned = Array.from({ length: 20 }, (_, i) => `never-created-${i}`)
  for (const paymentId of ['failing', 'open', ...abandoned]) {
    await sql('INSERT INTO holds VALUES (?, 0)', paymentId)
  }
  const get = async (paymentId: string) => {
    if (paymentId === 'failing') throw new Error('the store is down')
    return paymentId === 'open' ? { id: paymentId } : undefined
  }
  const wallet = {
    ledger: ledgerOn({ sql } as Database),
    resources: { outgoingPayments: { get } } as unknown as Wallet['resources'],
  }
  await expect(releaseHolds(wallet)).rejects.toThrow('the store is down')
  expect(await sql('SELECT payment_id FROM holds ORDER BY payment_id')).toEqual([
    { payment_id: 'failing' },
    { payment_id: 'open' },
  ])
  await lite.close()
})
