import fc from 'fast-check'
import { memoryStore } from 'open-payments-server'
import { isLong, runs, some } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import {
  arbitraries,
  expectedSpending,
  type SpendingWallet,
  type StoreSubject,
  defaultScene as scene,
  spendingProperty,
  type WalletSubject,
} from '../src/index.js'
import { type StoreFault, storeFaults } from './support/faulty-stores.js'
import { faultyWallet, type Mistake } from './support/faulty-wallet.js'

/** To find the shortest history takes longer than to find one. */
const endOnFailure = !isLong

/** Returns the length of the counterexample, and its error message. */
async function search(subject: StoreSubject | WalletSubject, parameters: fc.Parameters<unknown>) {
  const { failed, counterexample, errorInstance, numRuns } = await fc.check(
    spendingProperty(fc, subject),
    parameters as object,
  )
  const steps = counterexample?.[0].steps.length ?? 0
  const message = failed ? (errorInstance as Error).message : undefined
  return { steps, message, numRuns }
}

async function finds(wallet: () => SpendingWallet, parameters: fc.Parameters<unknown>) {
  return search({ wallet, scene }, parameters)
}

/**
 * Searches until a history is as short as the shortest one that shows the mistake: shrinking may end at a longer one.
 */
async function expectFound(subject: StoreSubject | WalletSubject, stepsMax: number) {
  const lengths: number[] = []
  for (let seed = 1; seed <= 8; seed += 1) {
    const { message, steps } = await search(subject, { numRuns: 2_000, seed, endOnFailure })
    expect(message).toMatch(/^[^\n]+\n\n {5}time: 20\d\d-\S+Z\n {2}1\. grant 1, approved/)
    lengths.push(steps)
    if (endOnFailure || steps <= stepsMax) return
  }
  expect(Math.min(...lengths), lengths.join()).toBeLessThanOrEqual(stepsMax)
}

describe('the search finds nothing', () => {
  test('in the servers over a store that keeps the contract', async () => {
    await fc.assert(spendingProperty(fc, { store: memoryStore }), { numRuns: runs(1_200, 20) })
  })

  test('in the servers when concurrent requests share a quote after a revocation', async () => {
    // Once, the wait for one of them at the gate of the race never ended.
    const parameters = { seed: -1901778733, numRuns: 25, endOnFailure: true }
    await fc.assert(spendingProperty(fc, { store: memoryStore }), parameters)
  })

  test('in the servers with counted repetitions and a hold of one hour', async () => {
    const policy = { intervalCounting: 'repetitions', holdMs: 3_600_000 } as const
    await fc.assert(spendingProperty(fc, { store: memoryStore, ...policy }), {
      numRuns: runs(100),
    })
  })

  test('in a wallet without mistakes', async () => {
    await fc.assert(spendingProperty(fc, { wallet: () => faultyWallet(scene), scene }), {
      numRuns: runs(400),
    })
  })
})

describe('the search finds a wallet in which', () => {
  /** The maximum number of steps of the shortest history, its grant included. */
  const caught: Readonly<Record<Mistake, number>> = {
    'a late failure releases its amount into the current window': 7,
    'a failed payment also releases what was sent': 6,
    'a payment that completes with less releases its full amount': 6,
    'a completed payment counts in full': 6,
    'all items of a grant share one budget': 4,
    'a window includes the instant at which it ends': 5,
    'the first window is calculated from midnight': 5,
    'a repeat pays again': 3,
    'sums are floating-point numbers': 3,
    'amounts are compared as text': 3,
    'a total must stay below the limit': 2,
    'a revoked grant still pays': 3,
    'the client gets everything that it requested': 3,
    'cancelling twice releases the amount twice': 6,
    'failing twice releases the amount twice': 6,
    'a payment can be begun twice': 4,
    'a lapsed payment can still be begun': 4,
    'a payment can send more than was reserved': 5,
    'a payment reads the budget, waits, and then writes it': 3,
    'months have 30 days': 6,
    'a repeated report adds to the totals': 6,
    'the receiver is not checked': 3,
    'limits on the received amount are ignored': 3,
    'monthly windows drift': 6,
    'months are calculated backwards from the drifted end': 6,
    'the totals of all reports are added up': 6,
    'a repeated final report releases the amount twice': 7,
    'the delivered amount is calculated from the sent amount': 6,
    'a repeat with another amount returns the first payment': 3,
    'a repeat with another amount pays again': 4,
    'every account of the owner can pay': 2,
    'the accounts of the owner share a budget': 4,
    'a failed write keeps its reservation': 4,
    'a key is kept only after the response': 2,
    'a lowered limit applies only to later grants': 3,
    'a removed item still pays': 3,
    'an amendment returns what was spent': 4,
    'an amendment raises a limit': 2,
    'an amendment forgets the conditions before it': 4,
    'a pause is ignored': 3,
    'the maximum of one payment is ignored': 3,
    'the receivers of the conditions are ignored': 3,
    'a limit of the owner counts amounts, and not payments': 3,
    'a payment that sent nothing stays in the number of payments': 4,
    'a limit of an account counts the payments of each grant alone': 5,
    'a limit of the owner returns nothing of a failed payment': 5,
    'an added limit of the owner applies only to later grants': 3,
    'an account keeps its first limits': 4,
    'a refund counts back in the current window': 8,
    'a doubt counts back at the end of its payment': 5,
    'a refund counts back only what was delivered': 6,
    'a refund counts back nothing': 6,
    'a repeated refund counts back twice': 7,
    'a doubt can be decided a second time': 6,
    'a refund can be more than the doubt': 5,
    'a payment that was refunded in full stays in the number of payments': 7,
    'a grant counts what the owner pays': 3,
    'the limits of an account always count what the owner pays': 4,
    'the limits of an account never count what the owner pays': 4,
    'the owner pays twice with one key': 3,
    'a list of a client contains what the owner pays': 3,
  }

  const named = some(Object.entries(caught), 12)
  test.each(named)('%s, with at most %d steps', async (mistake, stepsMax) => {
    const wallet = () => faultyWallet(scene, mistake as Mistake)
    await expectFound({ wallet, scene }, stepsMax)
  })

  test('intervals are counted differently than declared', async () => {
    const wallet = () => faultyWallet(scene, undefined, 'repetitions')
    const { message } = await finds(wallet, { numRuns: 2_000, seed: 2 })
    expect(message).toMatch(/its (?:last window has ended|first window has not started)/)
  })
})

describe('the search finds a store that', () => {
  const caught: Partial<Record<StoreFault, number>> = {
    'lets the last writer win': 4,
    'checks before it writes': 4,
    'writes only the first record': 4,
    'reads old versions': 5,
    // The search needs hundreds of histories for these.
    ...(isLong ? { 'ignores guards': 3, 'writes a part of a commit': 4 } : {}),
  }

  test.each(some(Object.entries(caught), 2))(
    '%s, with at most %d steps',
    async (fault, stepsMax) => {
      const store = () => storeFaults[fault as StoreFault](memoryStore())
      await expectFound({ store }, stepsMax)
    },
  )
})

describe('the error', () => {
  test('shows the window, its limit, the amount spent, the excess and the history', async () => {
    const wallet = () => faultyWallet(scene, 'a failed payment also releases what was sent')
    const { message } = await finds(wallet, { numRuns: 2_000, seed: 1 })
    const limit = String.raw`limit (?:USD|EUR) \d+\.\d\d, spent (?:USD|EUR) \d+\.\d\d, over by (?:USD|EUR) \d+\.\d\d`
    const lines = (message ?? '').split('\n')
    expect(lines[0]).toMatch(
      new RegExp(
        `^the wallet accepted it; expected a refusal: grant 1, item 1, .*: ${limit}(?:;|$)`,
      ),
    )
    expect(lines.filter((line) => /^ {2}\d\. /.test(line)).at(-1)).toMatch(/: accepted$/)
  })

  test('is the cause of the error of fast-check, which prints the reason and the history', async () => {
    const wallet = () => faultyWallet(scene, 'a total must stay below the limit')
    const property = spendingProperty(fc, { wallet, scene })
    const error = await fc.assert(property, { numRuns: 50, seed: 1 }).catch((thrown) => thrown)
    expect(error.message).toMatch(
      /Counterexample: \[\nthe wallet refused it \(over.*\n\n {5}time: 20.*\n {2}1\. grant 1, approved\n/,
    )
    expect(error.cause).toMatchObject({ code: 'ERR_SPENDING' })
    expect(error.cause.message).toContain(
      'the wallet refused it (over the limit); expected: accepted',
    )
  })
})

describe('a wallet whose clock cannot be set', () => {
  const { setClock: _, ...wallet } = faultyWallet(scene)

  test('needs the start of the histories', async () => {
    const { message } = await search({ wallet: () => wallet, scene }, { numRuns: 1 })
    expect(message).toBe('start must be the present: the wallet has no setClock')
  })

  test('is tested in the present', async () => {
    const start = Date.now()
    const { message } = await search({ wallet: () => wallet, scene, start }, { numRuns: 1 })
    expect(message ?? '').not.toContain('start must be')
  })
})

test('the histories reach every expected outcome of every step', () => {
  const count = runs(1_000, 500)
  const histories = fc.sample(arbitraries(fc).history(), { numRuns: count, seed: 1 })
  const met = new Map<string, number>()
  for (const history of histories) {
    for (const { action, answer } of expectedSpending(history)) {
      const name = `${action.type} ${answer}`
      met.set(name, (met.get(name) ?? 0) + 1)
    }
  }
  /** How often in a thousand histories. */
  const everywhere = {
    'alter refused': 50,
    'begin accepted': 300,
    'begin refused': 200,
    'cancel accepted': 70,
    'cancel either': 10,
    'amend accepted': 100,
    'amend refused': 10,
    'cancel refused': 5,
    'decide-doubt accepted': 70,
    'decide-doubt either': 10,
    'decide-doubt refused': 50,
    'fail accepted': 70,
    'fail either': 10,
    'fail refused': 80,
    'grant accepted': 600,
    'lapse accepted': 100,
    'limit-account accepted': 100,
    'list accepted': 100,
    'pay accepted': 700,
    'pay refused': 800,
    'retry accepted': 100,
    'retry either': 10,
    'retry refused': 100,
    'revoke accepted': 100,
    'rotate accepted': 100,
    'rotate either': 12,
    'report-sent accepted': 100,
    'report-sent either': 10,
    'report-sent refused': 50,
    'wait accepted': 700,
  }
  for (const [name, times] of Object.entries(everywhere)) {
    expect(met.get(name) ?? 0, name).toBeGreaterThanOrEqual((times * count) / 1_000)
  }
})
