import fc from 'fast-check'
import { type AccessItem, type Amount, memoryStore, type Store } from 'open-payments-server'
import { runs } from 'open-payments-test-support/runs'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  expectedSpending,
  type SpendingAction,
  SpendingError,
  type SpendingHistory,
  type SpendingPorts,
  type SpendingStep,
  type SpendingWallet,
  defaultScene as scene,
  spendingProperty,
  startOfTests,
} from '../src/index.js'
import { createOracle } from '../src/spending/oracle.js'
import { runHistory } from '../src/spending/run.js'
import { libraryServers, serversWallet } from '../src/spending/servers.js'
import { faultyWallet } from './support/faulty-wallet.js'

const { walletAddress } = scene
const [{ url: receiver }] = scene.receivers
const hour = 3_600_000
const rules = {
  intervalCounting: 'occurrences',
  holdMs: 24 * hour,
  decideMs: 30_000,
  scene,
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
  return { payment, grant: 1, by: 'direct', walletAddress, receiver, ...amounts } as const
}

const pay = (payment: number, value: number) =>
  ({ type: 'pay', ...request(payment, value) }) as const

function atOnce(...actions: readonly SpendingAction[]): SpendingStep {
  return { type: 'at once', actions, commits: 'together' }
}

function history(...steps: readonly SpendingStep[]): SpendingHistory {
  return { scene, start: startOfTests, steps }
}

/** A wallet that gives prepared answers to payment requests, in order. */
function scripted(...answers: readonly (string | false | Partial<SpendingWallet>)[]) {
  const ids = answers.filter((answer) => typeof answer !== 'object')
  const overrides = answers.find((answer) => typeof answer === 'object') as Partial<SpendingWallet>
  const wallet: SpendingWallet = {
    ...faultyWallet(scene),
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
    await runHistory(history(...steps), wallet, { ...rules, ...more })
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

describe('of concurrent payments', () => {
  const race = [grant(item(10)), atOnce(pay(1, 7), pay(2, 7))]

  test.each([
    ['the first', ['one', false]],
    ['the second', [false, 'two']],
  ] as const)('%s may win', async (_, answers) => {
    expect(await problemWith(race, scripted(...answers))).toBeUndefined()
  })

  test('only one may win if the limit allows only one', async () => {
    const problem = await problemWith(race, scripted('one', 'two'))
    expect(problem).toBe(
      [
        'the wallet accepted it; expected a refusal: grant 1, item 1, the life of the grant: limit USD 0.10, spent USD 0.14, over by USD 0.04',
        '',
        '     time: 2026-11-21T12:00:00.000Z',
        '  1. grant 1, approved',
        '     - item 1, from https://wallet.example/alice: at most USD 0.10 debited in all: accepted',
        '  2. concurrently:',
        `     - pay USD 0.07 from ${walletAddress} to ${receiver} (payment 1, grant 1): accepted`,
        `     - pay USD 0.07 from ${walletAddress} to ${receiver} (payment 2, grant 1): accepted`,
        '',
      ].join('\n'),
    )
  })

  test('one must win if the limit allows one', async () => {
    const problem = await problemWith(race, scripted(false, false))
    expect(problem).toMatch(/^the wallet refused it \(no\); expected: accepted\n/)
    expect(await problemWith(race, scripted(false, false), { mayRefuse: true })).toBeUndefined()
  })

  test('either item may have been charged until an answer decides it', async () => {
    const twoItems = [grant(item(7), item(10)), atOnce(pay(1, 7), pay(2, 6))]
    const next = (value: number) => [...twoItems, pay(3, value)]
    const both = ['one', 'two'] as const
    // Either item 1 holds the 7 and item 2 has 4 left, or item 1 holds the 6 and they have 1 and 3 left.
    expect(await problemWith(next(4), scripted(...both, 'three'))).toBeUndefined()
    expect(await problemWith(next(4), scripted(...both, false))).toBeUndefined()
    expect(await problemWith(next(5), scripted(...both, 'three'))).toMatch(/over by USD 0.01/)
    expect(await problemWith(next(3), scripted(...both, false))).toMatch(/expected: accepted/)
  })

  test('those that run while their token is rotated may be refused, and no others', async () => {
    const rotate = { type: 'rotate', grant: 1 } as const
    const other = { type: 'rotate', grant: 2 } as const
    const second: SpendingAction = { ...grant(item(10)), grant: 2 } as SpendingAction
    const grants = [grant(item(10)), second]
    const steps = (rotation: SpendingAction) => [...grants, atOnce(pay(1, 7), rotation)]
    expect(await problemWith(steps(rotate), scripted(false))).toBeUndefined()
    expect(await problemWith(steps(other), scripted(false))).toMatch(/expected: accepted/)
    expect(await problemWith([...grants, rotate, pay(1, 7)], scripted(false))).toMatch(
      /expected: accepted/,
    )
  })
})

describe('a repeat', () => {
  const retry = { type: 'retry', request: request(1, 3) } as const

  test('must return the existing payment', async () => {
    const steps = [grant(item(10)), pay(1, 3), retry]
    expect(await problemWith(steps, scripted('one', 'one'))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'two'))).toMatch(
      /^a repeated request created payment 1 twice\n/,
    )
    expect(await problemWith(steps, scripted('one', false))).toMatch(/expected: accepted/)
  })

  test('of a refused request is a new request, which may be accepted within the limit', async () => {
    const cancel = { type: 'cancel', payment: 2 } as const
    const answers = ['two', false, 'one'] as const
    const cancelled = { cancel: async () => ({ accepted: true }) as const }
    const steps = [grant(item(10)), pay(2, 9), pay(1, 3), cancel, retry]
    expect(await problemWith(steps, scripted(...answers, cancelled))).toBeUndefined()
    const early = [grant(item(10)), pay(2, 9), pay(1, 3), retry]
    expect(await problemWith(early, scripted(...answers))).toMatch(/over by USD 0.02/)
  })

  test('under a revoked grant may be refused, and must not pay again', async () => {
    const revoke = { type: 'revoke', grant: 1 } as const
    const steps = [grant(item(10)), pay(1, 3), revoke, retry]
    expect(await problemWith(steps, scripted('one', false))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'one'))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'two'))).toMatch(/created payment 1 twice/)
  })

  test('may be refused if the owner removed the access to its account, and must not pay again', async () => {
    const savings = { ...item(5), identifier: `${walletAddress}-savings` }
    const remove = { type: 'amend', grant: 1, items: [{ item: 2, ...savings.limits }] } as const
    const steps = [grant(item(10), savings), pay(1, 3), remove, retry]
    expect(await problemWith(steps, scripted('one', false))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'one'))).toBeUndefined()
    expect(await problemWith(steps, scripted('one', 'two'))).toMatch(/created payment 1 twice/)
    const lower = { ...remove, items: [{ item: 1, debitAmount: usd(3) }, ...remove.items] }
    const covered = [grant(item(10), savings), pay(1, 3), lower, retry]
    expect(await problemWith(covered, scripted('one', false))).toMatch(/^the wallet refused it/)
  })
})

describe('a request with the key of another and another amount', () => {
  const alter = { type: 'alter', request: request(1, 4) } as const

  test('must be refused if the first one was accepted, even within the limit', async () => {
    const steps = [grant(item(10)), pay(1, 3), alter]
    expect(await problemWith(steps, scripted('one', false))).toBeUndefined()
    for (const id of ['one', 'two']) {
      expect(await problemWith(steps, scripted('one', id))).toMatch(
        /^the wallet accepted it; expected a refusal: the request for payment 1 had another amount\n/,
      )
    }
  })

  test('may be accepted if the first one was refused, and is then the payment', async () => {
    const steps = [grant(item(10)), pay(1, 11), alter]
    expect(await problemWith(steps, scripted(false, 'one'))).toBeUndefined()
    expect(await problemWith(steps, scripted(false, false))).toBeUndefined()
    const full = [...steps, pay(2, 7)]
    expect(await problemWith(full, scripted(false, 'one', 'two'))).toMatch(/over by USD 0.01/)
  })
})

describe('an account', () => {
  test('is not paid from under the limits of another one', async () => {
    const other = { ...pay(1, 3), walletAddress: 'https://wallet.example/alice-savings' }
    const steps = [grant(item(10)), other]
    expect(await problemWith(steps, scripted(false))).toBeUndefined()
    expect(await problemWith(steps, scripted('one'))).toMatch(
      /expected a refusal: grant 1, item 1 does not cover this payment\n/,
    )
  })
})

describe('while the store fails', () => {
  const failing = (action: SpendingAction): SpendingStep => ({
    type: 'store fails',
    failure: 'after',
    write: 1,
    sweeps: false,
    action,
  })

  /** A wallet whose first payment rejects while the store fails. */
  function unsettled(...ids: readonly (string | false)[]) {
    let isDown = false
    const { pay: answer, ...wallet } = scripted(...ids)
    return {
      ...wallet,
      failStore: () => {
        isDown = true
        return () => {
          isDown = false
        }
      },
      pay: (request: Parameters<SpendingWallet['pay']>[0]) =>
        isDown ? Promise.reject(new Error('the store failed')) : answer(request),
    }
  }

  test('an action may reject: its repeat settles it', async () => {
    const steps = [grant(item(10)), failing(pay(1, 7)), pay(2, 4)]
    expect(await problemWith(steps, unsettled('one', false))).toBeUndefined()
    const problem = await problemWith(steps, unsettled('one', 'two'))
    expect(problem).toMatch(/over by USD 0.01\n/)
    expect(problem).toContain(
      `  2. while the store fails after it writes: pay USD 0.07 from ${walletAddress} to ${receiver} ` +
        '(payment 1, grant 1): failed, and repeated: accepted\n',
    )
  })

  test('a payment is repeated when the lost call of the host is over, and the clock does not go back', async () => {
    const times: number[] = []
    const wallet = { ...unsettled('one'), setClock: (now: number) => void times.push(now) }
    const wait = { type: 'wait', until: startOfTests + 1_000 } as const
    const steps = [grant(item(10)), failing(pay(1, 7)), wait]
    expect(await problemWith(steps, wallet)).toBeUndefined()
    expect(times.map((at) => at - startOfTests)).toEqual([0, 30_000, 30_000])
  })

  test('the repeat of a payment comes as late as the policy of the host says', async () => {
    const times: number[] = []
    const retry: SpendingAction = { type: 'retry', request: request(1, 7) }
    for (const action of [pay(1, 7), retry]) {
      const wallet = { ...unsettled('one'), setClock: (now: number) => void times.push(now) }
      const steps = [grant(item(10)), failing(action)]
      expect(await problemWith(steps, wallet, { decideMs: 2 * hour })).toBeUndefined()
    }
    expect(times.map((at) => at - startOfTests)).toEqual([0, 2 * hour, 0, 2 * hour])
  })

  test('the repeat of a payment within the limit must not be refused', async () => {
    const steps = [grant(item(10)), failing(pay(1, 7))]
    expect(await problemWith(steps, unsettled(false))).toMatch(/expected: accepted/)
  })

  test('and afterwards, an action that rejects fails the check', async () => {
    const steps = [grant(item(10)), failing(pay(1, 7))]
    const wallet = { ...unsettled(), pay: () => Promise.reject(new Error('down')) }
    expect(await problemWith(steps, wallet)).toMatch(/^down\n/)
  })

  test('a wallet whose store cannot fail performs the action as usual', async () => {
    const { failStore: _, ...wallet } = scripted('one')
    expect(await problemWith([grant(item(10)), failing(pay(1, 7))], wallet)).toBeUndefined()
  })
})

describe('a wallet fails the check if it', () => {
  test('returns the same payment for two requests', async () => {
    const steps = [grant(item(10)), pay(1, 3), pay(2, 3)]
    expect(await problemWith(steps, scripted('one', 'one'))).toMatch(
      /^the wallet returned the same payment for two requests\n/,
    )
  })

  test('reports a wrong spent amount', async () => {
    const steps = [grant(item(10)), pay(1, 3)]
    const saying = (spent: { spentDebitAmount?: Amount; spentReceiveAmount?: Amount }) =>
      scripted({ pay: async () => ({ accepted: true, id: 'one', ...spent }) })
    expect(await problemWith(steps, saying({ spentDebitAmount: usd(3) }))).toBeUndefined()
    // The receive amount is not limited here, so its total is not checked.
    expect(await problemWith(steps, saying({ spentReceiveAmount: usd(2) }))).toBeUndefined()
    expect(await problemWith(steps, saying({ spentDebitAmount: usd(2) }))).toMatch(
      /^the wallet reports USD 0.02 as spent; expected USD 0.03\n/,
    )
  })

  test.each([
    ['of the charged item only', 7, /^the wallet reports USD 0.07 as spent; expected USD 0.10\n/],
    ['of all items', 10, undefined],
  ])('reports as spent the amount %s', async (_, said, problem) => {
    const steps = [grant(item(3), item(10)), pay(1, 3), pay(2, 7)]
    const answers = [3, said].map((spent, index) => ({ id: `${index}`, spent: usd(spent) }))
    const wallet = scripted({
      async pay() {
        const { id = '', spent } = answers.shift() ?? {}
        return { accepted: true, id, ...(spent && { spentDebitAmount: spent }) }
      },
    })
    const message = await problemWith(steps, wallet)
    if (problem === undefined) expect(message).toBeUndefined()
    else expect(message).toMatch(problem)
  })

  test('reports as spent the amount of a window that has ended', async () => {
    const daily = item(10, 'R/2026-01-01T00:00:00Z/P1D')
    const spentAfterADay = (spent: number) => {
      const answers = [3, spent]
      const wallet = scripted({
        async pay() {
          const value = answers.shift() ?? 0
          return { accepted: true, id: `${answers.length}`, spentDebitAmount: usd(value) }
        },
      })
      const wait = { type: 'wait', until: startOfTests + 86_400_000 } as const
      return problemWith([grant(daily), pay(1, 3), wait, pay(2, 4)], wallet)
    }
    expect(await spentAfterADay(4)).toBeUndefined()
    expect(await spentAfterADay(7)).toMatch(
      /^the wallet reports USD 0.07 as spent; expected USD 0.04\n/,
    )
  })

  test('reports a problem itself', async () => {
    const steps = [grant(item(10)), pay(1, 3), pay(2, 3)]
    const problem = vi.fn(() =>
      problem.mock.calls.length === 2 ? 'the ledger is missing' : undefined,
    )
    const message = await problemWith(steps, scripted('one', 'two', { problem }))
    expect(message).toMatch(
      /^the ledger is missing\n[\s\S]* {2}2\. pay USD 0.03 [^\n]*: accepted\n$/,
    )
  })

  test.each([
    [new Error('certificate has expired'), 'certificate has expired'],
    [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    ['no route', 'no route'],
  ])('rejects with a cause: the first line names the cause too', async (cause, text) => {
    const error = new TypeError('fetch failed', { cause })
    const wallet = scripted({ pay: () => Promise.reject(error) })
    const problem = await problemWith([grant(item(10)), pay(1, 7)], wallet)
    expect(problem?.split('\n', 1)).toEqual([`fetch failed: ${text}`])
  })

  test('rejects: the error has the message, the cause and the history so far', async () => {
    const cause = new Error('the server responded with 500')
    const wallet = scripted({ pay: () => Promise.reject(cause) })
    const playing = runHistory(history(grant(item(10)), pay(1, 3)), wallet, rules)
    const error = await playing.catch((thrown) => thrown)
    expect(error).toBeInstanceOf(SpendingError)
    expect(error).toMatchObject({ code: 'ERR_SPENDING', cause })
    expect(error.message).toMatch(/^the server responded with 500\n\n[\s\S]*: the wallet failed\n$/)
  })
})

describe('an unsupported action', () => {
  test('is skipped, and the rest is still checked', async () => {
    const { cancel: _, ...wallet } = faultyWallet(scene)
    const cancel = { type: 'cancel', payment: 1 } as const
    const steps = [grant(item(10)), pay(1, 9), cancel, pay(2, 2)]
    expect(await problemWith(steps, wallet)).toBeUndefined()
    const generous = { ...wallet, pay: scripted('one', 'two').pay }
    const problem = await problemWith(steps, generous)
    expect(problem).toMatch(/over by USD 0.01\n[\s\S]* {2}3\. cancel payment 1: skipped\n/)
  })

  test('includes actions on a payment that was refused', async () => {
    const begin = { type: 'begin', payment: 1 } as const
    const steps = [grant(item(10)), pay(1, 11), begin, pay(2, 9)]
    expect(await problemWith(steps, faultyWallet(scene))).toBeUndefined()
  })

  test('may be almost every action: a wallet whose clock cannot be set', async () => {
    const close = vi.fn()
    function running(): SpendingWallet {
      const { setClock, lapse: _, cancel: __, rotate: ___, ...wallet } = faultyWallet(scene)
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
    await fc.assert(spendingProperty(fc, subject), { numRuns: runs(200) })
    expect(close).toHaveBeenCalledTimes(runs(200))
  })

  test('closes the wallet after a failure too', async () => {
    const close = vi.fn()
    const wallet = () => scripted({ close, grant: () => Promise.reject(new Error('down')) })
    const { failed, numShrinks } = await fc.check(spendingProperty(fc, { wallet, scene }))
    expect(failed).toBe(true)
    expect(close.mock.calls.length).toBeGreaterThan(numShrinks)
  })
})

describe('without control of the clock', () => {
  const midnight = Date.UTC(2026, 10, 22)
  const moments = [midnight - 1, midnight + 1]
  const daily = item(10, 'R/2026-11-21T00:00:00Z/P1D')

  /** Whether the oracle accepts answers to payments requested just before and answered just after midnight. */
  function judged(...answers: readonly (readonly [value: number, accepted: boolean])[]) {
    const oracle = createOracle(rules)
    oracle.check([{ action: grant(daily), answer: { accepted: true }, moments: [startOfTests] }])
    return answers.map(([value, accepted], index) => {
      const answer = accepted ? { accepted, id: `payment-${index}` } : { accepted }
      return oracle.check([{ action: pay(index + 1, value), answer, moments }]).length === 0
    })
  }

  test('a payment may be counted in the window that ends or in the one that begins', () => {
    expect(judged([10, true], [10, true])).toEqual([true, true])
    expect(judged([10, true], [10, false])).toEqual([true, true])
    expect(judged([6, true], [4, true], [10, true])).toEqual([true, true, true])
  })

  test('and in no other window', () => {
    expect(judged([10, true], [10, true], [1, true])).toEqual([true, true, false])
    expect(judged([11, true])).toEqual([false])
    expect(judged([10, false])).toEqual([false])
  })
})

describe('a wallet whose clock advances by itself', () => {
  afterEach(() => vi.restoreAllMocks())

  /** Pays across midnight. */
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
  ])('may pay in %s, within its limit', async (_, interval) => {
    expect(await atMidnight(interval, 10)).toBeUndefined()
    expect(await atMidnight(interval, 11)).toMatch(/over by USD 0.01/)
  })
})

describe('the wallet of this library', () => {
  test('fails payments whose hold expired, although its due list lags', async () => {
    const memory = memoryStore()
    let questions = 0
    const due: Store['due'] = async (...query) => (++questions > 2 ? memory.due(...query) : [])
    const servers = (ports: SpendingPorts) => libraryServers({ ...memory, due }, ports, rules)
    const wallet = await serversWallet(servers, scene, false)
    const wait = { type: 'wait', until: startOfTests + 24 * hour } as const
    const steps = [grant(item(10)), pay(1, 10), wait, { type: 'lapse' } as const, pay(2, 10)]
    expect(await problemWith(steps, wallet)).toBeUndefined()
    expect(questions).toBeGreaterThan(2)
  })
})

describe('the expectation for a history', () => {
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

  test('has an answer for each action', () => {
    expect(expected.map(({ step }) => step)).toEqual([0, 1, 1, 2, 3, 4, 5, 6, 7, 8])
    expect(pays.map(({ answer }) => answer)).toEqual([
      'accepted',
      'refused',
      'accepted',
      'refused',
      'refused',
    ])
  })

  test('gives the reason of each refusal', () => {
    const [first, second, , fourth, fifth] = pays.map(({ problems }) => problems)
    const window = (day: number) =>
      `grant 1, item 1, the window from 2026-11-${day}T00:00:00.000Z to 2026-11-${day + 1}T00:00:00.000Z`
    expect(first).toEqual([])
    expect(second).toEqual([`${window(21)}: limit USD 0.10, spent USD 0.11, over by USD 0.01`])
    expect(fourth).toEqual([`${window(22)}: limit USD 0.10, spent USD 0.11, over by USD 0.01`])
    expect(fifth).toEqual(['grant 1, item 1: its last window has ended'])
  })

  test('has the spent amount of every window, with a late failure in the window of its payment', () => {
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

  test('follows the counting and the hold of the wallet', () => {
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

  test('fails payments at the end of their hold, and not before', () => {
    const end = startOfTests + 24 * hour
    const spent = (until: number) =>
      expectedSpending(history(grant(item(10)), pay(1, 9), wait(until), { type: 'lapse' })).at(-1)
        ?.spent[0]?.spent
    expect(spent(end - 1)).toBe(9n)
    expect(spent(end)).toBe(0n)
  })

  test('refuses totals below earlier ones or above the amounts', () => {
    const reportSent = (sent: number, delivered: number): SpendingAction => ({
      type: 'report-sent',
      payment: 1,
      sentAmount: usd(sent),
      deliveredAmount: usd(delivered),
      final: false,
    })
    const answer = (sent: number, delivered: number) =>
      expectedSpending(
        history(grant(item(10)), pay(1, 9), begin, reportSent(5, 5), reportSent(sent, delivered)),
      ).at(-1)?.answer
    expect([answer(5, 5), answer(6, 5), answer(5, 6)]).toEqual(Array(3).fill('accepted'))
    expect([answer(4, 5), answer(5, 4), answer(10, 5), answer(5, 10)]).toEqual(
      Array(4).fill('refused'),
    )
  })

  test('refuses payments that no item covers', () => {
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
