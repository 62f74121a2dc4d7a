import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AccessAction,
  type AccessItem,
  covers,
  coversAll,
  endOfItems,
  grantedItems,
  type Limits,
  permits,
  publicItem,
} from '../../src/core/access.js'
import type { Amount } from '../../src/core/amount.js'
import { accessItem, alice, bob } from '../support/grants.js'

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

describe('what one item may be narrowed to', () => {
  test.each<readonly [how: string, wide: AccessItem, narrow: AccessItem]>([
    ['itself', outgoing({ debitAmount: usd('100') }), outgoing({ debitAmount: usd('100') })],
    ['fewer actions', outgoing(), outgoing(undefined, { actions: ['read'] })],
    [
      'the same actions in another order',
      outgoing(),
      outgoing(undefined, { actions: ['read', 'create'] }),
    ],
    ['read, of read-all', incoming(['read-all']), incoming(['read'])],
    ['list, of list-all', incoming(['list-all']), incoming(['list'])],
    ['an identifier, where there was none', incoming(['create']), incoming(['create'], bob)],
    ['limits, where there were none', outgoing(), outgoing({ debitAmount: usd('1') })],
    ['limits of nothing, which are none', outgoing(), outgoing({})],
    ['no limits, of limits of nothing', outgoing({}), outgoing()],
    [
      'a receiver, where there was none',
      outgoing({ debitAmount: usd('1') }),
      outgoing({ debitAmount: usd('1'), receiver }),
    ],
    [
      'a smaller debit amount',
      outgoing({ debitAmount: usd('900') }),
      outgoing({ debitAmount: usd('100') }),
    ],
    [
      'a smaller receive amount',
      outgoing({ receiveAmount: usd('100') }),
      outgoing({ receiveAmount: usd('1') }),
    ],
    [
      'an amount of zero',
      outgoing({ debitAmount: usd('100') }),
      outgoing({ debitAmount: usd('0') }),
    ],
    [
      'an amount smaller as a number, though not as a text',
      outgoing({ debitAmount: usd('100') }),
      outgoing({ debitAmount: usd('99') }),
    ],
    [
      'a smaller amount, by one beyond the precision of a double',
      outgoing({ debitAmount: usd('9007199254740993') }),
      outgoing({ debitAmount: usd('9007199254740992') }),
    ],
    [
      'a smaller amount in the same interval',
      outgoing({ interval: monthly, debitAmount: usd('100') }),
      outgoing({ interval: monthly, debitAmount: usd('50') }),
    ],
    [
      'an amount, where there was an interval alone',
      outgoing({ interval: monthly }),
      outgoing({ interval: monthly, debitAmount: usd('50') }),
    ],
  ])('%s', (_, wide, narrow) => {
    expect(covers(wide, narrow)).toBe(true)
    expect(coversAll([wide], [narrow])).toBe(true)
  })

  test.each<readonly [how: string, wide: AccessItem, narrow: AccessItem]>([
    ['another type', outgoing(), incoming(['create', 'read'], alice)],
    ['an action more', outgoing(), outgoing(undefined, { actions: ['create', 'read', 'list'] })],
    ['read-all, of read', incoming(['read']), incoming(['read-all'])],
    ['list-all, of list', incoming(['list']), incoming(['list-all'])],
    ['list, of read-all', incoming(['read-all']), incoming(['list'])],
    ['read, of create', incoming(['create']), incoming(['read'])],
    ['complete, of create', incoming(['create']), incoming(['complete'])],
    ['another identifier', outgoing(), outgoing(undefined, { identifier: bob })],
    [
      'an identifier that differs in case',
      outgoing(),
      outgoing(undefined, { identifier: alice.toUpperCase() }),
    ],
    ['an identifier that goes on', outgoing(), outgoing(undefined, { identifier: `${alice}/` })],
    ['no identifier, where there was one', incoming(['create'], bob), incoming(['create'])],
    ['another receiver', outgoing({ receiver }), outgoing({ receiver: `${receiver}2` })],
    [
      'no receiver, where there was one',
      outgoing({ receiver, debitAmount: usd('1') }),
      outgoing({ debitAmount: usd('1') }),
    ],
    ['no limits, where there were', outgoing({ debitAmount: usd('1') }), outgoing()],
    [
      'no amount, where there was one',
      outgoing({ receiver, debitAmount: usd('1') }),
      outgoing({ receiver }),
    ],
    [
      'a larger amount',
      outgoing({ debitAmount: usd('100') }),
      outgoing({ debitAmount: usd('101') }),
    ],
    [
      'an amount larger as a number, though not as a text',
      outgoing({ debitAmount: usd('9') }),
      outgoing({ debitAmount: usd('10') }),
    ],
    [
      'a larger amount, by one beyond the precision of a double',
      outgoing({ debitAmount: usd('9007199254740992') }),
      outgoing({ debitAmount: usd('9007199254740993') }),
    ],
    [
      'the other kind of amount',
      outgoing({ debitAmount: usd('100') }),
      outgoing({ receiveAmount: usd('100') }),
    ],
    [
      'another asset',
      outgoing({ debitAmount: usd('100') }),
      outgoing({ debitAmount: { ...usd('1'), assetCode: 'JPY' } }),
    ],
    [
      'another scale, though worth less',
      outgoing({ debitAmount: usd('100') }),
      outgoing({ debitAmount: { ...usd('1'), assetScale: 4 } }),
    ],
    [
      'an interval, where there was none',
      outgoing({ debitAmount: usd('1') }),
      outgoing({ interval: monthly, debitAmount: usd('1') }),
    ],
    ['no interval, where there was one', outgoing({ interval: monthly }), outgoing({})],
    [
      'another interval',
      outgoing({ interval: monthly }),
      outgoing({ interval: 'R/2025-05-20T13:00:00Z/P1D' }),
    ],
    [
      'a longer interval',
      outgoing({ interval: monthly }),
      outgoing({ interval: 'R/2025-05-20T13:00:00Z/P1Y' }),
    ],
    [
      'fewer repetitions',
      outgoing({ interval: 'R3/2025-05-20T13:00:00Z/P1M' }),
      outgoing({ interval: 'R2/2025-05-20T13:00:00Z/P1M' }),
    ],
    [
      'the same interval in other bytes',
      outgoing({ interval: monthly }),
      outgoing({ interval: 'R/2025-05-20T13:00:00+00:00/P1M' }),
    ],
    [
      'the same interval, spelled R-1',
      outgoing({ interval: monthly }),
      outgoing({ interval: 'R-1/2025-05-20T13:00:00Z/P1M' }),
    ],
  ])('never %s', (_, wide, narrow) => {
    expect(covers(wide, narrow)).toBe(false)
    expect(coversAll([wide], [narrow])).toBe(false)
  })

  test.each([
    ['words', 'all of it'],
    ['nothing', ''],
    ['less than nothing', '-1'],
    ['a smaller amount, spelled as no amount may be', '050'],
    ['a smaller amount in hexadecimal', '0x10'],
    ['a smaller amount in spaces', ' 5 '],
    ['a fraction', '1.5'],
  ])('never an amount that is none: %s', (_, value) => {
    const wide = outgoing({ debitAmount: usd('100') })
    expect(covers(wide, outgoing({ debitAmount: usd(value) }))).toBe(false)
    expect(covers(outgoing({ debitAmount: usd(value) }), wide)).toBe(false)
  })

  test('every item covers itself', () => {
    fc.assert(
      fc.property(accessItem, (item) => {
        expect(covers(item, item)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('what is covered by something covered is covered', () => {
    for (const [a, coveredByA] of pairs) {
      for (const b of coveredByA) {
        const beyondA = (pairs.get(b) ?? []).filter((c) => !coveredByA.includes(c))
        expect(beyondA, JSON.stringify({ a, b })).toEqual([])
      }
    }
  })

  test('items that cover each other are the same but for read beside read-all', () => {
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

/** Every item that can be made of few parts, so that one often covers another. */
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

/** For every item, what it covers. */
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

describe('what several items may be narrowed to', () => {
  const small = outgoing({ debitAmount: usd('10') })
  const large = outgoing({ debitAmount: usd('100') })

  test.each<readonly [how: string, wide: AccessItem[], narrow: AccessItem[]]>([
    ['nothing, of nothing', [], []],
    ['nothing', [large], []],
    ['one of two', [large, incoming(['create'])], [incoming(['create'])]],
    ['the same in another order', [large, small], [small, large]],
    // A pairing that takes the first wide item that fits would leave none for the second.
    ['the large one kept for what only it covers', [large, small], [small, large]],
    [
      'each of three, in the one way in which they pair',
      [
        outgoing({ debitAmount: usd('3') }),
        outgoing({ debitAmount: usd('2') }),
        outgoing({ debitAmount: usd('1') }),
      ],
      [
        outgoing({ debitAmount: usd('1') }),
        outgoing({ debitAmount: usd('2') }),
        outgoing({ debitAmount: usd('3') }),
      ],
    ],
  ])('%s', (_, wide, narrow) => {
    expect(coversAll(wide, narrow)).toBe(true)
  })

  test.each<readonly [how: string, wide: AccessItem[], narrow: AccessItem[]]>([
    ['anything, of nothing', [], [small]],
    ['two under one, which would have its budget twice', [large], [small, small]],
    [
      'two halves of one, though they add up',
      [outgoing({ debitAmount: usd('20') })],
      [small, small],
    ],
    [
      'one item split by actions',
      [outgoing()],
      [outgoing(undefined, { actions: ['create'] }), outgoing(undefined, { actions: ['read'] })],
    ],
    [
      'two items joined into one',
      [incoming(['create'], bob), incoming(['read'], bob)],
      [incoming(['create', 'read'], bob)],
    ],
    [
      'the actions of one with the identifier of another',
      [incoming(['create'], alice), incoming(['read'], bob)],
      [incoming(['create'], bob)],
    ],
    ['two large ones, of a large and a small one', [large, small], [large, large]],
    ['more items than there were', [large, small], [small, small, small]],
  ])('never %s', (_, wide, narrow) => {
    expect(coversAll(wide, narrow)).toBe(false)
  })

  test('is decided as by trying every order in which they could be paired', () => {
    const items = fc.array(closeItem, { maxLength: 4 })
    const outcomes = { covered: 0, not: 0 }
    fc.assert(
      fc.property(items, items, fc.boolean(), (wide, other, mostlyCovered) => {
        // Half of the time something of the wide items themselves, or hardly any would be covered.
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
      { numRuns: 3000 },
    )
    expect(Math.min(outcomes.covered, outcomes.not)).toBeGreaterThan(100)
  })

  test('is no matter of the order of either', () => {
    const items = fc.array(closeItem, { maxLength: 3 })
    fc.assert(
      fc.property(items, items, (wide, narrow) => {
        expect(coversAll([...wide].reverse(), [...narrow].reverse())).toBe(coversAll(wide, narrow))
      }),
      { numRuns: 1000 },
    )
  })

  test('every set covers itself, and all that is covered by what it covers', () => {
    const items = fc.array(closeItem, { maxLength: 3 })
    fc.assert(
      fc.property(items, items, items, (a, b, c) => {
        expect(coversAll(a, a)).toBe(true)
        if (coversAll(a, b) && coversAll(b, c)) expect(coversAll(a, c)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })
})

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, index) =>
    permutations(items.filter((_, other) => other !== index)).map((rest) => [item, ...rest]),
  )
}

describe('which item permits an action', () => {
  test.each<
    readonly [what: string, item: AccessItem, action: AccessAction, address: string | undefined]
  >([
    ['an action by its name', incoming(['create'], bob), 'create', bob],
    ['read, by read-all', incoming(['read-all'], bob), 'read', bob],
    ['list, by list-all', incoming(['list-all'], bob), 'list', bob],
    ['create anywhere, without an identifier', incoming(['create']), 'create', bob],
    ['read anywhere, without an identifier', incoming(['read']), 'read', bob],
    ['read anywhere, by read-all without an identifier', incoming(['read-all']), 'read', bob],
    ['list anywhere, by list-all without an identifier', incoming(['list-all']), 'list', bob],
    ['read-all where it is named', incoming(['read-all'], bob), 'read-all', bob],
    ['read-all anywhere, without an identifier', incoming(['read-all']), 'read-all', bob],
    ['list-all where it is named', incoming(['list-all'], bob), 'list-all', bob],
    [
      'an action at whatever address, when none is asked for',
      incoming(['create'], bob),
      'create',
      undefined,
    ],
  ])('%s', (_, item, action, address) => {
    expect(permits([item], 'incoming-payment', action, address)).toBe(item)
  })

  test.each<
    readonly [what: string, item: AccessItem, action: AccessAction, address: string | undefined]
  >([
    ['an action that is not named', incoming(['read'], bob), 'create', bob],
    ['complete, by create', incoming(['create'], bob), 'complete', bob],
    ['read-all, by read', incoming(['read'], bob), 'read-all', bob],
    ['list-all, by list', incoming(['list'], bob), 'list-all', bob],
    ['list, by read-all', incoming(['read-all'], bob), 'list', bob],
    ['read, by list-all', incoming(['list-all'], bob), 'read', bob],
    ['create, by read-all', incoming(['read-all'], bob), 'create', bob],
    ['an action at another address', incoming(['create'], bob), 'create', alice],
    ['an action at an address that begins alike', incoming(['create'], bob), 'create', `${bob}by`],
    ['an action on another type', outgoing(undefined, { identifier: bob }), 'create', bob],
    ['read-all at another address', incoming(['read-all'], bob), 'read-all', alice],
    ['list-all anywhere, without an identifier', incoming(['list-all']), 'list-all', bob],
  ])('no item permits %s', (_, item, action, address) => {
    expect(permits([item], 'incoming-payment', action, address)).toBeUndefined()
  })

  test('read-all without an identifier reaches other clients’ incoming payments only', () => {
    const types = ['incoming-payment', 'outgoing-payment', 'quote'] as const
    const allowed = types.filter((type) =>
      permits([{ type, actions: ['read-all'] }], type, 'read-all', bob),
    )
    expect(allowed).toEqual(['incoming-payment'])
  })

  test('the first of several, in the order in which they were granted', () => {
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

  test('rights are not joined across items: the actions of one are not those of another', () => {
    const items = [incoming(['create'], alice), incoming(['read'], bob)]
    expect(permits(items, 'incoming-payment', 'create', bob)).toBeUndefined()
    expect(permits(items, 'incoming-payment', 'read', alice)).toBeUndefined()
  })

  test('nothing is permitted by nothing', () => {
    expect(permits([], 'quote', 'create')).toBeUndefined()
  })

  test('what is narrower permits nothing that the wider does not', () => {
    for (const [wide, narrower] of pairs) {
      for (const narrow of narrower) {
        for (const address of [alice, bob]) {
          for (const action of ['create', 'read', 'list'] as const) {
            if (permits([narrow], 'outgoing-payment', action, address) === undefined) continue
            expect(permits([wide], 'outgoing-payment', action, address)).toBe(wide)
          }
        }
      }
    }
  })
})

describe('items as they are granted and shown', () => {
  test('each has an id of its own, and none is lost or changed', () => {
    fc.assert(
      fc.property(fc.array(accessItem, { maxLength: 5 }), (items) => {
        const granted = grantedItems(items, 'repetitions')
        expect(new Set(granted.map(({ itemId }) => itemId)).size).toBe(items.length)
        expect(granted.map(publicItem)).toEqual(items)
      }),
      { numRuns: 200 },
    )
  })

  test('clients see nothing of the bookkeeping', () => {
    const [granted] = grantedItems([outgoing({ interval: monthly })], 'repetitions')
    const shown: object = granted === undefined ? {} : publicItem(granted)
    expect(Object.keys(shown).sort()).toEqual(['actions', 'identifier', 'limits', 'type'])
  })

  test('what an item does not have is left out, not shown as undefined', () => {
    expect(Object.keys(publicItem(incoming(['create']))).sort()).toEqual(['actions', 'type'])
  })
})

describe('how windows are counted', () => {
  test('stands on each item that has an interval, and on no other', () => {
    const asked = [
      outgoing({ interval: monthly }),
      outgoing({ debitAmount: usd('1') }),
      outgoing(),
      incoming(['create']),
    ]
    const countings = ['occurrences', 'repetitions'] as const
    for (const counting of countings) {
      const [limited, ...others] = grantedItems(asked, counting)
      expect(limited?.intervalCounting).toBe(counting)
      for (const other of others) expect(other).not.toHaveProperty('intervalCounting')
    }
  })
})

describe('the end of what was granted', () => {
  const month = outgoing({ interval: 'R1/2025-05-20T13:00:00Z/P1M' })
  const quarter = outgoing({ interval: 'R3/2025-05-20T13:00:00Z/P1M' })
  const quote: AccessItem = { type: 'quote', actions: ['create'] }
  const june = Date.UTC(2025, 5, 20, 13)
  const august = Date.UTC(2025, 7, 20, 13)

  test.each<readonly [what: string, items: readonly AccessItem[], endsAt: number]>([
    ['its one item', [month], june],
    ['the later of two, first', [quarter, month], august],
    ['the later of two, last', [month, quarter], august],
    ['an item beside a quote, which is of no use alone', [quote, month], june],
    [
      'an end from which it repeats backwards',
      [outgoing({ interval: 'R/P1M/2025-06-20T13:00:00Z' })],
      june,
    ],
  ])('is that of %s', (_, items, endsAt) => {
    expect(endOfItems(grantedItems(items, 'occurrences'))).toBe(endsAt)
  })

  test.each<readonly [what: string, items: readonly AccessItem[]]>([
    ['nothing', []],
    ['quotes alone', [quote]],
    ['an interval without end', [outgoing({ interval: monthly })]],
    ['limits without an interval', [outgoing({ debitAmount: usd('1') })]],
    ['no limits', [outgoing()]],
    ['an interval that cannot be read', [outgoing({ interval: 'every month' })]],
    ['an interval with an end, beside one without', [month, outgoing({ interval: monthly })]],
    ['an interval with an end, beside an item without one', [month, incoming(['create'])]],
  ])('there is none of %s', (_, items) => {
    expect(endOfItems(grantedItems(items, 'occurrences'))).toBeUndefined()
  })

  test('is reckoned as the windows are counted', () => {
    expect(endOfItems(grantedItems([month], 'repetitions'))).toBe(Date.UTC(2025, 6, 20, 13))
    const mixed = [
      ...grantedItems([quarter], 'occurrences'),
      ...grantedItems([month], 'repetitions'),
    ]
    expect(endOfItems(mixed)).toBe(august)
  })

  test('of items that do not say how they are counted is that of occurrences', () => {
    expect(endOfItems([{ ...quarter, itemId: '1' }])).toBe(august)
  })
})
