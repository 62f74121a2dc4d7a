import { describe, expect, test } from 'vitest'
import { amountValueMax } from '../../src/core/amount.js'
import { spendingTotals } from '../../src/core/spending-total.js'
import { eur, outgoingItem, usd } from '../support/spending.js'
import { alice, bob } from '../support/world.js'

const monthly = 'R/2026-01-01T00:00:00Z/P1M'

describe('the totals of access items', () => {
  test('add limits of the same amount, asset, interval and wallet address', () => {
    expect(
      spendingTotals([
        outgoingItem({ debitAmount: usd(100) }),
        outgoingItem({ debitAmount: usd(200), interval: monthly }),
        outgoingItem({ debitAmount: usd(30), receiver: `${bob}/incoming-payments/1` }),
        outgoingItem({ receiveAmount: usd(7) }),
        outgoingItem({ debitAmount: eur(5) }),
        outgoingItem({ debitAmount: usd(1) }, bob),
        outgoingItem({ debitAmount: usd(1), interval: monthly }),
      ]),
    ).toStrictEqual([
      { identifier: alice, debitAmount: usd(130), items: 2 },
      { identifier: alice, interval: monthly, debitAmount: usd(201), items: 2 },
      { identifier: alice, receiveAmount: usd(7), items: 1 },
      { identifier: alice, debitAmount: eur(5), items: 1 },
      { identifier: bob, debitAmount: usd(1), items: 1 },
    ])
  })

  test('show items without a limit as a total without an amount', () => {
    expect(spendingTotals([outgoingItem(), outgoingItem({ interval: monthly })])).toEqual([
      { identifier: alice, items: 1 },
      { identifier: alice, interval: monthly, items: 1 },
    ])
  })

  test('of items for any wallet address name none', () => {
    const { identifier: _identifier, ...item } = outgoingItem({ debitAmount: usd(1) })
    expect(spendingTotals([item])).toStrictEqual([{ debitAmount: usd(1), items: 1 }])
  })

  test('ignore items that create no outgoing payments', () => {
    expect(
      spendingTotals([
        { type: 'quote', actions: ['create'] },
        { type: 'incoming-payment', actions: ['create'] },
        { type: 'outgoing-payment', actions: ['read'], identifier: alice },
      ]),
    ).toEqual([])
  })

  test('can exceed 64 bits', () => {
    const most = outgoingItem({ debitAmount: usd(amountValueMax) })
    expect(spendingTotals([most, most])).toEqual([
      { identifier: alice, debitAmount: usd(2n * amountValueMax), items: 2 },
    ])
  })
})
