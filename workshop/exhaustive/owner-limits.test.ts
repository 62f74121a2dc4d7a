import { describe, expect, test } from 'vitest'
import type { CountedLimit } from '../../src/core/budget/record.js'
import { isLong } from '../../test/support/runs.js'
import {
  type LimitDecisions,
  type LimitSetting,
  limitDecisions,
  minutely,
  ownerLimitsMachine,
  usd,
} from './owner-limits.js'
import { processesOf } from './processes.js'
import { search, told } from './search.js'

/** The number of steps that the searches go in `npm test`. `npm run test:long` visits every reachable state. */
const depthMax = isLong ? Number.POSITIVE_INFINITY : 7

const once = { debitAmount: usd(10), interval: minutely }
const twice = { debitAmount: usd(12), payments: 2, interval: minutely }

const counted = 'each limit counts each of its payments once, until it ends'

const adds: LimitSetting = {
  name: 'one grant to which a limit is added',
  grants: ['a', 'a'],
  owner: [],
  amended: [once],
  account: [{ payments: 2 }],
}
const lowers: LimitSetting = {
  name: 'one grant of which a limit is lowered',
  grants: ['a', 'a'],
  owner: [twice],
  amended: [{ ...twice, payments: 1 }],
  account: [{ payments: 2, interval: minutely }],
}

const shares: LimitSetting = {
  name: 'two grants of one account',
  grants: ['a', 'b'],
  owner: [twice],
  account: [once],
}

describe('limits of owners keep every law in every state within reach', () => {
  test.each([adds, lowers, shares])('$name', (setting) => {
    const found = search(processesOf(ownerLimitsMachine(setting)), depthMax)
    console.log(told(found))
    expect(found.broken).toBeUndefined()
    expect(found.depth === depthMax || found.complete).toBe(true)
  })
})

const { createOutgoingPayment, releasedBudgets } = limitDecisions

const mistakes: readonly (readonly [
  mistake: string,
  law: string,
  setting: LimitSetting,
  decisions: Partial<LimitDecisions>,
])[] = [
  [
    'a payment is created without a guard on its amended grant',
    'no payment exceeds the window of a limit',
    lowers,
    { guards: false },
  ],
  [
    'a payment is created without a guard on a grant to which a limit is added',
    counted,
    adds,
    { guards: false },
  ],
  [
    'the limits of the owner and of the account permit everything',
    'no payment exceeds the window of a limit',
    shares,
    {
      createOutgoingPayment: ({ limits = [], ...command }, ...rest) =>
        createOutgoingPayment({ ...command, limits: limits.map(withoutMaximum) }, ...rest),
    },
  ],
  [
    'a limit of the account does not count the payment',
    counted,
    shares,
    {
      createOutgoingPayment({ limits = [], ...command }, ...rest) {
        const kept = limits.filter(({ source }) => source === 'owner')
        return createOutgoingPayment({ ...command, limits: kept }, ...rest)
      },
    },
  ],
  [
    'the end of a payment is released in the limit of the client alone',
    counted,
    lowers,
    {
      releasedBudgets: (...args) => releasedBudgets(...args).filter(({ itemId }) => itemId),
    },
  ],
  [
    'a payment that ended with nothing sent still counts as one',
    counted,
    adds,
    {
      releasedBudgets: (before, after, budgetOf) =>
        releasedBudgets(before, after, budgetOf).map((budget) => {
          const { payments } = budgetOf(budget.id) ?? {}
          return payments === undefined ? budget : { ...budget, payments }
        }),
    },
  ],
]

/** A limit that counts and permits everything. */
function withoutMaximum({ open, ...limit }: CountedLimit): CountedLimit {
  if (open === undefined) return limit
  const { limitedAmount: _limitedAmount, payments: _payments, ...kept } = open
  return { ...limit, open: kept }
}

describe('the search finds each planted mistake', () => {
  test.each(mistakes)('%s', (_, law, setting, decisions) => {
    const machine = ownerLimitsMachine(setting, { ...limitDecisions, ...decisions })
    const { broken } = search(processesOf(machine))
    expect(broken?.law, broken?.path.join('\n')).toBe(law)
  })
})
