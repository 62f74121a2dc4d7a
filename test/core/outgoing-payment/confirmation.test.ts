import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GrantedItem } from '../../../src/core/access.js'
import type { Budget, CountedLimit } from '../../../src/core/budget/record.js'
import { release } from '../../../src/core/budget/release.js'
import {
  awaitConfirmation,
  confirmationDeclined,
  waitsForOwner,
  waitsUnderOther,
} from '../../../src/core/outgoing-payment/confirmation.js'
import { reserveOutgoingPayment } from '../../../src/core/outgoing-payment/create.js'
import { refuseByGrant } from '../../../src/core/outgoing-payment/granted-rights.js'
import {
  type ConfirmPayment,
  confirmByOwner,
  declinableByOwner,
} from '../../../src/core/outgoing-payment/owner-decision.js'
import {
  budgetIdsOf,
  heldBy,
  type PaymentRecord,
  type ReservedPayment,
} from '../../../src/core/outgoing-payment/record.js'
import {
  createReserved,
  decideRepeat,
  declinePayment,
  endAsk,
  undecided,
} from '../../../src/core/outgoing-payment/reservation.js'
import { accountLimits, ownerLimits } from '../../../src/core/spending-limits.js'
import { runs } from '../../support/runs.js'
import { underGrant } from '../../support/under-grant.js'

type BudgetOf = (id: string) => Budget | undefined

const alice = 'https://wallet.example/alice'
const receiver = 'https://shop.example/incoming-payments/1'
const usd = (value: number) => ({ value: String(value), assetCode: 'USD', assetScale: 2 })
const policy = { holdMs: 1_000, retentionMs: 10_000, decideMs: 30, lateMs: 200 }

/** Windows of a second, of which the second begins while the payment waits. */
const interval = 'R/1970-01-01T00:00:00.500Z/PT1S'
const secondWindow = 1_500

const item: GrantedItem = {
  itemId: '1',
  type: 'outgoing-payment',
  actions: ['create'],
  identifier: alice,
  limits: { debitAmount: usd(100) },
}

const request = {
  commandId: 'first',
  client: 'https://shop.example',
  requestHash: 'hash',
  grantId: 'grant',
}
const repeat = { ...request, commandId: 'repeat' }

const reserving = {
  ...request,
  id: 'payment',
  namespace: '',
  walletAddress: alice,
  receiver,
  debitAmount: usd(60),
  receiveAmount: usd(50),
  candidates: [{ item }],
  askedAt: 1_000,
}
const policies = { reservations: policy, budgets: policy }

const reservation = reserveOutgoingPayment(reserving, 1_000, policies)
if (!reservation.ok) throw new Error(reservation.reason)
const { record: reserved } = reservation

const url = 'https://wallet.example/confirm/payment'
const shown = { receiver, debitAmount: usd(60), receiveAmount: usd(50) }
const byAlice = { commandId: 'confirm', resourceOwner: 'alice', shown, namespace: '', limits: [] }
const lists = [{ list: 'waiting', at: 1_010 }]

/** A payment that waits, and the budgets that change. */
function letWait(payment: ReservedPayment, budgetOf: BudgetOf = () => undefined, namespace = '') {
  const confirmation = { url, until: 2_000 }
  const command = { commandId: 'later', namespace, confirmation, lists }
  return awaitConfirmation(payment, command, budgetOf, 1_010, policy)
}

function waitingWith(...args: Parameters<typeof letWait>) {
  const waits = letWait(...args)
  if (!waits.ok) throw new Error(waits.reason)
  return waits.value
}

const { record: waiting, budgets: waitingBudgets } = waitingWith(reserved)

const confirmAt = (
  found: PaymentRecord | undefined,
  by: ConfirmPayment,
  now: number,
  budgetOf: BudgetOf = (id) => waitingBudgets.find((each) => each.id === id),
) => confirmByOwner(found, by, budgetOf, now, policies)

/** The payment after the owner confirmed it. */
function confirmed(now = 1_500): ReservedPayment {
  const decision = confirmAt(waiting, byAlice, now)
  if (!decision.ok || decision.outcome !== 'changed') throw new Error('the owner has time')
  return decision.record
}

describe('a payment that its owner must confirm', () => {
  test('stays reserved until the owner has no more time, and then a sweep declines it', () => {
    expect(waiting).toMatchObject({ state: 'reserved', version: 2, askUntil: 2_000, dueAt: 2_000 })
    expect(heldBy(waiting)).toEqual(heldBy(reserved))
    expect(undecided(waiting)).toMatchObject({ refusal: 'confirmation_expired' })
  })

  test('refuses repeats of its request with the URL and the end of the time, under any grant', () => {
    for (const grantId of ['grant', 'another']) {
      expect(decideRepeat(waiting, { ...repeat, grantId }, 1_999, policy)).toMatchObject({
        refusal: 'confirmation_required',
        details: { url, until: '1970-01-01T00:00:02.000Z' },
      })
    }
    expect(decideRepeat(waiting, { ...repeat, client: 'another' }, 1_999, policy)).toBeUndefined()
    const differs = decideRepeat(waiting, { ...repeat, requestHash: 'another' }, 1_999, policy)
    expect(differs).toMatchObject({ refusal: 'request_differs' })
  })

  test('waits under another grant than its own, until it is declined or confirmed', () => {
    const { record: declined } = declinePayment(waiting, confirmationDeclined, 'no', 1_500, policy)
    expect(waitsUnderOther(waiting, 'another')).toBe(true)
    expect(waitsUnderOther(waiting, 'grant')).toBe(false)
    for (const payment of [reserved, declined, confirmed()]) {
      expect(waitsUnderOther(payment, 'another')).toBe(false)
    }
  })

  test('is not asked about again by a repeat after its time', () => {
    expect(decideRepeat(waiting, repeat, 2_000, policy)).toEqual({
      ok: true,
      outcome: 'unchanged',
      record: waiting,
    })
  })

  test('is asked about again once it is confirmed, as after any reservation', () => {
    const asked = confirmed()
    expect(asked).toMatchObject({
      state: 'reserved',
      version: 3,
      askUntil: 1_530,
      dueAt: 1_730,
      confirmation: { url, until: 2_000, given: { resourceOwner: 'alice', at: 1_500 } },
    })
    expect(asked).not.toHaveProperty('lateHoldsUntil')
    expect(decideRepeat(asked, repeat, 1_529, policy)).toMatchObject({ outcome: 'unchanged' })
    expect(decideRepeat(asked, repeat, 1_530, policy)).toMatchObject({
      outcome: 'changed',
      record: { commandId: 'repeat', lateHoldsUntil: 1_730 },
    })
    expect(undecided(asked)).toMatchObject({ refusal: 'payment_not_allowed' })
  })

  test('is not confirmed as another one than was shown', () => {
    const others = [
      { ...shown, receiver: `${receiver}2` },
      { ...shown, debitAmount: usd(61) },
      { ...shown, receiveAmount: usd(51) },
      { ...shown, debitAmount: { ...usd(60), assetCode: 'EUR' } },
      { ...shown, receiveAmount: { ...usd(50), assetScale: 3 } },
    ]
    for (const other of others) {
      expect(confirmAt(waiting, { ...byAlice, shown: other }, 1_500)).toMatchObject({
        refusal: 'payment_differs',
      })
    }
  })

  test.each([
    ['no payment', undefined],
    ['a payment that the host is asked about', reserved],
  ])('is not %s', (_, found) => {
    expect(confirmAt(found, byAlice, 1_500)).toMatchObject({
      refusal: 'payment_unknown',
    })
  })

  test('is asked about again by a confirmation once it is confirmed and the call is over', () => {
    const asked = confirmed()
    const again = { ...byAlice, commandId: 'again' }
    const at = (now: number, by = again) => confirmAt(asked, by, now)
    expect(at(1_529)).toEqual({ ok: true, outcome: 'unchanged', record: asked })
    expect(at(1_530, byAlice)).toEqual({ ok: true, outcome: 'unchanged', record: asked })
    expect(at(1_530)).toMatchObject({
      outcome: 'changed',
      record: { commandId: 'again', version: 4, askUntil: 1_560, lateHoldsUntil: 1_730 },
    })
    expect(at(1_730)).toMatchObject({ outcome: 'unchanged' })
    const { record } = createReserved(asked, { commandId: 'made', lists: [] }, 1_510, policy)
    const made = { ...asked, ...record }
    expect(confirmAt(made, again, 1_600)).toEqual({
      ...{ ok: true, outcome: 'unchanged', record: made },
    })
  })

  test('can be declined by its owner in time, and no other payment can', () => {
    expect(declinableByOwner(waiting, 1_999)).toEqual({ ok: true, value: waiting })
    expect(declinableByOwner(reserved, 1_500)).toMatchObject({ refusal: 'payment_unknown' })
  })

  test('is neither confirmed nor declined after its time', () => {
    expect(confirmAt(waiting, byAlice, 2_000)).toMatchObject({
      refusal: 'confirmation_expired',
    })
    expect(declinableByOwner(waiting, 2_000)).toMatchObject({ refusal: 'confirmation_expired' })
  })

  test('is not declined once it is confirmed, and not confirmed once it is declined', () => {
    expect(declinableByOwner(confirmed(), 1_501)).toMatchObject({ refusal: 'payment_confirmed' })
    const { record } = declinePayment(waiting, confirmationDeclined, 'decline', 1_500, policy)
    expect(confirmAt(record, byAlice, 1_501)).toMatchObject({
      outcome: 'unchanged',
      record: { state: 'declined', refusal: { refusal: 'confirmation_declined' } },
    })
    expect(declinableByOwner(record, 1_501)).toMatchObject({ refusal: 'confirmation_declined' })
  })
})

describe('the budgets of a payment that its owner must confirm', () => {
  const account = { namespace: 'wallet01', walletAddress: alice, accountHash: 'hash' }
  const limitsAt = (now: number, budgetOf: BudgetOf, most = 100): readonly CountedLimit[] => [
    ...ownerLimits(
      [{ debitAmount: usd(100), interval }],
      { namespace: 'wallet01', grantId: 'grant' },
      now,
    ),
    ...accountLimitsAt(now, budgetOf, most),
  ]
  const accountLimitsAt = (now: number, budgetOf: BudgetOf, most = 100) =>
    accountLimits([{ debitAmount: usd(most), interval }], account, now).map((limit) => {
      const budget = limit.open && budgetOf(limit.open.budgetId)
      return budget === undefined ? limit : { ...limit, budget }
    })

  function reservedUnderLimits() {
    const budgets = new Map<string, Budget>()
    const budgetOf: BudgetOf = (id) => budgets.get(id)
    const keep = (changed: readonly Budget[]) => {
      for (const each of changed) budgets.set(each.id, each)
    }
    const made = reserveOutgoingPayment(
      { ...reserving, namespace: 'wallet01', limits: limitsAt(1_000, budgetOf) },
      1_000,
      policies,
    )
    if (!made.ok) throw new Error(made.reason)
    keep([made.budget, ...made.limitBudgets])
    const spent = () =>
      Object.fromEntries([...budgets].map(([id, { spent }]) => [id, spent.debitAmount?.value]))
    return { budgetOf, keep, payment: made.record, spent }
  }

  const [first, second] = ['500_1500', '1500_2500']

  test('are those of the account only until it waits, and again from its confirmation', () => {
    const { budgetOf, keep, payment, spent } = reservedUnderLimits()
    const ofGrant = { 'wallet01grant.1.life': '60', [`wallet01grant.owner.${first}`]: '60' }
    expect(spent()).toEqual({ ...ofGrant, [`wallet01account.hash.${first}`]: '60' })
    const { record, budgets } = waitingWith(payment, budgetOf, 'wallet01')
    keep(budgets)
    expect(spent()).toEqual({
      ...ofGrant,
      [`wallet01account.hash.${first}`]: '0',
      'wallet01grant.waiting': '60',
    })
    const limits = accountLimitsAt(1_600, budgetOf)
    const decision = confirmAt(
      record,
      { ...byAlice, namespace: 'wallet01', limits },
      1_600,
      budgetOf,
    )
    if (!decision.ok || decision.outcome !== 'changed') throw new Error('the owner has time')
    keep(decision.budgets)
    expect(spent()).toEqual({
      ...ofGrant,
      [`wallet01account.hash.${first}`]: '0',
      [`wallet01account.hash.${second}`]: '60',
      'wallet01grant.waiting': '0',
    })
    expect(budgetIdsOf(decision.record)).toEqual([
      ...Object.keys(ofGrant),
      `wallet01account.hash.${second}`,
    ])
  })

  test('refuse a confirmation above a limit of the account, which changes nothing', () => {
    const { budgetOf, payment } = reservedUnderLimits()
    const { record } = waitingWith(payment, budgetOf, 'wallet01')
    const limits = accountLimitsAt(1_600, budgetOf, 59)
    expect(
      confirmAt(record, { ...byAlice, namespace: 'wallet01', limits }, 1_600, budgetOf),
    ).toMatchObject({
      ok: false,
      refusal: 'account_limit_exceeded',
    })
  })

  test('let ten payments of a grant wait', () => {
    const counting = {
      id: 'wallet01grant.waiting',
      version: 10,
      commandId: 'earlier',
      grantId: 'grant',
    }
    const waits = (payments: number) => {
      const spent = { debitAmount: usd(1), receiveAmount: usd(1) }
      return letWait(reserved, () => ({ ...counting, spent, payments }))
    }
    expect(waits(9)).toMatchObject({ ok: true, value: { budgets: [{ payments: 10 }] } })
    expect(waits(10)).toMatchObject({ ok: false, refusal: 'conditions_exceeded' })
  })

  test('of its grant count in the window of its request, also if it is confirmed in a later one', () => {
    const { budgetOf, payment } = reservedUnderLimits()
    const { record } = waitingWith(payment, budgetOf, 'wallet01')
    const limits = [{ debitAmount: usd(60), interval }]
    const rights = { access: [item], conditions: { limits } }
    for (const now of [1_010, 1_499, 1_500, 1_999]) {
      expect(refuseByGrant(underGrant(record), rights, 'wallet01', budgetOf, now)).toBeUndefined()
    }
    const lower = { ...rights, conditions: { limits: [{ debitAmount: usd(59), interval }] } }
    expect(refuseByGrant(underGrant(record), lower, 'wallet01', budgetOf, 1_999)).toMatchObject({
      refusal: 'conditions_exceeded',
    })
  })
})

/** What a history does next, at the time that has come. */
type Step =
  | { readonly does: 'passes'; readonly ms: number }
  | { readonly does: 'confirms'; readonly shows: number }
  | { readonly does: 'amends'; readonly most: number }
  | { readonly does: 'answers'; readonly answer: 'allows' | 'refuses' | 'fails' | 'is lost' }
  | { readonly does: 'repeats' | 'declines' | 'sweeps' }

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    does: fc.constant('passes' as const),
    ms: fc.oneof(fc.integer({ min: 1, max: 900 }), fc.integer({ min: 490, max: 600 })),
  }),
  fc.record({
    does: fc.constant('confirms' as const),
    shows: fc.constantFrom(60, 60, 60, 60, 60, 61),
  }),
  fc.record({ does: fc.constant('amends' as const), most: fc.constantFrom(59, 60, 61, 99) }),
  fc.record({
    does: fc.constant('answers' as const),
    answer: fc.constantFrom('allows', 'allows', 'allows', 'refuses', 'fails', 'is lost'),
  }),
  fc.record({ does: fc.constantFrom('repeats' as const, 'declines' as const, 'sweeps' as const) }),
)

const limited = reserveOutgoingPayment(
  {
    ...reserving,
    limits: ownerLimits(
      [{ debitAmount: usd(100), interval }],
      { namespace: '', grantId: 'grant' },
      1_000,
    ),
  },
  1_000,
  policies,
)
if (!limited.ok) throw new Error(limited.reason)
const limitedWaiting = waitingWith(limited.record).record

test('each payment gets one end or is created once, only if it was confirmed as it was shown, and within the limits of the window of its request', () => {
  const seen = { created: 0, later: 0, declined: 0, overLimit: 0, expired: 0 }
  const property = fc.property(fc.array(steps, { maxLength: 12 }), (history) => {
    let payment: PaymentRecord = limitedWaiting
    let counted: readonly Budget[] = [limited.budget, ...limited.limitBudgets]
    const budgetOf: BudgetOf = (id) => counted.find((each) => each.id === id)
    let [now, asks, ends, most] = [1_010, false, 0, 100]
    let isShown = false
    const commit = (next: PaymentRecord, events: readonly { readonly type: string }[] = []) => {
      const [held, left] = [heldBy(payment), heldBy(next)]
      counted = counted.map((each) => release(each, held, left, next.commandId) ?? each)
      payment = next
      ends += events.length
    }
    for (const [index, step] of history.entries()) {
      const commandId = `command ${index}`
      if (step.does === 'passes') now += step.ms
      if (step.does === 'confirms') {
        const said = { ...byAlice, commandId, shown: { ...shown, debitAmount: usd(step.shows) } }
        const decision = confirmAt(payment, said, now)
        if (decision.ok && decision.outcome === 'changed') {
          commit(decision.record)
          isShown ||= step.shows === 60
          asks = true
        }
      }
      if (step.does === 'amends') most = Math.min(most, step.most)
      if (step.does === 'repeats') {
        const decision = decideRepeat(payment, { ...repeat, commandId }, now, policy)
        if (waitsForOwner(payment)) expect(decision).not.toMatchObject({ outcome: 'changed' })
        if (decision?.outcome === 'changed') {
          commit(decision.record)
          asks = true
        }
      }
      if (step.does === 'declines') {
        const decision = declinableByOwner(payment, now)
        if (decision.ok) {
          const declined = declinePayment(
            decision.value,
            confirmationDeclined,
            commandId,
            now,
            policy,
          )
          commit(declined.record, declined.events)
        }
      }
      if (step.does === 'sweeps' && payment.state === 'reserved' && now >= payment.dueAt) {
        if (waitsForOwner(payment)) seen.expired++
        const swept = declinePayment(payment, undecided(payment), commandId, now, policy)
        commit(swept.record, swept.events)
        asks = false
      }
      if (step.does === 'answers' && asks && payment.state === 'reserved') {
        asks = false
        if (step.answer === 'allows') {
          const conditions = { limits: [{ debitAmount: usd(most), interval }] }
          const rights = { access: [item], conditions }
          const refusal = refuseByGrant(underGrant(payment), rights, '', budgetOf, now)
          // Whatever the window of this instant has left: no other payment is in that of the request.
          expect(refusal?.refusal).toBe(most < 60 ? 'conditions_exceeded' : undefined)
          if (refusal !== undefined) seen.overLimit++
          else if (now >= secondWindow) seen.later++
          const made =
            refusal === undefined
              ? createReserved(payment, { commandId, lists: [] }, now, policy)
              : declinePayment(payment, refusal, commandId, now, policy)
          commit(made.record, made.events)
        }
        if (step.answer === 'fails') commit(endAsk(payment, commandId, now))
        if (step.answer === 'refuses') {
          const refusal = { refusal: 'funds_insufficient', reason: 'balance' } as const
          const made = declinePayment(payment, refusal, commandId, now, policy)
          commit(made.record, made.events)
        }
      }
      for (const { spent } of counted) {
        expect(spent.debitAmount).toEqual(usd(payment.state === 'declined' ? 0 : 60))
      }
      expect(payment).toMatchObject({ ...shown, createdAt: 1_000 })
      expect(ends).toBe(payment.state === 'reserved' ? 0 : 1)
    }
    const { state, confirmation } = payment as PaymentRecord
    if (state === 'created') {
      expect(isShown).toBe(true)
      expect(confirmation?.given).toMatchObject({ resourceOwner: 'alice' })
      seen.created++
    }
    if (state === 'declined') seen.declined++
  })
  const numRuns = runs(12_000, 1_000)
  fc.assert(property, { numRuns })
  const atLeast = numRuns / 100
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(atLeast)
})
