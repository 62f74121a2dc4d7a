import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type AccessItem, type Amount, memoryStore, type Store } from '../../src/index.js'
import {
  expectedSpending,
  type SpendingAction,
  type SpendingHistory,
  type SpendingStep,
  type SpendingWallet,
  defaultScene as scene,
  spendingProperty,
  startOfTests,
} from '../../src/testing/index.js'
import { createJudge } from '../../src/testing/spending/judge.js'
import { libraryWallet } from '../../src/testing/spending/library-wallet.js'
import { play } from '../../src/testing/spending/play.js'
import { carelessWallet } from '../support/careless-wallet.js'

const { walletAddress } = scene
const [{ url: receiver }] = scene.receivers
const hour = 3_600_000
const rules = {
  intervalCounting: 'occurrences',
  holdMs: 24 * hour,
  walletAddress,
  mayRefuse: false,
} as const

const usd = (value: number): Amount => ({ value: `${value}`, assetCode: 'USD', assetScale: 2 })

function item(most: number, interval?: string): AccessItem {
  const limits = { debitAmount: usd(most), ...(interval === undefined ? {} : { interval }) }
  return { type: 'outgoing-payment', actions: ['create'], identifier: walletAddress, limits }
}

function grant(...items: readonly AccessItem[]): SpendingAction {
  return { type: 'grant', grant: 1, asked: items, granted: items }
}

function request(payment: number, value: number) {
  const amounts = { debitAmount: usd(value), receiveAmount: usd(value) }
  return { payment, grant: 1, by: 'direct', receiver, ...amounts } as const
}

const pay = (payment: number, value: number) =>
  ({ type: 'pay', ...request(payment, value) }) as const

function atOnce(...actions: readonly SpendingAction[]): SpendingStep {
  return { type: 'at once', actions, commits: 'together' }
}

function history(...steps: readonly SpendingStep[]): SpendingHistory {
  return { scene, start: startOfTests, steps }
}

/** A wallet that answers requests to pay with what it is told to, one after the other. */
function scripted(...answers: readonly (string | false | Partial<SpendingWallet>)[]) {
  const ids = answers.filter((answer) => typeof answer !== 'object')
  const overrides = answers.find((answer) => typeof answer === 'object') as Partial<SpendingWallet>
  const wallet: SpendingWallet = {
    ...carelessWallet(scene),
    async pay() {
      const id = ids.shift()
      return id ? { accepted: true, id } : { accepted: false, reason: 'no' }
    },
    ...overrides,
  }
  return wallet
}

async function problemWith(
  steps: readonly SpendingStep[],
  wallet: SpendingWallet,
  more: object = {},
): Promise<string | undefined> {
  try {
    await play(history(...steps), wallet, { ...rules, ...more })
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

describe('of payments at once', () => {
  const race = [grant(item(10)), atOnce(pay(1, 7), pay(2, 7))]

  test.each([
    ['the first', ['one', false]],
    ['the second', [false, 'two']],
  ] as const)('%s may win', async (_, answers) => {
    expect(await problemWith(race, scripted(...answers))).toBeUndefined()
  })

  test('not both may, where there is room for one', async () => {
    const problem = await problemWith(race, scripted('one', 'two'))
    expect(problem).toBe(
      [
        'it had to be refused: grant 1, item 1, the life of the grant: limit USD 0.10, spent USD 0.14, over by USD 0.04',
        '',
        '     it is 2026-11-21T12:00:00.000Z',
        '  1. grant 1, approved',
        '     - item 1: at most USD 0.10 debited in all: accepted',
        '  2. at once:',
        `     - pay USD 0.07 to ${receiver} (payment 1, grant 1): accepted`,
        `     - pay USD 0.07 to ${receiver} (payment 2, grant 1): accepted`,
        '',
      ].join('\n'),
    )
  })

  test('one has to', async () => {
    const problem = await problemWith(race, scripted(false, false))
    expect(problem).toMatch(/^it was refused \(no\), and there was no reason to\n/)
    expect(await problemWith(race, scripted(false, false), { mayRefuse: true })).toBeUndefined()
  })

  test('it is not known which item was charged, until it shows', async () => {
    const twoItems = [grant(item(7), item(10)), atOnce(pay(1, 7), pay(2, 6))]
    const next = (value: number) => [...twoItems, pay(3, value)]
    const both = ['one', 'two'] as const
    // Either the 7 is in the first item, and 4 are left, or the 6, and 1 and 3 are.
    expect(await problemWith(next(4), scripted(...both, 'three'))).toBeUndefined()
    expect(await problemWith(next(4), scripted(...both, false))).toBeUndefined()
    expect(await problemWith(next(5), scripted(...both, 'three'))).toMatch(/over by USD 0.01/)
    expect(await problemWith(next(3), scripted(...both, false))).toMatch(/no reason to/)
  })

  test('those may be refused whose token is rotated meanwhile, and no others', async () => {
    const rotate = { type: 'rotate', grant: 1 } as const
    const other = { type: 'rotate', grant: 2 } as const
    const second: SpendingAction = { ...grant(item(10)), grant: 2 } as SpendingAction
    const grants = [grant(item(10)), second]
    const steps = (rotation: SpendingAction) => [...grants, atOnce(pay(1, 7), rotation)]
    expect(await problemWith(steps(rotate), scripted(false))).toBeUndefined()
    expect(await problemWith(steps(other), scripted(false))).toMatch(/no reason to/)
    expect(await problemWith([...grants, rotate, pay(1, 7)], scripted(false))).toMatch(/no reason/)
  })
})

describe('a repeat', () => {
  const retry = { type: 'retry', request: request(1, 3) } as const

  test('has to be answered with the payment that there is', async () => {
    const steps = [grant(item(10)), pay(1, 3), retry]
    expect(await problemWith(steps, scripted('one', 'one'))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'two'))).toMatch(/^payment 1 was made twice\n/)
    expect(await problemWith(steps, scripted('one', false))).toMatch(/no reason to/)
  })

  test('of what was refused is a new request, and may be accepted when there is room', async () => {
    const cancel = { type: 'cancel', payment: 2 } as const
    const answers = ['two', false, 'one'] as const
    const cancelled = { cancel: async () => ({ accepted: true }) as const }
    const steps = [grant(item(10)), pay(2, 9), pay(1, 3), cancel, retry]
    expect(await problemWith(steps, scripted(...answers, cancelled))).toBeUndefined()
    const early = [grant(item(10)), pay(2, 9), pay(1, 3), retry]
    expect(await problemWith(early, scripted(...answers))).toMatch(/over by USD 0.02/)
  })

  test('under a grant that was revoked may be refused, and must not pay again', async () => {
    const revoke = { type: 'revoke', grant: 1 } as const
    const steps = [grant(item(10)), pay(1, 3), revoke, retry]
    expect(await problemWith(steps, scripted('one', false))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'one'))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'two'))).toMatch(/made twice/)
  })
})

describe('a wallet is wrong that', () => {
  test('answers two requests with one payment', async () => {
    const steps = [grant(item(10)), pay(1, 3), pay(2, 3)]
    expect(await problemWith(steps, scripted('one', 'one'))).toMatch(
      /^two requests were answered with the same payment\n/,
    )
  })

  test('says something else of what has been spent', async () => {
    const steps = [grant(item(10)), pay(1, 3)]
    const saying = (spent: { spentDebitAmount?: Amount; spentReceiveAmount?: Amount }) =>
      scripted({ pay: async () => ({ accepted: true, id: 'one', ...spent }) })
    expect(await problemWith(steps, saying({ spentDebitAmount: usd(3) }))).toBeUndefined()
    // What arrives is not limited here, and may be anything.
    expect(await problemWith(steps, saying({ spentReceiveAmount: usd(2) }))).toBeUndefined()
    expect(await problemWith(steps, saying({ spentDebitAmount: usd(2) }))).toMatch(
      /^the wallet says that USD 0.02 has been spent, and it is USD 0.03\n/,
    )
  })

  test('says itself that something is wrong', async () => {
    const steps = [grant(item(10)), pay(1, 3), pay(2, 3)]
    const problem = vi.fn(() =>
      problem.mock.calls.length === 2 ? 'the books are gone' : undefined,
    )
    const message = await problemWith(steps, scripted('one', 'two', { problem }))
    expect(message).toMatch(/^the books are gone\n[\s\S]* {2}2\. pay USD 0.03 [^\n]*: accepted\n$/)
  })

  test('fails: the error is told, with the story up to there', async () => {
    const cause = new Error('the server answered 500')
    const wallet = scripted({ pay: () => Promise.reject(cause) })
    const playing = play(history(grant(item(10)), pay(1, 3)), wallet, rules)
    const error = await playing.catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'ERR_SPENDING', cause })
    expect(error.message).toMatch(/^the server answered 500\n\n[\s\S]*: the wallet failed\n$/)
  })
})

describe('what a wallet cannot do', () => {
  test('is left out, and the rest is judged all the same', async () => {
    const { cancel: _, ...wallet } = carelessWallet(scene)
    const cancel = { type: 'cancel', payment: 1 } as const
    const steps = [grant(item(10)), pay(1, 9), cancel, pay(2, 2)]
    expect(await problemWith(steps, wallet)).toBeUndefined()
    const generous = { ...wallet, pay: scripted('one', 'two').pay }
    const problem = await problemWith(steps, generous)
    expect(problem).toMatch(/over by USD 0.01\n[\s\S]* {2}3\. cancel payment 1: left out\n/)
  })

  test('what happens to a payment that was refused is left out too', async () => {
    const begin = { type: 'begin', payment: 1 } as const
    const steps = [grant(item(10)), pay(1, 11), begin, pay(2, 9)]
    expect(await problemWith(steps, carelessWallet(scene))).toBeUndefined()
  })

  test('may be almost everything: a wallet with a clock of its own, which nobody moves', async () => {
    const close = vi.fn()
    function running(): SpendingWallet {
      const { setClock, lapse: _, cancel: __, rotate: ___, ...wallet } = carelessWallet(scene)
      const now = () => setClock?.(Date.now())
      const { grant, pay, begin } = wallet
      return {
        ...wallet,
        close,
        grant: async (...parameters) => {
          now()
          return grant(...parameters)
        },
        pay: async (order) => {
          now()
          return pay(order)
        },
        begin: async (id) => {
          now()
          return begin(id)
        },
      }
    }
    const subject = { wallet: running, scene, start: Date.now() }
    await fc.assert(spendingProperty(fc, subject), { numRuns: 200 })
    expect(close).toHaveBeenCalledTimes(200)
  })

  test('is closed when it was wrong, too', async () => {
    const close = vi.fn()
    const wallet = () => scripted({ close, grant: () => Promise.reject(new Error('down')) })
    const { failed, numShrinks } = await fc.check(spendingProperty(fc, { wallet, scene }))
    expect(failed).toBe(true)
    expect(close.mock.calls.length).toBeGreaterThan(numShrinks)
  })
})

describe('where the clock is not ours', () => {
  const midnight = Date.UTC(2026, 10, 22)
  const moments = [midnight - 1, midnight + 1]
  const daily = item(10, 'R/2026-11-21T00:00:00Z/P1D')

  /** Whether answers are right to payments that were asked for just before midnight and answered just after. */
  function judged(...answers: readonly (readonly [value: number, accepted: boolean])[]) {
    const judge = createJudge(rules)
    judge.observe([{ action: grant(daily), answer: { accepted: true }, moments: [startOfTests] }])
    return answers.map(([value, accepted], index) => {
      const answer = accepted ? { accepted, id: `payment-${index}` } : { accepted }
      return judge.observe([{ action: pay(index + 1, value), answer, moments }]).length === 0
    })
  }

  test('a payment may be counted in the window that ends or in the one that begins', () => {
    expect(judged([10, true], [10, true])).toEqual([true, true])
    expect(judged([10, true], [10, false])).toEqual([true, true])
    expect(judged([6, true], [4, true], [10, true])).toEqual([true, true, true])
  })

  test('and in no third one', () => {
    expect(judged([10, true], [10, true], [1, true])).toEqual([true, true, false])
    expect(judged([11, true])).toEqual([false])
    expect(judged([10, false])).toEqual([false])
  })
})

describe('a wallet whose clock goes on by itself', () => {
  afterEach(() => vi.restoreAllMocks())

  /** Pays while it strikes midnight. */
  async function atMidnight(interval: string, value: number): Promise<string | undefined> {
    const midnight = Date.UTC(2026, 10, 22)
    let now = midnight - 5
    vi.spyOn(Date, 'now').mockImplementation(() => now)
    const { setClock: _, ...wallet } = scripted({
      async pay() {
        now = midnight + 5
        return { accepted: true, id: 'one' }
      },
    })
    return problemWith([grant(item(10, interval)), pay(1, value)], wallet)
  }

  test.each([
    ['the window that ends', 'R1/2026-11-21T00:00:00Z/P1D'],
    ['the window that begins', 'R1/2026-11-22T00:00:00Z/P1D'],
  ])('may have paid in %s, and within its limit', async (_, interval) => {
    expect(await atMidnight(interval, 10)).toBeUndefined()
    expect(await atMidnight(interval, 11)).toMatch(/over by USD 0.01/)
  })
})

describe('the wallet of this library', () => {
  test('lets lapse what is due, though its store takes a while to list that', async () => {
    const memory = memoryStore()
    let questions = 0
    const due: Store['due'] = async (...query) => (++questions > 2 ? memory.due(...query) : [])
    const wallet = libraryWallet({ ...memory, due }, { scene, ...rules })
    const wait = { type: 'wait', until: startOfTests + 24 * hour } as const
    const steps = [grant(item(10)), pay(1, 10), wait, { type: 'lapse' } as const, pay(2, 10)]
    expect(await problemWith(steps, wallet)).toBeUndefined()
    expect(questions).toBeGreaterThan(2)
  })
})

describe('what is expected of a history', () => {
  const daily = item(10, 'R2/2026-11-21T00:00:00Z/P1D')
  const begin = { type: 'begin', payment: 1 } as const
  const fail = { type: 'fail', payment: 1, sentAmount: usd(2), deliveredAmount: usd(2) } as const
  const wait = (until: number) => ({ type: 'wait', until }) as const
  const steps = [
    grant(daily),
    atOnce(pay(1, 9), pay(2, 2)),
    begin,
    wait(Date.UTC(2026, 10, 22)),
    pay(3, 10),
    fail,
    pay(4, 1),
    wait(Date.UTC(2026, 10, 23)),
    pay(5, 1),
  ]
  const expected = expectedSpending(history(...steps))
  const pays = expected.filter(({ action }) => action.type === 'pay')

  test('is an answer to each action', () => {
    expect(expected.map(({ step }) => step)).toEqual([0, 1, 1, 2, 3, 4, 5, 6, 7, 8])
    expect(pays.map(({ answer }) => answer)).toEqual([
      'accepted',
      'refused',
      'accepted',
      'refused',
      'refused',
    ])
  })

  test('with the reason of each refusal', () => {
    const [first, second, , fourth, fifth] = pays.map(({ problems }) => problems)
    const window = (day: number) =>
      `grant 1, item 1, the window from 2026-11-${day}T00:00:00.000Z to 2026-11-${day + 1}T00:00:00.000Z`
    expect(first).toEqual([])
    expect(second).toEqual([`${window(21)}: limit USD 0.10, spent USD 0.11, over by USD 0.01`])
    expect(fourth).toEqual([`${window(22)}: limit USD 0.10, spent USD 0.11, over by USD 0.01`])
    expect(fifth).toEqual(['grant 1, item 1: its last window is over'])
  })

  test('and what every window has spent, a late failure in the window of its payment', () => {
    const spent = expected.map((step) => step.spent.map(({ spent }) => spent))
    expect(spent).toEqual([
      [],
      [9n],
      [9n],
      [9n],
      [9n],
      [9n, 10n],
      [2n, 10n],
      [2n, 10n],
      [2n, 10n],
      [2n, 10n],
    ])
    expect(expected.at(-1)?.spent.map(({ account }) => account.window?.start)).toEqual([
      Date.UTC(2026, 10, 21),
      Date.UTC(2026, 10, 22),
    ])
  })

  test('by the counting and the hold of the wallet', () => {
    const late = history(grant(daily), wait(Date.UTC(2026, 10, 23)), pay(1, 1))
    const answers = (options: Parameters<typeof expectedSpending>[1]) =>
      expectedSpending(late, options).map(({ answer }) => answer)
    expect(answers({})).toEqual(['accepted', 'accepted', 'refused'])
    expect(answers({ intervalCounting: 'repetitions' })).toEqual([
      'accepted',
      'accepted',
      'accepted',
    ])
    const held = history(grant(item(10)), pay(1, 1), wait(startOfTests + hour), begin)
    expect(expectedSpending(held).at(-1)?.answer).toBe('accepted')
    expect(expectedSpending(held, { holdMs: hour }).at(-1)?.answer).toBe('refused')
    expect(expectedSpending(held, { holdMs: hour + 1 }).at(-1)?.answer).toBe('accepted')
  })

  test('lapsed payments at the end of their hold, and not before', () => {
    const end = startOfTests + 24 * hour
    const spent = (until: number) =>
      expectedSpending(history(grant(item(10)), pay(1, 9), wait(until), { type: 'lapse' })).at(-1)
        ?.spent[0]?.spent
    expect(spent(end - 1)).toBe(9n)
    expect(spent(end)).toBe(0n)
  })

  test('reports that fall back behind earlier ones', () => {
    const settle = (sent: number, delivered: number): SpendingAction => ({
      type: 'settle',
      payment: 1,
      sentAmount: usd(sent),
      deliveredAmount: usd(delivered),
      final: false,
    })
    const answer = (sent: number, delivered: number) =>
      expectedSpending(
        history(grant(item(10)), pay(1, 9), begin, settle(5, 5), settle(sent, delivered)),
      ).at(-1)?.answer
    expect([answer(5, 5), answer(6, 5), answer(5, 6)]).toEqual(Array(3).fill('accepted'))
    expect([answer(4, 5), answer(5, 4), answer(10, 5), answer(5, 10)]).toEqual(
      Array(4).fill('refused'),
    )
  })

  test('items that are for something else', () => {
    const answer = (more: object) => {
      const other = { ...item(10), ...more } as AccessItem
      return expectedSpending(history(grant(other), pay(1, 1))).at(-1)?.answer
    }
    expect(answer({})).toBe('accepted')
    expect(answer({ identifier: 'https://wallet.example/bob' })).toBe('refused')
    expect(answer({ actions: ['read', 'list'] })).toBe('refused')
    expect(answer({ type: 'incoming-payment' })).toBe('refused')
    expect(answer({ limits: { debitAmount: { ...usd(10), assetCode: 'EUR' } } })).toBe('refused')
    expect(answer({ limits: { debitAmount: { ...usd(10), assetScale: 3 } } })).toBe('refused')
    expect(answer({ limits: { receiver } })).toBe('accepted')
    expect(answer({ limits: { receiver: `${receiver}0` } })).toBe('refused')
  })
})
