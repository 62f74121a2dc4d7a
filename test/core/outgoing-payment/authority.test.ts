import { describe, expect, test } from 'vitest'
import type { CountedLimit } from '../../../src/core/budget/record.js'
import { isUnderGrant, requesterOf } from '../../../src/core/outgoing-payment/authority.js'
import { waitsUnderOther } from '../../../src/core/outgoing-payment/confirmation.js'
import { createOutgoingPayment } from '../../../src/core/outgoing-payment/create.js'
import { budgetIdsOf } from '../../../src/core/outgoing-payment/record.js'
import { decideRepeat, repeated } from '../../../src/core/outgoing-payment/reservation.js'
import { type Quote, usableQuote } from '../../../src/core/quote.js'
import type { OpenLimit } from '../../../src/core/spending-limits.js'
import { sharedCommitOf } from '../../../src/service/budgets.js'
import { paymentListsOf, waitingListsOf } from '../../../src/service/lists.js'
import { budgetPolicy, created, creation, paymentPolicy } from '../../support/spending-life.js'

const { client: _client, grantId: _grantId, ...order } = creation()
const policy = { ...paymentPolicy, ...budgetPolicy }

function ordered() {
  const decision = createOutgoingPayment(order, 0, policy)
  if (!decision.ok) throw new Error(decision.reason)
  return decision
}

describe('a payment that its owner orders', () => {
  test('has no member of the authority of a client, in its record and in its event', () => {
    const { record, events, budget } = ordered()
    const names = ['client', 'grantId', 'itemId', 'budgetId']
    for (const object of [record, ...events]) {
      expect(Object.keys(object).filter((name) => names.includes(name))).toEqual([])
    }
    expect(budget).toBeUndefined()
    expect(isUnderGrant(record)).toBe(false)
    expect(requesterOf(record)).toEqual({})
  })

  test('is charged to the limits that count it, and to nothing else', () => {
    expect(budgetIdsOf(ordered().record)).toEqual([])
    const usd = { value: '100', assetCode: 'USD', assetScale: 2 }
    const open: OpenLimit = {
      source: 'account',
      scope: { walletAddress: 'a' },
      budgetId: 'namespacaccount.a.life',
      limitedAmount: { counts: 'debitAmount', maximum: usd },
    }
    const limit: CountedLimit = { source: 'account', limit: { debitAmount: usd }, open }
    const decision = createOutgoingPayment({ ...order, limits: [limit] }, 0, policy)
    expect(decision.ok && budgetIdsOf(decision.record)).toEqual([open.budgetId])
    const [budget] = (decision.ok && decision.limitBudgets) || []
    if (budget === undefined) throw new Error('no budget counts the payment')
    const again = createOutgoingPayment({ ...order, limits: [{ ...limit, budget }] }, 0, policy)
    expect(again).toMatchObject({ ok: false, refusal: 'account_limit_exceeded' })
  })
})

// Neither the owner nor a record that does not exist has a client: the two must not be taken for equal.
describe('somebody without a client', () => {
  const request = { requestHash: order.requestHash, commandId: 'other' }

  test('repeats no payment that does not exist', () => {
    expect(repeated(undefined, request)).toBeUndefined()
    expect(decideRepeat(undefined, request, 0, { decideMs: 1, lateMs: 1 })).toBeUndefined()
  })

  test('repeats no payment of a client, and a client none of the owner', () => {
    const { client, grantId } = creation()
    expect(repeated(created().record, request)).toBeUndefined()
    expect(repeated(ordered().record, { ...request, client })).toBeUndefined()
    expect(repeated(ordered().record, request)?.ok).toBe(true)
    expect(repeated(created().record, { ...request, client })?.ok).toBe(true)
    expect(grantId).toBeDefined()
  })

  test('uses no quote that does not exist, and none of a client, and a client none of the owner', () => {
    const { client, walletAddress } = creation()
    const { receiver, debitAmount, receiveAmount } = order
    const quote: Quote = {
      ...{ id: 'quote', version: 1, commandId: 'c', walletAddress, method: 'ilp' },
      ...{ receiver, debitAmount, receiveAmount, createdAt: 0, expiresAt: 9 },
    }
    const refusal = { ok: false, refusal: 'quote_unknown' }
    expect(usableQuote(undefined, { walletAddress }, 1)).toMatchObject(refusal)
    expect(usableQuote({ ...quote, client }, { walletAddress }, 1)).toMatchObject(refusal)
    expect(usableQuote(quote, { walletAddress, client }, 1)).toMatchObject(refusal)
    expect(usableQuote(quote, { walletAddress }, 1).ok).toBe(true)
  })

  test('shares no list and no commit with a client, nor with the owner of another payment', () => {
    const [own, ofClient] = [ordered().record, created().record]
    const names = (lists: readonly { readonly list: string }[]) => lists.map(({ list }) => list)
    const listed = [own, ofClient].map((each) => names(paymentListsOf('namespac', each, 0)))
    expect(listed[0]).toHaveLength(1)
    expect(listed[1]).toHaveLength(3)
    expect(listed[1]).not.toContain(listed[0]?.[0])
    expect(names(waitingListsOf('namespac', own, 0))).toEqual([
      `namespac waiting ${own.walletAddress}`,
    ])
    expect(JSON.stringify(listed)).not.toContain('undefined')
    expect(sharedCommitOf(own)).toBeUndefined()
    expect(sharedCommitOf(ofClient)).toBe('grant namespac-grant')
  })

  test('waits under no grant that another could end', () => {
    const confirmation = { url: 'https://wallet.example/c', until: 9 }
    const times = { askUntil: 9, dueAt: 9 }
    const waiting = { ...ordered().record, state: 'reserved', confirmation, ...times } as const
    expect(waitsUnderOther(waiting, 'another')).toBe(false)
  })
})
