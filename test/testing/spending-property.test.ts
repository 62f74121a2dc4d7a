import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import {
  arbitraries,
  expectedSpending,
  type SpendingWallet,
  type StoreSubject,
  defaultScene as scene,
  spendingProperty,
  type WalletSubject,
} from '../../src/testing/index.js'
import { bookedWallet } from '../support/booked-wallet.js'
import { commits } from '../support/broken-stores.js'
import { carelessWallet, type Mistake } from '../support/careless-wallet.js'
import { runs } from '../support/runs.js'
import { machineWallet } from '../support/spending-machines.js'

/** Returns the length of the shortest counterexample, and its error message. */
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

describe('the search finds nothing', () => {
  test('in the state machines, which always agree with the model', async () => {
    const wallet = () => bookedWallet(machineWallet(), [])
    await fc.assert(spendingProperty(fc, { wallet, scene }), { numRuns: runs(600) })
  })

  test('in the servers over a store that keeps the contract', async () => {
    await fc.assert(spendingProperty(fc, { store: memoryStore }), { numRuns: runs(100) })
  })

  test('in the servers with counted repetitions and a hold of one hour', async () => {
    const policy = { intervalCounting: 'repetitions', holdMs: 3_600_000 } as const
    await fc.assert(spendingProperty(fc, { store: memoryStore, ...policy }), { numRuns: 30 })
  })

  test('in a wallet without mistakes', async () => {
    await fc.assert(spendingProperty(fc, { wallet: () => carelessWallet(scene), scene }), {
      numRuns: runs(400),
    })
  })
})

describe('the search finds a wallet in which', () => {
  /** The maximum number of steps of the shortest history, its grant included. */
  const caught: Readonly<Record<Mistake, number>> = {
    'a late failure gives back to the window of today': 7,
    'what was sent of a failed payment is given back too': 6,
    'a payment that is completed for less gives back all of it': 6,
    'a completed payment is counted whole': 6,
    'all items of a grant share one budget': 4,
    'a window still holds the instant at which it ends': 5,
    'the first window is reckoned from midnight': 5,
    'a repeat pays again': 3,
    'sums are floating point': 3,
    'amounts are compared as text': 3,
    'a limit has to be kept strictly': 2,
    'a revoked grant still pays': 3,
    'the owner is granted what was asked': 3,
    'withdrawing twice gives back twice': 6,
    'failing twice gives back twice': 6,
    'a payment is begun by everybody who tries': 4,
    'what has lapsed can still be begun': 4,
    'more can be sent than was reserved': 5,
    'looks at the budget, waits, and writes it': 3,
    'months have 30 days': 6,
    'the receiver is not looked at': 3,
    'what is received is not limited': 3,
  }

  test.each(Object.entries(caught))('%s, with at most %d steps', async (mistake, stepsMax) => {
    const wallet = () => carelessWallet(scene, mistake as Mistake)
    const { message, steps } = await finds(wallet, { numRuns: 2_000, seed: 1 })
    expect(message).toMatch(/^[^\n]+\n\n {5}time: 20\d\d-\S+Z\n {2}1\. grant 1, approved/)
    expect(steps, message).toBeLessThanOrEqual(stepsMax)
  })

  test('intervals are counted differently than declared', async () => {
    const wallet = () => carelessWallet(scene, undefined, 'repetitions')
    const { message } = await finds(wallet, { numRuns: 2_000, seed: 2 })
    expect(message).toMatch(/its last window has ended/)
  })
})

describe('the search finds a store that', () => {
  const { lastWriteWins, checkThenAct, ignoresGuards, halfCommit, firstOnly } = commits

  /** Reads budgets from a replica that is one write behind. */
  function lagsBehind(store: Store): Store {
    const old = new Map<string, Awaited<ReturnType<Store['load']>>>()
    return {
      ...store,
      load: async (kind, id) =>
        kind === 'budget' && old.has(id) ? old.get(id) : store.load(kind, id),
      async commit(commit) {
        const ids = commit.changes.flatMap(({ kind, next }) => (kind === 'budget' ? next.id : []))
        const before = new Map(
          await Promise.all(ids.map(async (id) => [id, await store.load('budget', id)] as const)),
        )
        const committed = await store.commit(commit)
        for (const [id, budget] of committed ? before : []) old.set(id, budget)
        // A writer that lost a race reads the current state next time.
        if (!committed) for (const id of ids) old.delete(id)
        return committed
      },
    }
  }

  test.each<readonly [fault: string, (store: Store) => Store, stepsMax: number, seed: number]>([
    ['lets the last writer win', lastWriteWins, 4, 1],
    ['checks before it writes', (store) => checkThenAct(store), 4, 1],
    ['ignores guards', ignoresGuards, 3, 1],
    ['writes a part of a commit', halfCommit, 4, 1],
    ['writes only the first record', firstOnly, 4, 1],
    ['reads old versions', lagsBehind, 5, 1],
  ])('%s', async (_, broken, stepsMax, seed) => {
    const store = () => broken(memoryStore())
    const { message, steps } = await search({ store }, { numRuns: 2_000, seed })
    expect(message).toMatch(/^[^\n]+\n\n {5}time: 20\d\d-\S+Z\n {2}1\. grant 1, approved/)
    expect(steps, message).toBeLessThanOrEqual(stepsMax)
  })
})

describe('the error', () => {
  test('shows the window, its limit, the amount spent, the excess and the history', async () => {
    const wallet = () =>
      carelessWallet(scene, 'what was sent of a failed payment is given back too')
    const { message } = await finds(wallet, { numRuns: 2_000, seed: 1 })
    const limit = String.raw`limit (?:USD|EUR) \d+\.\d\d, spent (?:USD|EUR) \d+\.\d\d, over by (?:USD|EUR) \d+\.\d\d`
    const lines = (message ?? '').split('\n')
    expect(lines[0]).toMatch(
      new RegExp(`^the wallet accepted it; expected a refusal: grant 1, item 1, .*: ${limit}$`),
    )
    expect(lines.filter((line) => /^ {2}\d\. /.test(line)).at(-1)).toMatch(/: accepted$/)
  })

  test('is the cause of the error of fast-check, which prints the history', async () => {
    const wallet = () => carelessWallet(scene, 'a limit has to be kept strictly')
    const property = spendingProperty(fc, { wallet, scene })
    const error = await fc.assert(property, { numRuns: 50, seed: 1 }).catch((thrown) => thrown)
    expect(error.message).toMatch(/Counterexample: \[\n {5}time: 20.*\n {2}1\. grant 1, approved\n/)
    expect(error.cause).toMatchObject({ code: 'ERR_SPENDING' })
    expect(error.cause.message).toContain(
      'the wallet refused it (over the limit); expected: accepted',
    )
  })
})

test('the histories reach every expected outcome of every step', () => {
  const histories = fc.sample(arbitraries(fc).history(), { numRuns: 1_000, seed: 1 })
  const met = new Map<string, number>()
  for (const history of histories) {
    for (const { action, answer } of expectedSpending(history)) {
      const name = `${action.type} ${answer}`
      met.set(name, (met.get(name) ?? 0) + 1)
    }
  }
  const everywhere = {
    'begin accepted': 300,
    'begin refused': 200,
    'cancel accepted': 70,
    'cancel either': 10,
    'cancel refused': 10,
    'fail accepted': 70,
    'fail either': 10,
    'fail refused': 80,
    'grant accepted': 600,
    'lapse accepted': 100,
    'pay accepted': 700,
    'pay refused': 800,
    'retry accepted': 100,
    'retry either': 10,
    'retry refused': 100,
    'revoke accepted': 100,
    'rotate accepted': 100,
    'rotate either': 20,
    'report-sent accepted': 100,
    'report-sent either': 10,
    'report-sent refused': 50,
    'wait accepted': 700,
  }
  for (const [name, times] of Object.entries(everywhere)) {
    expect(met.get(name) ?? 0, name).toBeGreaterThanOrEqual(times)
  }
})
