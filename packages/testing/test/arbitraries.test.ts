import fc from 'fast-check'
import { type AccessItem, createAuthorizationServer, memoryStore } from 'open-payments-server'
import { amountValueMax, parseInterval, parseValue, windowAt } from 'open-payments-server/core'
import { invalidInput } from 'open-payments-test-support/invalid-input'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import {
  arbitraries,
  clientKeysOf,
  defaultScene,
  expectedSpending,
  type LimitForm,
  manualClock,
  type SpendingHistory,
  startOfTests,
  testClient,
} from '../src/index.js'
import { filledIn } from '../src/spending/generate.js'
import { actionsOf, debitFor, receivedOf } from '../src/spending/history.js'
import { type Command, resolve } from '../src/spending/resolve.js'

const { amount, interval, invalidInterval, limits, accessItem, history } = arbitraries(fc)

/** Many values, the same in every run. */
function sample<Value>(arbitrary: fc.Arbitrary<Value>, count = runs(2_000, 500)): readonly Value[] {
  return fc.sample(arbitrary, { numRuns: count, seed: 1 })
}

/** Returns the names of the checks that at least one value passes. */
function reached<Value>(
  values: readonly Value[],
  corners: Readonly<Record<string, (value: Value) => boolean>>,
): readonly string[] {
  return Object.keys(corners).filter((name) => values.some((value) => corners[name]?.(value)))
}

describe('a generated interval', () => {
  test('is always accepted', () => {
    fc.assert(
      fc.property(fc.oneof(interval(), interval(startOfTests)), (text) => {
        expect(parseInterval(text)).toHaveProperty('ok', true)
      }),
      { numRuns: runs(3_000) },
    )
  })

  test('covers every form', () => {
    const corners: Readonly<Record<string, (text: string) => boolean>> = {
      'start and duration': (text) => /^R[^/]*\/\d[^/]*\/P/.test(text),
      'duration and end': (text) => /^R[^/]*\/P/.test(text),
      'start and end': (text) => !text.includes('P'),
      'without end': (text) => text.startsWith('R/'),
      'without end, as -1': (text) => text.startsWith('R-1/'),
      once: (text) => text.startsWith('R1/'),
      'very often': (text) => /^R\d{5,6}\//.test(text),
      months: (text) => text.endsWith('/P1M'),
      'the last day of a month': (text) => /-(?:0[13578]|1[02])-31T/i.test(text),
      'a leap day': (text) => text.includes('-02-29T'),
      'an offset ahead': (text) => /\+(?!00:00)\d\d:\d\d/.test(text),
      'an offset behind': (text) => /T[\d:.]*-\d\d:\d\d/i.test(text),
      'fractions of a second': (text) => /:\d\d\.\d/.test(text),
      'lower case': (text) => text.includes('t'),
      'a second': (text) => text.endsWith('PT1S'),
      'a thousand years': (text) => text.includes('P1000Y'),
      'the year 1970': (text) => text.includes('1970-01-01'),
      'the year 9999': (text) => text.includes('9999-12-31'),
      'several components': (text) => /P\d+Y\d+M\d+DT\d+H\d+M/.test(text),
    }
    expect(reached(sample(interval()), corners)).toEqual(Object.keys(corners))
  })

  test('with `around` has a window near that instant', () => {
    const texts = sample(interval(startOfTests), 500)
    const open = texts.filter((text) => {
      const parsed = parseInterval(text)
      return parsed.ok && windowAt(parsed.value, startOfTests) !== undefined
    })
    expect(open.length).toBeGreaterThan(texts.length / 3)
    expect(open.length).toBeLessThan(texts.length)
  })
})

test('an invalid interval is always rejected', () => {
  fc.assert(
    fc.property(invalidInterval(), (text) => {
      expect(parseInterval(text), text).toHaveProperty('ok', false)
    }),
    { numRuns: runs(5_000) },
  )
})

describe('an amount', () => {
  test('is positive, fits 64 bits and covers the edge values', () => {
    const values = sample(amount()).map(({ value }) => parseValue(value) ?? 0n)
    expect(values.every((value) => value > 0n)).toBe(true)
    expect(values).toEqual(expect.arrayContaining([1n, 2n ** 53n + 1n, amountValueMax]))
  })

  test('is in the requested asset, or otherwise in several assets', () => {
    const asset = { assetCode: 'CHF', assetScale: 3 }
    expect(sample(amount(asset), 50)).toEqual(
      Array.from({ length: 50 }, () => expect.objectContaining(asset)),
    )
    expect(new Set(sample(amount(), 200).map(({ assetCode }) => assetCode)).size).toBe(5)
  })

  test('prints in readable form and is still plain JSON', () => {
    const printed = (value: string, assetScale: number) => {
      const one = amount({ assetCode: 'USD', assetScale })
      const found = sample(one).find((each) => each.value === value)
      expect(Object.keys(found ?? {})).toEqual(['value', 'assetCode', 'assetScale'])
      return fc.stringify(found)
    }
    expect(printed('1', 2)).toBe('USD 0.01')
    expect(printed('1', 0)).toBe('USD 1')
    expect(printed(`${amountValueMax}`, 2)).toBe('USD 184467440737095516.15')
    expect(printed(`${amountValueMax}`, 20)).toBe('USD 0.18446744073709551615')
  })
})

describe('limits and access items', () => {
  /** A server that accepts grant requests. */
  function requesting() {
    const clock = manualClock()
    const client = testClient({ seed: 'a', kid: 'a', walletAddress: 'https://a.example', clock })
    const auth = createAuthorizationServer({
      store: memoryStore(),
      clock,
      grantEndpoint: 'https://wallet.example/auth',
      consentUrl: 'https://wallet.example/consent',
      clientKeys: clientKeysOf(client),
      recordsEvents: false,
    })
    return (item: AccessItem) =>
      client.send(auth.handle, {
        method: 'POST',
        url: 'https://wallet.example/auth',
        body: {
          client: client.client,
          access_token: { access: [item] },
          interact: { start: ['redirect'] },
        },
      })
  }

  test('are always accepted by the authorization server', async () => {
    const request = requesting()
    await fc.assert(
      fc.asyncProperty(accessItem(), async (item) => {
        const { status, body } = await request(item)
        expect(status, JSON.stringify(body)).toBe(200)
      }),
      { numRuns: 80 },
    )
  })

  test('cover every kind', () => {
    const corners: Readonly<Record<string, (item: AccessItem) => boolean>> = {
      'incoming payments': ({ type }) => type === 'incoming-payment',
      'incoming payments of one account': ({ type, identifier }) =>
        type === 'incoming-payment' && identifier !== undefined,
      quotes: ({ type }) => type === 'quote',
      'no limits': ({ type, limits }) => type === 'outgoing-payment' && limits === undefined,
      'empty limits': ({ limits = { receiver: '' } }) => Object.keys(limits).length === 0,
      'a debit limit': ({ limits }) => limits?.debitAmount !== undefined,
      'a receive limit': ({ limits }) => limits?.receiveAmount !== undefined,
      'an interval': ({ limits }) => limits?.interval !== undefined,
      'a receiver': ({ limits }) => limits?.receiver !== undefined,
      'all of these': ({ limits = {} }) => Object.keys(limits).length === 3,
    }
    expect(reached(sample(accessItem(), 500), corners)).toEqual(Object.keys(corners))
  })

  test('print as a sentence', () => {
    const usd = { assetCode: 'USD', assetScale: 2 }
    const around = Date.UTC(2026, 10, 21, 12)
    const texts = sample(limits({ asset: usd, around }), 1_000).map((each) => fc.stringify(each))
    expect(texts).toContain('any amount')
    for (const text of texts) {
      expect(text).toMatch(
        /^(?:any amount|at most USD \d+\.\d\d (?:debited|received))(?: in all| in each window of R\S+)?(?:, only to https:\S+)?$/,
      )
    }
    expect(sample(accessItem({ asset: usd }), 200).map((each) => fc.stringify(each))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^create, \S.* outgoing-payment at https:\S+: at most USD/),
        expect.stringMatching(/^create\S* .*quote$|^create quote$/),
      ]),
    )
  })
})

describe('a history', () => {
  test('begins with a grant, moves forward in time and covers every kind of step', () => {
    const types = new Set<string>()
    for (const { start, steps } of sample(history(), runs(500, 250))) {
      expect(steps[0]?.type).toBe('grant')
      let now = start
      const requested = new Map<number, number>()
      const actions = steps.flatMap(actionsOf)
      for (const step of steps) types.add(step.type)
      for (const action of actions) {
        types.add(action.type)
        if (action.type === 'pay') requested.set(action.payment, now)
        // A wallet does not have to recognize a repeated request for longer.
        if (action.type === 'retry' || action.type === 'alter') {
          const at = requested.get(action.request.payment) ?? Number.NaN
          expect(now - at).toBeLessThanOrEqual(30 * 86_400_000)
        }
        if (action.type !== 'wait') continue
        expect(action.until).toBeGreaterThan(now)
        now = action.until
      }
    }
    expect([...types].sort()).toEqual(
      'alter,amend,at once,begin,cancel,decide-doubt,fail,grant,lapse,limit-account,list,pay,replace-key,report-sent,retry,revoke,rotate,store fails,wait'
        .split(',')
        .sort(),
    )
  })

  test('changes the key at most once among concurrent actions, as a request in flight survives one change', () => {
    // fast-check may repeat one object, as `fc.constant` does.
    const change = { type: 'replace-key' } as const
    const commands: readonly Command[] = [
      {
        type: 'grant',
        items: [{ type: 'outgoing-payment', actions: ['create'] }],
        halved: false,
        limits: [],
      },
      {
        type: 'at once',
        commands: [change, { type: 'rotate', grant: 0 }, change],
        commits: 'together',
      },
    ]
    const { forms: _, ...others } = filledIn({ stepsMax: 4 })
    const setting = { ...others, start: startOfTests }
    const [, race] = resolve(commands, setting).steps
    expect(race).toMatchObject({ type: 'at once', actions: [change, { type: 'rotate', grant: 1 }] })
    expect(race && actionsOf(race)).toHaveLength(2)
  })

  test('respects the maximum length and the start', () => {
    const start = Date.UTC(2030, 5, 15)
    const short = sample(history({ stepsMax: 3, start }), 200)
    expect(Math.max(...short.map(({ steps }) => steps.length))).toBe(4)
    expect(new Set(short.map((each) => each.start))).toEqual(new Set([start]))
    expect(new Set(sample(history(), 200).map((each) => each.start)).size).toBe(4)
    const [fractional] = sample(history({ start: start + 0.625 }), 1)
    expect(fractional?.start).toBe(start)
  })

  test('has only the forms of limits and the intervals that its options name', () => {
    const limitsIn = (options: Parameters<typeof history>[0]) =>
      sample(history(options), runs(300, 150))
        .flatMap(({ steps }) => steps.flatMap(actionsOf))
        .flatMap((action) => (action.type === 'grant' ? action.granted : []))
        .map((item) => item.limits ?? {})
    const members = (all: readonly object[]) => [...new Set(all.flatMap(Object.keys))].sort()
    const monthly = 'R/2026-10-31T00:00:00Z/P1M'
    const few = limitsIn({
      limits: ['debitAmount', 'interval'],
      interval: () => fc.constant(monthly),
    })
    expect(members(few)).toEqual(['debitAmount', 'interval'])
    expect(few.every(({ debitAmount }) => debitAmount !== undefined)).toBe(true)
    expect(new Set(few.map(({ interval }) => interval))).toEqual(new Set([monthly, undefined]))
    expect(members(limitsIn({ limits: ['receiveAmount'] }))).toEqual(['receiveAmount'])
    expect(members(limitsIn({}))).toEqual(['debitAmount', 'interval', 'receiveAmount', 'receiver'])
  })

  test.each([[[]], [['interval', 'receiver']], [['debitAmount', 'all']]])(
    'refuses the forms %j',
    (limits) => {
      expect(() => history({ limits: limits as LimitForm[] })).toThrow(invalidInput('limits'))
    },
  )

  test('pays from both accounts of its scene, and delivers out of proportion', () => {
    const actions = sample(history(), 300).flatMap(({ steps }) => steps.flatMap(actionsOf))
    const payers = actions.flatMap((each) => (each.type === 'pay' ? [each.walletAddress] : []))
    const { walletAddress, otherWalletAddress } = defaultScene
    expect(new Set(payers)).toEqual(new Set([walletAddress, otherWalletAddress]))
    const delivered = actions.flatMap((each) =>
      each.type === 'fail' && each.sentAmount.assetCode === each.deliveredAmount.assetCode
        ? [each.sentAmount.value === each.deliveredAmount.value]
        : [],
    )
    expect(new Set(delivered)).toEqual(new Set([true, false]))
  })

  test('sends no part of a payment if the host sends whole payments only', () => {
    const actions = sample(history({ wholePayments: true }), 300).flatMap(({ steps }) =>
      steps.flatMap(actionsOf),
    )
    const paid = new Map<number, string[][]>()
    let [whole, none] = [0, 0]
    for (const action of actions) {
      if (action.type === 'grant' && action.grant === 1) paid.clear() // another history
      if (action.type === 'pay' || action.type === 'alter') {
        const { payment, debitAmount, receiveAmount } =
          'request' in action ? action.request : action
        const amounts = [debitAmount.value, receiveAmount.value]
        paid.set(payment, [...(paid.get(payment) ?? []), amounts])
      }
      if (action.type !== 'report-sent' && action.type !== 'fail') continue
      const sent = [action.sentAmount.value, action.deliveredAmount.value]
      const isSent = action.type === 'report-sent'
      if (isSent) expect(paid.get(action.payment)).toContainEqual(sent)
      else expect(sent).toEqual(['0', '0'])
      if (isSent) expect(action.final).toBe(true)
      if (isSent) whole++
      else none++
    }
    expect(Math.min(whole, none)).toBeGreaterThan(50)
    const options = { wholePayments: 1 as never }
    expect(() => history(options)).toThrow('wholePayments must be a boolean')
  })

  test('uses the account and the receivers of its scene', () => {
    const chf = { assetCode: 'CHF', assetScale: 2 }
    const yen = { assetCode: 'JPY', assetScale: 0 }
    const url = 'https://shop.example/incoming-payments/7'
    const scene = {
      walletAddress: 'https://bank.example/heidi',
      asset: chf,
      receivers: [{ url, asset: yen, unitPrice: 3n }],
    } as const
    const pays = sample(history({ scene }), 200)
      .flatMap(({ steps }) => steps)
      .flatMap((step) => (step.type === 'pay' ? [step] : []))
    expect(pays.length).toBeGreaterThan(200)
    for (const { receiver, debitAmount, receiveAmount } of pays) {
      expect([receiver, debitAmount.assetCode, receiveAmount.assetCode]).toEqual([
        url,
        'CHF',
        'JPY',
      ])
      expect(BigInt(receiveAmount.value)).toBe(BigInt(debitAmount.value) / 3n)
      expect(BigInt(receiveAmount.value)).toBeGreaterThan(0n)
    }
  })

  test.each([
    ['1.37', 137n, 100n],
    ['137/100', 137n, 100n],
    ['0.2', 1n, 5n],
    ['1/3', 1n, 3n],
  ] as const)(
    'calculates exactly what arrives at a price of %s, and rounds down',
    (unitPrice, num, den) => {
      const yen = { assetCode: 'JPY', assetScale: 0 }
      const url = 'https://shop.example/incoming-payments/7'
      const scene = { ...defaultScene, receivers: [{ url, asset: yen, unitPrice }] } as const
      const all = expectedFor(sample(history({ scene }), 400))
      for (const { debitAmount, receiveAmount } of all.map(({ action }) => action)) {
        const [debit, receive] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
        expect(receive).toBe((debit * den) / num)
        expect(receive).toBeGreaterThan(0n)
        expect(receive).toBeLessThanOrEqual(amountValueMax)
        expect(debit).toBeLessThanOrEqual(amountValueMax)
      }
      // Payments still reach the limits to the unit.
      const spent = all.filter(({ left }) => left === 0n)
      expect(spent.length).toBeGreaterThan(20)
    },
  )

  test('knows the least debit at every price that is a fraction', () => {
    const positive = fc.bigInt({ min: 1n, max: 10n ** 12n })
    fc.assert(
      fc.property(
        positive,
        positive,
        fc.bigInt({ min: 1n, max: amountValueMax }),
        (num, den, value) => {
          const receiver = { ...defaultScene.receivers[0], unitPrice: `${num}/${den}` }
          const debit = debitFor(value, receiver)
          expect(receivedOf(debit, receiver)).toBeGreaterThanOrEqual(value)
          expect(receivedOf(debit - 1n, receiver)).toBeLessThan(value)
          expect(receivedOf(value, receiver)).toBe((value * den) / num)
        },
      ),
    )
  })

  test.each([7n, 10n ** 15n])('never debits more than its maximum, %s', (debitMax) => {
    const actions = sample(history({ debitMax }), runs(400, 200)).flatMap(({ steps }) =>
      steps.flatMap(actionsOf),
    )
    const debits = actions.flatMap((each) => {
      if (each.type === 'pay') return [BigInt(each.debitAmount.value)]
      return each.type === 'alter' ? [BigInt(each.request.debitAmount.value)] : []
    })
    expect(debits.filter((each) => each > debitMax)).toEqual([])
    expect(debits).toContain(debitMax)
  })

  test.each([0n, 1n, amountValueMax + 1n, 100])('refuses the maximum debit %s', (debitMax) => {
    // One of its receivers gets a unit for two.
    expect(() => history({ debitMax: debitMax as bigint })).toThrow('debitMax must be a bigint')
  })

  /** The payments that the wallet must accept, and what they leave of a limit on the received amount. */
  function expectedFor(histories: readonly SpendingHistory[]) {
    return histories.flatMap((each) =>
      expectedSpending(each).flatMap(({ action, answer, spent }) => {
        if (action.type !== 'pay' || answer !== 'accepted') return []
        const received = spent.filter(({ account }) => account.counts === 'receiveAmount')
        const left = received.map(({ account, spent }) => BigInt(account.limit.value) - spent)
        return [{ action, left: left.find((rest) => rest === 0n) }]
      }),
    )
  }

  test('prints a line for each step, with readable instants and amounts', () => {
    const { walletAddress } = defaultScene
    expect(walletAddress).toBe('https://wallet.example/alice')
    const text = sample(history(), 300)
      .map((each) => fc.stringify(each))
      .join('\n')
    for (const line of [
      /^ {5}time: 2026-11-21T12:00:00\.000Z$/m,
      /^ {2}1\. grant 1, approved$/m,
      /^ {2}1\. grant 1, approved for less than requested$/m,
      /^ {5}- item 1, from https:\S+: at most USD \d+\.\d\d debited in each window of R\S+$/m,
      /^ {5}- item 2, from https:\S+: at most EUR \d+\.\d\d received in all$/m,
      /^ {2}\d\. pay USD \d+\.\d\d from https:\S+ to https:\S+ with a quote \(payment \d+, grant \d\)$/m,
      /^ {2}\d\. pay USD \d+\.\d\d from https:\S+ to https:\S+ \(payment \d+, grant \d, EUR \d+\.\d\d arrives\)$/m,
      /^ {2}\d\. repeat the request for payment \d+$/m,
      /^ {2}\d\. repeat the request for payment \d+ with USD \d+\.\d\d$/m,
      /^ {2}\d\. while the store fails (?:before|after) it writes: begin payment \d+$/m,
      /^ {2}\d\. begin payment \d+$/m,
      /^ {2}\d\. report payment \d+, USD \d+\.\d\d sent and EUR \d+\.\d\d delivered, final$/m,
      /^ {2}\d\. fail payment \d+, USD \d+\.\d\d sent and USD \d+\.\d\d delivered$/m,
      /^ {2}\d\. cancel payment \d+$/m,
      /^ {2}\d\. fail payments that were not begun in time$/m,
      /^ {2}\d\. rotate the token of grant \d$/m,
      /^ {2}\d\. revoke grant \d$/m,
      /^ {2}\d\. wait until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ$/m,
      /^ {2}\d\. concurrently:\n {5}- \S/m,
      /^ {2}\d\. concurrently, with commits in this order:$/m,
      /^ {2}\d\. concurrently, with commits in reverse order:$/m,
    ]) {
      expect(text).toMatch(line)
    }
  })
})
