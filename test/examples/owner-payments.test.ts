import { expect, test } from 'vitest'
import { memoryStore } from '../../src/index.js'
import { createSpendingWorld, shopReceiver } from '../support/spending.js'
import { alice } from '../support/world.js'

/** The wallet of the test that runs. */
const wallet = { resources: createSpendingWorld({ store: memoryStore() }).resources }

// #region terminal
/** Pays what a merchant's terminal shows, with the card that was held to it. */
async function payTerminal(
  walletAddress: string,
  tap: { id: string; incomingPayment: string; card: { last4: string } },
) {
  return wallet.resources.outgoingPayments.create({
    walletAddress,
    receiver: tap.incomingPayment, // which has an amount
    idempotencyKey: `terminal ${tap.id}`,
    data: { card: tap.card },
  })
}
// #endregion terminal

test('a terminal is paid once, with the data of the card', async () => {
  const tap = { id: '17', incomingPayment: shopReceiver, card: { last4: '4711' } }
  const paid = await payTerminal(alice, tap)
  expect(paid).toMatchObject({ ok: true, changed: true, payment: { data: { card: tap.card } } })
  expect(await payTerminal(alice, tap)).toMatchObject({ ok: true, changed: false })
})
