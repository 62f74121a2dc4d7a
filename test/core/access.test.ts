import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AccessAction,
  type AccessItem,
  type AccessType,
  accessActions,
  allowsSame,
  covers,
  coversAll,
  endOfItems,
  grantedItems,
  isWellFormed,
  type Limits,
  needsIdentifier,
  permits,
  publicItem,
  tokenItem,
} from '../../src/core/access.js'
import type { Amount } from '../../src/core/amount.js'
import { accessItem, alice, bob } from '../support/grants.js'
import { runs } from '../support/runs.js'

const usd = (value: string): Amount => ({ value, assetCode: 'USD', assetScale: 2 })

function outgoing(limits: Limits | undefined = undefined, more: Partial<AccessItem> = {}) {
  const item: AccessItem = {
    type: 'outgoing-payment',
    actions: ['create', 'read'],
    identifier: alice,
    ...more,
  }
  return limits === undefined ? item : { ...item, limits }
}

function incoming(actions: readonly AccessAction[], identifier?: string): AccessItem {
  const item = { type: 'incoming-payment', actions } as const
  return identifier === undefined ? item : { ...item, identifier }
}

const monthly = 'R/2025-05-20T13:00:00Z/P1M'
const receiver = `${bob}/incoming-payments/1`

const every = (interval: string) => outgoing({ interval })
const debit = (value: string, interval?: string) =>
  outgoing({ ...(interval && { interval }), debitAmount: usd(value) })
const receive = (value: string, interval?: string) =>
  outgoing({ ...(interval && { interval }), receiveAmount: usd(value) })

describe('narrowing one access item', () => {
  test.each<readonly [how: string, wide: AccessItem, narrow: AccessItem]>([
    ['itself', debit('100'), debit('100')],
    ['fewer actions', outgoing(), outgoing(undefined, { actions: ['read'] })],
    [
      'the same actions in another order',
      outgoing(),
      outgoing(undefined, { actions: ['read', 'create'] }),
    ],
    ['read instead of read-all', incoming(['read-all']), incoming(['read'])],
    ['list instead of list-all', incoming(['list-all']), incoming(['list'])],
    ['an identifier where the wide item has none', incoming(['create']), incoming(['create'], bob)],
    ['limits where the wide item has none', outgoing(), debit('1')],
    ['empty limits, which limit nothing', outgoing(), outgoing({})],
    ['no limits instead of empty limits', outgoing({}), outgoing()],
    [
      'a receiver where the wide item has none',
      debit('1'),
      outgoing({ debitAmount: usd('1'), receiver }),
    ],
    ['a smaller debit amount', debit('900'), debit('100')],
    ['a smaller receive amount', receive('100'), receive('1')],
    ['an amount of zero', debit('100'), debit('0')],
    ['an amount that is smaller as a number, although not as a string', debit('100'), debit('99')],
    [
      'an amount smaller by one, beyond the precision of a double',
      debit('9007199254740993'),
      debit('9007199254740992'),
    ],
    ['a smaller amount in the same interval', debit('100', monthly), debit('50', monthly)],
    ['an amount where the wide item has only an interval', every(monthly), debit('50', monthly)],
    [
      'fewer repetitions',
      every('R3/2025-05-20T13:00:00Z/P1M'),
      every('R2/2025-05-20T13:00:00Z/P1M'),
    ],
    [
      'the same interval with different spelling',
      every(monthly),
      every('R/2025-05-20T13:00:00+00:00/P1M'),
    ],
    [
      'the same interval with R-1 instead of R',
      every(monthly),
      every('R-1/2025-05-20T13:00:00Z/P1M'),
    ],
    [
      'a later start at the start of a window',
      debit('5', monthly),
      debit('4', 'R6/2025-07-20T13:00:00Z/P1M'),
    ],
    ['an end where the interval has none', every(monthly), every('R3/P1M/2025-08-20T13:00:00Z')],
    [
      'one window where the amount was for the life of the grant',
      debit('5'),
      debit('5', 'R1/2025-05-20T13:00:00Z/P1M'),
    ],
    [
      'one window before an end where the amount was for the life of the grant',
      receive('5'),
      receive('5', 'R1/P1M/2025-08-20T13:00:00Z'),
    ],
    ['an interval where there were no limits', outgoing(), debit('5', monthly)],
  ])('allows %s', (_, wide, narrow) => {
    expect(covers(wide, narrow)).toBe(true)
    expect(coversAll([wide], [narrow])).toBe(true)
  })

  test.each<readonly [how: string, wide: AccessItem, narrow: AccessItem]>([
    ['another type', outgoing(), incoming(['create', 'read'], alice)],
    [
      'an additional action',
      outgoing(),
      outgoing(undefined, { actions: ['create', 'read', 'list'] }),
    ],
    ['read-all instead of read', incoming(['read']), incoming(['read-all'])],
    ['list-all instead of list', incoming(['list']), incoming(['list-all'])],
    ['list instead of read-all', incoming(['read-all']), incoming(['list'])],
    ['read instead of create', incoming(['create']), incoming(['read'])],
    ['complete instead of create', incoming(['create']), incoming(['complete'])],
    ['another identifier', outgoing(), outgoing(undefined, { identifier: bob })],
    [
      'an identifier that differs in case',
      outgoing(),
      outgoing(undefined, { identifier: alice.toUpperCase() }),
    ],
    [
      'an identifier that extends the original one',
      outgoing(),
      outgoing(undefined, { identifier: `${alice}/` }),
    ],
    ['no identifier where the wide item has one', incoming(['create'], bob), incoming(['create'])],
    ['another receiver', outgoing({ receiver }), outgoing({ receiver: `${receiver}2` })],
    [
      'no receiver where the wide item has one',
      outgoing({ receiver, debitAmount: usd('1') }),
      debit('1'),
    ],
    ['no limits where the wide item has limits', debit('1'), outgoing()],
    [
      'no amount where the wide item has one',
      outgoing({ receiver, debitAmount: usd('1') }),
      outgoing({ receiver }),
    ],
    ['a larger amount', debit('100'), debit('101')],
    ['an amount that is larger as a number, although not as a string', debit('9'), debit('10')],
    [
      'an amount larger by one, beyond the precision of a double',
      debit('9007199254740992'),
      debit('9007199254740993'),
    ],
    ['the other amount (receive instead of debit)', debit('100'), receive('100')],
    ['another asset', debit('100'), outgoing({ debitAmount: { ...usd('1'), assetCode: 'JPY' } })],
    [
      'another scale, although the value is lower',
      debit('100'),
      outgoing({ debitAmount: { ...usd('1'), assetScale: 4 } }),
    ],
    ['an interval where the wide item has none', debit('1'), debit('1', monthly)],
    [
      'an interval where the amount that arrives is for the life of the grant',
      receive('1'),
      receive('1', monthly),
    ],
    ['no interval where the wide item has one', every(monthly), outgoing({})],
    ['another interval', every(monthly), every('R/2025-05-20T13:00:00Z/P1D')],
    ['a longer interval', every(monthly), every('R/2025-05-20T13:00:00Z/P1Y')],
    [
      'a start between two windows, so that a month could contain two amounts',
      debit('1', monthly),
      debit('1', 'R/2025-06-01T13:00:00Z/P1M'),
    ],
    ['an earlier start', every(monthly), every('R/2025-04-20T13:00:00Z/P1M')],
    [
      'more repetitions',
      every('R3/2025-05-20T13:00:00Z/P1M'),
      every('R4/2025-05-20T13:00:00Z/P1M'),
    ],
    [
      'as many repetitions from a later start, which end later',
      every('R3/2025-05-20T13:00:00Z/P1M'),
      every('R3/2025-06-20T13:00:00Z/P1M'),
    ],
    [
      'two windows where the amount was for the life of the grant',
      debit('1'),
      debit('1', 'R2/2025-05-20T13:00:00Z/P1M'),
    ],
    ['a text that is not an interval', every(monthly), every('always')],
  ])('does not allow %s', (_, wide, narrow) => {
    expect(covers(wide, narrow)).toBe(false)
    expect(coversAll([wide], [narrow])).toBe(false)
  })

  test.each([
    ['words', 'all of it'],
    ['nothing', ''],
    ['a negative number', '-1'],
    ['a smaller amount with a leading zero', '050'],
    ['a smaller amount in hexadecimal', '0x10'],
    ['a smaller amount surrounded by spaces', ' 5 '],
    ['a fraction', '1.5'],
  ])('does not allow an invalid amount: %s', (_, value) => {
    const wide = debit('100')
    expect(covers(wide, outgoing({ debitAmount: usd(value) }))).toBe(false)
    expect(covers(outgoing({ debitAmount: usd(value) }), wide)).toBe(false)
  })

  test('every item covers itself', () => {
    fc.assert(
      fc.property(accessItem, (item) => {
        expect(covers(item, item)).toBe(true)
      }),
      { numRuns: runs(500) },
    )
  })

  test('coverage is transitive', () => {
    for (const [a, coveredByA] of pairs) {
      for (const b of coveredByA) {
        const beyondA = (pairs.get(b) ?? []).filter((c) => !coveredByA.includes(c))
        expect(beyondA, JSON.stringify({ a, b })).toEqual([])
      }
    }
  })

  test('items that cover each other are equal, except for read beside read-all', () => {
    for (const [a, coveredByA] of pairs) {
      for (const b of coveredByA.filter((b) => pairs.get(b)?.includes(a))) {
        const { actions: actionsOfA, ...restOfA } = a
        const { actions: actionsOfB, ...restOfB } = b
        expect(restOfA).toEqual(restOfB)
        expect(withoutRead(actionsOfA)).toEqual(withoutRead(actionsOfB))
      }
    }
  })
})

function withoutRead(actions: readonly AccessAction[]) {
  return actions.includes('read-all') ? actions.filter((action) => action !== 'read') : actions
}

/** Every item that a few values can form, so that items often cover each other. */
const fewForms: readonly AccessItem[] = product(
  [['create'], ['create', 'read'], ['create', 'read-all'], ['create', 'read', 'read-all']] as const,
  [{}, { identifier: bob }],
  [
    {},
    { debitAmount: usd('1') },
    { debitAmount: usd('9') },
    { debitAmount: usd('10') },
    { debitAmount: { ...usd('1'), assetCode: 'EUR' } },
  ],
  [{}, { interval: monthly }],
  [{}, { receiver }],
).map(([actions, identifier, amount, interval, receiver]) => ({
  type: 'outgoing-payment',
  actions,
  ...identifier,
  limits: { ...amount, ...interval, ...receiver },
}))

const closeItem = fc.constantFrom(...fewForms)

/** The items that each item covers. */
const pairs = new Map(fewForms.map((a) => [a, fewForms.filter((b) => covers(a, b))]))

function product<A, B, C, D, E>(
  as: readonly A[],
  bs: readonly B[],
  cs: readonly C[],
  ds: readonly D[],
  es: readonly E[],
): [A, B, C, D, E][] {
  return as.flatMap((a) =>
    bs.flatMap((b) =>
      cs.flatMap((c) => ds.flatMap((d) => es.map((e): [A, B, C, D, E] => [a, b, c, d, e]))),
    ),
  )
}

describe('two access items allow the same', () => {
  test.each<readonly [how: string, one: AccessItem, other: AccessItem, same: boolean]>([
    [
      'with actions in another order',
      incoming(['create', 'read']),
      incoming(['read', 'create']),
      true,
    ],
    ['with read besides read-all', incoming(['read-all']), incoming(['read', 'read-all']), true],
    ['with empty limits instead of none', outgoing({}), outgoing(), true],
    ['but not with one action more', incoming(['create']), incoming(['create', 'read']), false],
    ['but not with an identifier', incoming(['create']), incoming(['create'], bob), false],
    ['but not with another maximum', debit('1'), debit('2'), false],
    ['but not with a receiver', outgoing(), outgoing({ receiver }), false],
  ])('%s', (_, one, other, same) => {
    expect(allowsSame(one, other)).toBe(same)
    expect(allowsSame(other, one)).toBe(same)
  })
})

describe('narrowing several access items', () => {
  const small = debit('10')
  const large = debit('100')

  test.each<readonly [how: string, wide: AccessItem[], narrow: AccessItem[]]>([
    ['no items where there are none', [], []],
    ['nothing', [large], []],
    ['one of two items', [large, incoming(['create'])], [incoming(['create'])]],
    ['the same items in another order', [large, small], [small, large]],
    // A greedy pairing would use the only item that covers the large one.
    [
      'a pairing that reserves the large item for the item that only it covers',
      [large, small],
      [small, large],
    ],
    [
      'three items that pair in only one way',
      [debit('3'), debit('2'), debit('1')],
      [debit('1'), debit('2'), debit('3')],
    ],
  ])('allows %s', (_, wide, narrow) => {
    expect(coversAll(wide, narrow)).toBe(true)
  })

  test.each<readonly [how: string, wide: AccessItem[], narrow: AccessItem[]]>([
    ['any item where there are none', [], [small]],
    ['two items under one, which would use its budget twice', [large], [small, small]],
    ['two halves of one item, although their sum fits', [debit('20')], [small, small]],
    [
      'one item split by actions',
      [outgoing()],
      [outgoing(undefined, { actions: ['create'] }), outgoing(undefined, { actions: ['read'] })],
    ],
    [
      'two items merged into one',
      [incoming(['create'], bob), incoming(['read'], bob)],
      [incoming(['create', 'read'], bob)],
    ],
    [
      'the actions of one item with the identifier of another',
      [incoming(['create'], alice), incoming(['read'], bob)],
      [incoming(['create'], bob)],
    ],
    ['two large items instead of a large and a small one', [large, small], [large, large]],
    ['more items than the original has', [large, small], [small, small, small]],
  ])('does not allow %s', (_, wide, narrow) => {
    expect(coversAll(wide, narrow)).toBe(false)
  })

  test('agrees with a search through every possible pairing', () => {
    const items = fc.array(closeItem, { maxLength: 4 })
    const outcomes = { covered: 0, not: 0 }
    fc.assert(
      fc.property(items, items, fc.boolean(), (wide, other, mostlyCovered) => {
        // Half of the cases derive from the wide items; otherwise almost none would be covered.
        const narrow = mostlyCovered
          ? [...wide].reverse().concat(other).slice(0, wide.length)
          : other
        const wanted = permutations(wide).some((order) =>
          narrow.every((item, index) => {
            const partner = order[index]
            return partner !== undefined && covers(partner, item)
          }),
        )
        outcomes[wanted && narrow.length > 0 ? 'covered' : 'not']++
        expect(coversAll(wide, narrow)).toBe(wanted)
      }),
      { numRuns: runs(3000) },
    )
    expect(Math.min(outcomes.covered, outcomes.not)).toBeGreaterThan(runs(400))
  })

  test('does not depend on the order of either list', () => {
    const items = fc.array(closeItem, { maxLength: 3 })
    fc.assert(
      fc.property(items, items, (wide, narrow) => {
        expect(coversAll([...wide].reverse(), [...narrow].reverse())).toBe(coversAll(wide, narrow))
      }),
      { numRuns: runs(1000) },
    )
  })

  test('every set covers itself, and coverage is transitive', () => {
    const items = fc.array(closeItem, { maxLength: 3 })
    fc.assert(
      fc.property(items, items, items, (a, b, c) => {
        expect(coversAll(a, a)).toBe(true)
        if (coversAll(a, b) && coversAll(b, c)) expect(coversAll(a, c)).toBe(true)
      }),
      { numRuns: runs(3000) },
    )
  })
})

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, index) =>
    permutations(items.filter((_, other) => other !== index)).map((rest) => [item, ...rest]),
  )
}

describe('finding the item that permits an action', () => {
  test.each<
    readonly [what: string, item: AccessItem, action: AccessAction, address: string | undefined]
  >([
    ['an action by its name', incoming(['create'], bob), 'create', bob],
    ['read through read-all', incoming(['read-all'], bob), 'read', bob],
    ['list through list-all', incoming(['list-all'], bob), 'list', bob],
    ['create at any address without an identifier', incoming(['create']), 'create', bob],
    ['read at any address without an identifier', incoming(['read']), 'read', bob],
    [
      'read at any address through read-all without an identifier',
      incoming(['read-all']),
      'read',
      bob,
    ],
    [
      'list at any address through list-all without an identifier',
      incoming(['list-all']),
      'list',
      bob,
    ],
    ['read-all at its own address', incoming(['read-all'], bob), 'read-all', bob],
    ['read-all at any address without an identifier', incoming(['read-all']), 'read-all', bob],
    ['list-all at its own address', incoming(['list-all'], bob), 'list-all', bob],
    [
      'an action with an identifier when no address is given',
      incoming(['create'], bob),
      'create',
      undefined,
    ],
  ])('permits %s', (_, item, action, address) => {
    expect(permits([item], 'incoming-payment', action, address)).toBe(item)
  })

  test.each<
    readonly [what: string, item: AccessItem, action: AccessAction, address: string | undefined]
  >([
    ['an action that it does not list', incoming(['read'], bob), 'create', bob],
    ['complete through create', incoming(['create'], bob), 'complete', bob],
    ['read-all through read', incoming(['read'], bob), 'read-all', bob],
    ['list-all through list', incoming(['list'], bob), 'list-all', bob],
    ['list through read-all', incoming(['read-all'], bob), 'list', bob],
    ['read through list-all', incoming(['list-all'], bob), 'read', bob],
    ['create through read-all', incoming(['read-all'], bob), 'create', bob],
    ['an action at another address', incoming(['create'], bob), 'create', alice],
    [
      'an action at an address with the same prefix',
      incoming(['create'], bob),
      'create',
      `${bob}by`,
    ],
    ['an action of another type', outgoing(undefined, { identifier: bob }), 'create', bob],
    ['read-all at another address', incoming(['read-all'], bob), 'read-all', alice],
    ['list-all at any address without an identifier', incoming(['list-all']), 'list-all', bob],
  ])('no item permits %s', (_, item, action, address) => {
    expect(permits([item], 'incoming-payment', action, address)).toBeUndefined()
  })

  test('read-all without an identifier covers other clients’ incoming payments only', () => {
    const types = ['incoming-payment', 'outgoing-payment', 'quote'] as const
    const allowed = types.filter((type) =>
      permits([{ type, actions: ['read-all'] }], type, 'read-all', bob),
    )
    expect(allowed).toEqual(['incoming-payment'])
  })

  test('returns the first match in the order of the grant', () => {
    const asked = [
      incoming(['create'], alice),
      incoming(['create', 'read'], bob),
      incoming(['create']),
    ]
    const items = grantedItems(asked, 'occurrences')
    expect(permits(items, 'incoming-payment', 'create', bob)?.itemId).toBe('2')
    expect(
      permits(items, 'incoming-payment', 'create', 'https://wallet.example/carol')?.itemId,
    ).toBe('3')
    expect(permits(items, 'incoming-payment', 'read', alice)).toBeUndefined()
  })

  test('does not combine actions and identifiers of different items', () => {
    const items = [incoming(['create'], alice), incoming(['read'], bob)]
    expect(permits(items, 'incoming-payment', 'create', bob)).toBeUndefined()
    expect(permits(items, 'incoming-payment', 'read', alice)).toBeUndefined()
  })

  test('permits nothing without items', () => {
    expect(permits([], 'quote', 'create')).toBeUndefined()
  })

  test('a narrower item never permits more than the wider one, unless that names no account yet', () => {
    for (const [wide, narrower] of pairs) {
      for (const narrow of narrower) {
        for (const address of [alice, bob]) {
          for (const action of ['create', 'read', 'list'] as const) {
            if (permits([narrow], 'outgoing-payment', action, address) === undefined) continue
            const permitted = permits([wide], 'outgoing-payment', action, address)
            expect(permitted).toBe(wide.identifier === undefined ? undefined : wide)
          }
        }
      }
    }
  })
})

describe('granted and public forms of items', () => {
  test('each granted item gets a unique id and keeps its content', () => {
    fc.assert(
      fc.property(fc.array(accessItem, { maxLength: 5 }), (items) => {
        const granted = grantedItems(items, 'repetitions')
        expect(new Set(granted.map(({ itemId }) => itemId)).size).toBe(items.length)
        expect(granted.map(publicItem)).toEqual(items)
      }),
      { numRuns: runs(200) },
    )
  })

  test('the public form omits the internal members', () => {
    const [granted] = grantedItems([every(monthly)], 'repetitions')
    const shown: object = granted === undefined ? {} : publicItem(granted)
    expect(Object.keys(shown).sort()).toEqual(['actions', 'identifier', 'limits', 'type'])
    const labelled = granted === undefined ? {} : tokenItem({ label: 'one', ...granted })
    expect(labelled).toEqual({ label: 'one', ...shown })
    expect(tokenItem(incoming(['create']))).not.toHaveProperty('label')
  })

  test('the public form omits absent members instead of showing undefined', () => {
    expect(Object.keys(publicItem(incoming(['create']))).sort()).toEqual(['actions', 'type'])
  })
})

describe('the interval counting', () => {
  test('is stored on each item with an interval and on no other item', () => {
    const asked = [every(monthly), debit('1'), outgoing(), incoming(['create'])]
    const countings = ['occurrences', 'repetitions'] as const
    for (const counting of countings) {
      const [limited, ...others] = grantedItems(asked, counting)
      expect(limited?.intervalCounting).toBe(counting)
      for (const other of others) expect(other).not.toHaveProperty('intervalCounting')
    }
  })
})

describe('the end of the granted items', () => {
  const month = every('R1/2025-05-20T13:00:00Z/P1M')
  const quarter = every('R3/2025-05-20T13:00:00Z/P1M')
  const quote: AccessItem = { type: 'quote', actions: ['create'] }
  const june = Date.UTC(2025, 5, 20, 13)
  const august = Date.UTC(2025, 7, 20, 13)

  test.each<readonly [what: string, items: readonly AccessItem[], endsAt: number]>([
    ['its only item', [month], june],
    ['the later of two items when it comes first', [quarter, month], august],
    ['the later of two items when it comes last', [month, quarter], august],
    ['the only other item beside a quote, which is useless alone', [quote, month], june],
    ['an interval that repeats backwards from an end', [every('R/P1M/2025-06-20T13:00:00Z')], june],
  ])('is the end of %s', (_, items, endsAt) => {
    expect(endOfItems(grantedItems(items, 'occurrences'))).toBe(endsAt)
  })

  test.each<readonly [what: string, items: readonly AccessItem[]]>([
    ['nothing', []],
    ['quotes alone', [quote]],
    ['an interval without an end', [every(monthly)]],
    ['limits without an interval', [debit('1')]],
    ['no limits', [outgoing()]],
    ['an interval that cannot be read', [every('every month')]],
    ['an interval with an end beside one without', [month, every(monthly)]],
    ['an interval with an end beside an item without one', [month, incoming(['create'])]],
  ])('does not exist for %s', (_, items) => {
    expect(endOfItems(grantedItems(items, 'occurrences'))).toBeUndefined()
  })

  test('follows the interval counting of each item', () => {
    expect(endOfItems(grantedItems([month], 'repetitions'))).toBe(Date.UTC(2025, 6, 20, 13))
    const mixed = [
      ...grantedItems([quarter], 'occurrences'),
      ...grantedItems([month], 'repetitions'),
    ]
    expect(endOfItems(mixed)).toBe(august)
  })

  test('uses occurrences for items without a stored interval counting', () => {
    expect(endOfItems([{ ...quarter, itemId: '1' }])).toBe(august)
  })
})

describe('an item that the host passes in', () => {
  const types = Object.keys(accessActions) as AccessType[]

  test.each(types)('is well formed with any actions of its type, %s', (type) => {
    const actions = accessActions[type]
    expect(isWellFormed({ type, actions })).toBe(true)
    for (const action of actions) expect(isWellFormed({ type, actions: [action] })).toBe(true)
  })

  test('is well formed with at most one amount, as a limit on outgoing payments', () => {
    expect(isWellFormed(outgoing({}))).toBe(true)
    expect(isWellFormed(outgoing({ receiver, interval: monthly }))).toBe(true)
    expect(isWellFormed(debit('1'))).toBe(true)
    expect(isWellFormed(receive('1'))).toBe(true)
  })

  test.each<readonly [problem: string, item: AccessItem]>([
    ['no action', incoming([])],
    ['an action of another type', outgoing(undefined, { actions: ['create', 'complete'] })],
    ['an unknown type', { ...incoming(['read']), type: 'account' as AccessType }],
    ['a limit on incoming payments', { ...incoming(['read']), limits: { receiver } }],
    ['two amounts', outgoing({ debitAmount: usd('1'), receiveAmount: usd('1') })],
    ['an amount that cannot be read', debit('1.5')],
  ])('is not well formed with %s', (_, item) => {
    expect(isWellFormed(item)).toBe(false)
  })
})

test('an action includes itself, read-all includes read, list-all includes list, and that is all', () => {
  const actions = accessActions['incoming-payment']
  const included = actions.flatMap((granted) =>
    actions
      .filter((asked) => permits([incoming([granted])], 'incoming-payment', asked, undefined))
      .map((asked) => `${granted} includes ${asked}`),
  )
  expect(included.toSorted()).toEqual(
    [
      ...actions.map((action) => `${action} includes ${action}`),
      'read-all includes read',
      'list-all includes list',
    ].toSorted(),
  )
})

test('an amount that cannot be read neither covers an amount nor is covered', () => {
  const readable = debit('1')
  const unreadable = debit('1.5')
  expect(covers(unreadable, readable)).toBe(false)
  expect(covers(readable, unreadable)).toBe(false)
  expect(covers(unreadable, unreadable)).toBe(false)
})

test('only spending and access to the resources of other clients need an identifier', () => {
  const needing = (Object.keys(accessActions) as AccessType[]).flatMap((type) =>
    accessActions[type]
      .filter((each) => needsIdentifier(type, each))
      .map((each) => `${type} ${each}`),
  )
  expect(needing.sort()).toEqual([
    'incoming-payment list-all',
    'outgoing-payment create',
    'outgoing-payment list',
    'outgoing-payment list-all',
    'outgoing-payment read',
    'outgoing-payment read-all',
    'quote read-all',
  ])
})
