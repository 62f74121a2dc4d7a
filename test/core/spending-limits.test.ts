import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limits } from '../../src/core/access.js'
import { budgetId } from '../../src/core/budget/paying-items.js'
import { type Budget, type CountedLimit, keep } from '../../src/core/budget/record.js'
import { decideSpending } from '../../src/core/budget.js'
import { allowanceAt, type GrantConditions, type SpendingLimit } from '../../src/core/limits.js'
import { createOutgoingPayment } from '../../src/core/outgoing-payment/create.js'
import {
  budgetIdsOf,
  hasEnded,
  heldBy,
  type OutgoingPayment,
  releasedBudgets,
} from '../../src/core/outgoing-payment/record.js'
import { decideOutgoingPayment } from '../../src/core/outgoing-payment.js'
import {
  accountLimits,
  narrowedLimits,
  ownerLimits,
  type SetLimit,
} from '../../src/core/spending-limits.js'
import { resourceErrors } from '../../src/http/public-errors.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { runs } from '../support/runs.js'
import {
  budgetPolicy,
  creation,
  dollars,
  euros,
  item,
  paymentPolicy,
} from '../support/spending-life.js'

const now = startOfTests
const hour = 3_600_000
const namespace = 'namespac'
const walletAddress = 'https://wallet.example/alice'
const grant = { namespace, grantId: 'namespac-grant' }
const account = { namespace, walletAddress, accountHash: 'hash-of-the-account' }
const policy = { ...paymentPolicy, ...budgetPolicy }
const hourly = 'R/2026-11-21T12:00:00Z/PT1H'
const charge = { commandId: 'command-1', ...grant }

const spending = (value: number) => ({
  receiver: 'https://bank.example/incoming-payments/1',
  debitAmount: dollars(value),
  receiveAmount: euros(value),
})

/** Returns limits with the budgets that count their payments. */
function counted(limits: readonly SetLimit[], budgets: readonly Budget[] = []) {
  return limits.map((limit): CountedLimit => {
    const budget = budgets.find(({ id }) => id === limit.open?.budgetId)
    return budget === undefined ? limit : { ...limit, budget }
  })
}

function spend(value: number, limits: readonly CountedLimit[], limitsOfItem?: Limits) {
  const candidates = [{ item: item(limitsOfItem) }]
  return decideSpending(
    candidates,
    spending(value),
    charge,
    now,
    budgetPolicy,
    deepFreeze({ limits }),
  )
}

/** The budgets after a payment that must be accepted. */
function taken(value: number, limits: readonly CountedLimit[]): readonly Budget[] {
  const charged = spend(value, limits)
  if (!charged.ok) throw new Error(charged.reason)
  return charged.value.limitBudgets
}

describe('a limit that the owner has set', () => {
  test('has a budget of its own for a grant, with the number of payments', () => {
    const set = ownerLimits(
      [{ payments: 3, interval: hourly }, { debitAmount: dollars(90) }],
      grant,
      now,
    )
    const retainUntil = now + hour + budgetPolicy.retentionMs
    const spent = { debitAmount: dollars(40), receiveAmount: euros(40) }
    const common = {
      version: 1,
      commandId: 'command-1',
      grantId: grant.grantId,
      spent,
      payments: 1,
    }
    expect(taken(40, counted(set))).toEqual([
      {
        ...common,
        id: `namespacnamespac-grant.owner.${now}_${now + hour}`,
        windowStart: now,
        windowEnd: now + hour,
        dueAt: retainUntil,
        retainUntil,
      },
      { ...common, id: 'namespacnamespac-grant.owner.life', dueAt: now + budgetPolicy.retentionMs },
    ])
  })

  test('has one for an account, which no sweep removes if it has no window', () => {
    const [set, ...others] = taken(40, counted(accountLimits([{ payments: 3 }], account, now)))
    expect(others).toEqual([])
    expect(set).toEqual({
      id: 'namespacaccount.hash-of-the-account.life',
      version: 1,
      commandId: 'command-1',
      walletAddress,
      spent: { debitAmount: dollars(40), receiveAmount: euros(40) },
      payments: 1,
    })
    expect(set && keep(set, 'sweep', now, budgetPolicy)).toMatchObject({ version: 2, payments: 1 })
  })

  test('names who has set it, also outside its windows', () => {
    const limits = [{ payments: 3 }, { payments: 1, interval: 'R1/2020-01-01T00:00:00Z/PT1H' }]
    const sources = (set: readonly SetLimit[]) =>
      set.map(({ source, open }) => [source, open?.source])
    const owner = [
      ['owner', 'owner'],
      ['owner', undefined],
    ]
    expect(sources(ownerLimits(limits, grant, now))).toEqual(owner)
    expect(sources(accountLimits(limits, account, now))).toEqual([
      ['account', 'account'],
      ['account', undefined],
    ])
  })

  test('shares its budget with a limit whose open window is the same, and is charged once', () => {
    const inWords = '2026-11-21T12:00:00Z/2026-11-21T13:00:00Z'
    const limits = [
      { payments: 3, interval: hourly },
      { payments: 1, interval: `R1/${inWords}` },
    ]
    const set = ownerLimits(limits, grant, now)
    const budgets = taken(40, counted(set))
    expect(budgets).toMatchObject([{ payments: 1, spent: { debitAmount: dollars(40) } }])
    expect(spend(1, counted(set, budgets))).toMatchObject({ refusal: 'conditions_exceeded' })
  })

  test('has the ids of a store, whatever the window and the client', () => {
    const before1970 = 'R/1970-01-01T00:00:00Z/P1000Y'
    const longest = { ...grant, grantId: 'g'.repeat(64) }
    const set = [
      ...ownerLimits([{ payments: 1 }, { payments: 1, interval: before1970 }], longest, now),
      ...accountLimits(
        [{ payments: 1, interval: hourly }],
        { ...account, accountHash: 'h'.repeat(43) },
        now,
      ),
    ]
    const ids = set.map(({ open }) => open?.budgetId)
    expect(new Set(ids).size).toBe(3)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{8,128}$/)
  })
})

describe('a payment that exceeds a limit of the owner', () => {
  const refusedBy = (limit: SpendingLimit, value: number, earlier: readonly number[] = []) => {
    const refusals = [ownerLimits([limit], grant, now), accountLimits([limit], account, now)].map(
      (set) => {
        const budgets = earlier.reduce<readonly Budget[]>(
          (budgets, value) => taken(value, counted(set, budgets)),
          [],
        )
        const charged = spend(value, counted(set, budgets))
        return charged.ok ? 'charged' : charged
      },
    )
    const [ofGrant, ofAccount] = refusals
    if (ofGrant === 'charged' || ofAccount === 'charged' || !ofGrant || !ofAccount) return refusals
    expect([ofGrant.details, ofAccount.details]).toEqual([undefined, undefined])
    expect([ofGrant.refusal, ofAccount.refusal]).toEqual([
      'conditions_exceeded',
      'account_limit_exceeded',
    ])
    return 'refused'
  }

  test.each<[string, SpendingLimit, number, readonly number[]]>([
    ['an amount', { debitAmount: dollars(100) }, 61, [40]],
    ['a count', { payments: 2 }, 1, [1, 1]],
    ['an amount in a window', { debitAmount: dollars(100), interval: hourly }, 61, [40]],
    ['a count in a window', { payments: 1, interval: hourly }, 1, [1]],
    ['more than a whole window', { debitAmount: dollars(100), interval: hourly }, 101, []],
    ['another asset', { debitAmount: euros(100), interval: hourly }, 1, []],
    ['windows that begin later', { payments: 1, interval: 'R/2026-11-21T13:00:00Z/PT1H' }, 1, []],
    ['windows that are over', { payments: 1, interval: 'R1/2020-01-01T00:00:00Z/PT1H' }, 1, []],
  ])('is refused for %s, and learns nothing about it', (_, limit, value, earlier) => {
    expect(refusedBy(limit, value, earlier)).toBe('refused')
  })

  test('is refused if the budget is unreadable', () => {
    const set = ownerLimits([{ payments: 9 }], grant, now)
    const [budget] = taken(1, counted(set))
    for (const payments of [Number.NaN, -1, undefined]) {
      const broken = { ...budget, payments } as Budget
      expect(spend(1, counted(set, [broken]))).toHaveProperty('refusal')
    }
  })

  test('learns of its own limit what is left, and when the next window begins', () => {
    const own = item({ debitAmount: dollars(100), interval: hourly })
    const allowance = allowanceAt(own, now)
    const id = allowance.ok ? budgetId(charge, own, allowance.value) : ''
    const budget: Budget = {
      ...{ id, version: 1, commandId: 'command-0', grantId: grant.grantId, itemId: '1' },
      spent: { debitAmount: dollars(40), receiveAmount: euros(40) },
    }
    const decided = (value: number, interval = hourly) => {
      const limited = item({ debitAmount: dollars(100), interval })
      return decideSpending([{ item: limited, budget }], spending(value), charge, now, budgetPolicy)
    }
    const path = 'limits.debitAmount'
    const details = { path, problem: 'leaves less than this payment', left: dollars(60) }
    const nextWindowAt = '2026-11-21T13:00:00.000Z'
    expect(decided(61)).toMatchObject({ details: { ...details, nextWindowAt } })
    const last = decided(61, `R1/${hourly.slice(2)}`)
    expect(last.ok || last.details).toEqual(details)
    const never = decided(101)
    const tooMuch = { path, problem: 'is less than this payment' }
    expect(never.ok || never.details).toEqual(tooMuch)
    const later = 'R/2026-11-21T13:00:00Z/PT1H'
    const tooEarly = { path: 'limits.interval', problem: 'has no window at this time' }
    expect(decided(100, later)).toMatchObject({ details: { ...tooEarly, nextWindowAt } })
    const neverLater = decided(101, later)
    expect(neverLater.ok || neverLater.details).toEqual(tooMuch)
  })

  test('learns of several items when the first of them may cover it', () => {
    const [hour, day] = [hourly, 'R/2026-11-21T00:00:00Z/P1D']
    const candidates = (intervals: readonly (string | undefined)[]) =>
      intervals.map((interval, index) => {
        const limits = { debitAmount: dollars(9), ...(interval !== undefined && { interval }) }
        const limited = item(limits, `${index}`)
        const allowance = allowanceAt(limited, now)
        const id = allowance.ok ? budgetId(charge, limited, allowance.value) : ''
        const known = { version: 1, commandId: 'command-0', grantId: grant.grantId }
        const spent = { debitAmount: dollars(9), receiveAmount: euros(9) }
        return { item: limited, budget: { ...known, id, itemId: `${index}`, spent } }
      })
    const told = (...intervals: readonly (string | undefined)[]) => {
      const decided = decideSpending(candidates(intervals), spending(5), charge, now, budgetPolicy)
      return decided.ok ? undefined : decided.details?.['nextWindowAt']
    }
    const nextHour = '2026-11-21T13:00:00.000Z'
    expect([told(hour, day), told(day, hour), told(day, undefined, hour)]).toEqual([
      nextHour,
      nextHour,
      nextHour,
    ])
    expect(told(undefined)).toBeUndefined()
  })

  test('gets the same refusals whatever the owner has set, so that no search reads it', () => {
    const owned = fc.record(
      {
        limits: fc.array(
          fc.record(
            {
              debitAmount: fc.integer({ min: 1, max: 99 }).map(dollars),
              payments: fc.integer({ min: 1, max: 3 }),
              interval: fc.constantFrom(hourly, 'R1/2026-11-21T13:00:00Z/PT1H'),
            },
            { requiredKeys: [] },
          ),
          { maxLength: 2 },
        ),
        paymentMax: fc.integer({ min: 1, max: 99 }).map(dollars),
        pausedUntil: fc.constantFrom(now - 1, now + 1),
        ofAccount: fc.boolean(),
      },
      { requiredKeys: ['limits', 'ofAccount'] },
    )
    const shown = new Set<string>()
    const property = fc.property(
      fc.record({ most: fc.integer({ min: 1, max: 99 }), spent: fc.integer({ min: 0, max: 99 }) }),
      fc.array(owned, { minLength: 2, maxLength: 2 }),
      fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1, maxLength: 17 }),
      ({ most, spent }, owners, values) => {
        const limited = item({ debitAmount: dollars(most), interval: hourly })
        const allowance = allowanceAt(limited, now)
        const id = allowance.ok ? budgetId(charge, limited, allowance.value) : ''
        const known = { version: 1, commandId: 'command-0', grantId: grant.grantId, itemId: '1' }
        const amounts = { debitAmount: dollars(spent), receiveAmount: euros(spent) }
        const candidate = { item: limited, budget: { ...known, id, spent: amounts } }
        const answer = (
          value: number,
          { limits, ofAccount, ...conditions }: (typeof owners)[0],
        ) => {
          const set = ofAccount
            ? accountLimits(limits, account, now)
            : ownerLimits(limits, grant, now)
          const rules = { conditions, limits: counted(set) }
          const decided = decideSpending(
            [candidate],
            spending(value),
            charge,
            now,
            budgetPolicy,
            rules,
          )
          if (decided.ok) return undefined
          const [status, code, description] = resourceErrors[decided.refusal]
          return JSON.stringify([status, code, description, decided.details])
        }
        for (const value of values) {
          const [one, other] = owners.map((owner) => answer(value, owner))
          if (one !== undefined && other !== undefined) expect(one).toBe(other)
          if (one !== undefined) shown.add(one.split('"')[1] ?? '')
        }
      },
    )
    fc.assert(property, { numRuns: runs(6_000, 500) })
    expect([...shown].toSorted()).toEqual(['insufficient_grant', 'not_permitted_now'])
  })

  test('learns of its own limit first', () => {
    const set = counted(ownerLimits([{ debitAmount: dollars(10) }], grant, now))
    expect(spend(11, set, { debitAmount: dollars(5) })).toMatchObject({
      refusal: 'limits_exceeded',
    })
    expect(spend(11, set, { debitAmount: dollars(50) })).toMatchObject({
      refusal: 'conditions_exceeded',
    })
  })
})

/** A limit by its length of window in hours, or without windows. */
const limitOf = (hours: number | undefined) =>
  fc
    .record(
      {
        debitAmount: fc.integer({ min: 20, max: 150 }).map(dollars),
        payments: fc.integer({ min: 1, max: 8 }),
      },
      { requiredKeys: [] },
    )
    .map((limit): SpendingLimit => {
      const some = Object.keys(limit).length > 0 ? limit : { payments: 5 }
      return hours === undefined
        ? some
        : { ...some, interval: `R/2026-11-21T12:00:00Z/PT${hours}H` }
    })

const limitsOf = fc
  .tuple(limitOf(undefined), limitOf(1), limitOf(2), limitOf(3))
  .chain((limits) => fc.subarray(limits, { maxLength: 3 }))

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('pay' as const),
      value: fc.integer({ min: 1, max: 60 }),
      grant: fc.constantFrom(0, 0, 1),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat({ max: 9 }),
      percent: fc.constantFrom(0, 0, 30, 100),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('amend' as const), limits: limitsOf }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cap' as const), limits: limitsOf }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(1, hour / 2, hour - 1, hour),
    }),
  },
)

interface Counted {
  payment: OutgoingPayment
  /** The limits that count it: of which scope, and from when to when, by an own calculation. */
  readonly by: ReadonlySet<string>
}

/** Names the window of a limit. Every interval of these tests begins at the start and has hours. */
function windowName(scope: string, { interval }: SpendingLimit, at: number): string {
  if (interval === undefined) return `${scope} for ever`
  const length = Number(interval.slice(interval.indexOf('PT') + 2, -1)) * hour
  const start = Math.floor((at - startOfTests) / length) * length
  return `${scope} ${start} to ${start + length}`
}

describe('any order of payments, ends, amendments, other caps and windows', () => {
  test('keeps every limit, counts each payment once in each, and refuses only what does not fit', () => {
    const met = new Set<string>()
    const histories = fc.record({
      owners: limitsOf,
      caps: limitsOf,
      steps: fc.array(step, { maxLength: 40, size: '+1' }),
    })
    fc.assert(
      fc.property(histories, ({ owners, caps, steps }) => {
        const budgets = new Map<string, Budget>()
        const paid: Counted[] = []
        // Two grants of one account, of which the owner limits the first.
        let conditions: GrantConditions = owners.length > 0 ? { limits: owners } : {}
        let cap: readonly SpendingLimit[] = caps
        let at = startOfTests
        for (const [index, each] of steps.entries()) {
          const commandId = `command-${index}`
          if (each.do === 'pass') at += each.ms
          if (each.do === 'cap') cap = each.limits
          if (each.do === 'amend') {
            const limits = narrowedLimits(conditions.limits ?? [], each.limits)
            if (limits !== undefined) conditions = limits.length > 0 ? { limits } : {}
          }
          if (each.do === 'end') {
            const one = paid[each.which % Math.max(paid.length, 1)]
            if (one === undefined || hasEnded(one.payment)) continue
            const { payment: before } = one
            const begun = decideOutgoingPayment<'begin'>(
              before,
              { type: 'begin', commandId },
              at,
              policy,
            )
            if (!begun.ok) continue
            const share = (of: { value: string }) =>
              (BigInt(of.value) * BigInt(each.percent)) / 100n
            const totals = {
              sentAmount: dollars(share(before.debitAmount)),
              deliveredAmount: euros(share(before.receiveAmount)),
            }
            const id = `${commandId}-end`
            const ended =
              each.percent === 100
                ? decideOutgoingPayment<'report-sent'>(
                    begun.record,
                    { type: 'report-sent', commandId: id, ...totals },
                    at,
                    policy,
                  )
                : decideOutgoingPayment<'fail'>(
                    begun.record,
                    { type: 'fail', commandId: id, ...totals },
                    at,
                    policy,
                  )
            if (!ended.ok) throw new Error(ended.reason)
            for (const budget of releasedBudgets(begun.record, ended.record, (key) =>
              budgets.get(key),
            )) {
              budgets.set(budget.id, deepFreeze(budget))
            }
            // A repeat of the end releases nothing.
            expect(releasedBudgets(ended.record, ended.record, (key) => budgets.get(key))).toEqual(
              [],
            )
            one.payment = ended.record
          }
          if (each.do === 'pay') {
            const grantId = each.grant === 0 ? grant.grantId : 'namespac-other'
            const mine = each.grant === 0 ? (conditions.limits ?? []) : []
            const set = [
              ...ownerLimits(mine, { namespace, grantId }, at),
              ...accountLimits(cap, account, at),
            ]
            const own = item()
            const ownBudget = budgets.get(`${namespace}${grantId}.1.life`)
            const command = creation({
              ...spending(each.value),
              ...{ id: `namespac-payment-${index}`, commandId, grantId },
              candidates: [ownBudget ? { item: own, budget: ownBudget } : { item: own }],
              limits: counted(set, [...budgets.values()]),
            })
            const decision = createOutgoingPayment(deepFreeze(command), at, policy)
            const names = [
              ...mine.map(
                (limit) => [windowName(`grant ${each.grant}`, limit, at), limit] as const,
              ),
              ...cap.map((limit) => [windowName('account', limit, at), limit] as const),
            ]
            const fits = names.every(([name, { debitAmount, payments }]) => {
              const held = paid
                .filter(({ by }) => by.has(name))
                .map(({ payment }) => heldBy(payment))
              const sum = held.reduce((total, { debitAmount }) => total + debitAmount, 0n)
              const count = held.reduce((total, { payments }) => total + payments, 0)
              return (
                sum + BigInt(each.value) <=
                  BigInt(debitAmount?.value ?? sum + BigInt(each.value)) &&
                count < (payments ?? count + 1)
              )
            })
            met.add(`pay: ${decision.ok ? 'ok' : decision.refusal}`)
            expect(decision.ok).toBe(fits)
            if (!decision.ok) continue
            const by = new Set(names.map(([name]) => name))
            expect(decision.record.limitBudgetIds?.length ?? 0).toBe(by.size)
            expect('limitBudgetIds' in decision.record).toBe(by.size > 0)
            paid.push({ payment: decision.record, by })
            for (const budget of [decision.budget, ...decision.limitBudgets]) {
              expect(budget.version).toBe((budgets.get(budget.id)?.version ?? 0) + 1)
              budgets.set(budget.id, deepFreeze(budget))
            }
          }
          // Each budget is the sum of what its payments hold, and of nothing else.
          for (const [id, { spent, payments }] of budgets) {
            const held = paid
              .filter(({ payment }) => budgetIdsOf(payment).includes(id))
              .map(({ payment }) => heldBy(payment))
            expect(spent.debitAmount).toEqual(
              dollars(held.reduce((sum, one) => sum + one.debitAmount, 0n)),
            )
            if (payments === undefined) continue
            expect(payments).toBe(held.reduce((sum, one) => sum + one.payments, 0))
          }
        }
      }),
      { numRuns: runs(2_000, 150) },
    )
    expect([...met].sort()).toEqual([
      'pay: account_limit_exceeded',
      'pay: conditions_exceeded',
      'pay: ok',
    ])
  })

  test('is not affected by limits in the records of a payment that has none', () => {
    const plain = createOutgoingPayment(deepFreeze(creation()), now, policy)
    const with0 = createOutgoingPayment(deepFreeze(creation({ limits: [] })), now, policy)
    expect(JSON.stringify(with0)).toBe(JSON.stringify(plain))
    expect(plain.ok && Object.keys(plain.record)).not.toContain('limitBudgetIds')
    expect(plain.ok && Object.keys(plain.budget)).not.toContain('payments')
  })
})
