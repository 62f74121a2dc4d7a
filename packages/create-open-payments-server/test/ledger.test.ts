import { ledgerOn, openAccount } from 'create-open-payments-server/wallet/ledger'
import { migrate } from 'create-open-payments-server/wallet/tables'
import { emptyPglite } from 'open-payments-test-support/databases'
import { databaseOn } from 'open-payments-test-support/examples/created-wallet'
import { usd } from 'open-payments-test-support/spending'
import { expect, test } from 'vitest'

test('A payment of an account to itself changes no balance, and leaves no hold', async () => {
  const database = databaseOn(await emptyPglite())
  await migrate(database)
  const ledger = ledgerOn(database)
  const url = 'https://wallet.example/alice'
  await openAccount(database, { url, ...usd(0), owner: 'alice', balance: 100n })
  const payment = (outgoingPaymentId: string) => ({
    outgoingPaymentId,
    walletAddress: url,
    debitAmount: usd(100),
  })
  expect(await ledger.hold(payment('first'))).toBe(true)
  expect(await ledger.hold(payment('second'))).toBe(false)
  const transfer = { paymentId: 'first', from: url, to: url, debit: '100', credit: '100' }
  await database.transaction((sql) => ledger.move(sql, transfer))
  expect((await ledger.find(url))?.balance).toBe(100n)
  expect(await ledger.hold(payment('second'))).toBe(true)
  await database.close()
})
