import { expect, test } from 'vitest'
import { isLong, runs } from '../../test/support/runs.js'
import { type LifeOptions, live } from './life.js'
import { type MistakeName, mistakes } from './mistakes.js'
import type { Mistake } from './world.js'

const lives = runs(1_000, 35)
const steps = runs(500, 200)

const seedOf = (index: number) => String(index + 1)

test('no life breaks a law, whatever fails in it', async () => {
  const counts = new Map<string, number>()
  for (let index = 0; index < lives; index++) {
    const life = await live({ seed: seedOf(index), steps })
    expect(life.breaches, `npm run simulate -- --seed ${life.seed} --steps ${steps}`).toEqual([])
    for (const [name, count] of life.counts) counts.set(name, (counts.get(name) ?? 0) + count)
  }
  // The lives reach what the laws are about.
  for (const name of [
    'approvals',
    'rotations',
    'revocations',
    'withdrawals',
    'amendments',
    'confirmations',
    'declined by owners',
    'transfers',
    'begun',
    'orders',
    'decided doubts',
    'lives with remote grants',
  ]) {
    expect(counts.get(name), name).toBeGreaterThanOrEqual(Math.floor(lives / 20))
  }
  expect(counts.get('outgoing payments')).toBeGreaterThan(lives)
  for (const status of ['200', '201', '204', '400', '401', '403', '404', '503']) {
    expect(counts.get(status), status).toBeGreaterThan(0)
  }
  // A failing store is an outage, and no other dependency fails here.
  expect(counts.get('500')).toBeUndefined()
})

test('the same seed gives the same life, bit by bit', async () => {
  const options: LifeOptions = { seed: 'again', steps: 300 }
  const lines: string[] = []
  const first = await live({ ...options, print: (line) => lines.push(line) })
  await live({ seed: 'between', steps: 20 })
  const repeated: string[] = []
  const second = await live({ ...options, print: (line) => repeated.push(line) })
  expect(repeated).toEqual(lines)
  expect(second).toEqual(first)
  expect((await live({ ...options, seed: 'another' })).hash).not.toBe(first.hash)
})

test('a life that breaks a law breaks it again at the same step', async () => {
  const mistake = mistakes['a store that does not compare versions']
  const broken = await live({ seed: '1', steps: 500, mistake })
  expect(broken.breaches).not.toEqual([])
  expect(await live({ seed: '1', steps: 500, mistake })).toEqual(broken)
})

test('a life that would never end breaks a law', async () => {
  const mistake: Mistake = {
    introspect: (introspect) => async (query) => {
      for (;;) await introspect(query)
    },
  }
  expect((await live({ seed: '1', steps: 100, mistake })).breaches.join()).toMatch('has no end')
})

/**
 * At most so many lives until each mistake is found: at least three times as many as it took, from several seeds on.
 */
const livesUntilFound: Readonly<Record<MistakeName, number>> = {
  'a store that does not compare versions': 6,
  'a store that ignores guards': 40,
  'a store that writes a part of a commit': 6,
  'a store that reads from a replica': 5,
  'a server that forgets nonces and signatures': 35,
  'a wallet that reads budgets without comparing them later': 150,
  'a rotation that leaves the old token live': 15,
  'a wallet that counts each report of a transfer': 10,
  'a wallet that lets two processes begin a payment': 100,
  'a wallet that does not tell that it declined a payment': 15,
  'a wallet that keeps nothing of ended grants': 150,
  'a wallet whose owner pays twice with one key': 10,
  'a wallet that counts orders in the budget of a grant': 20,
  'a wallet that shows the owner’s payments to clients': 20,
}

const planted = Object.entries(livesUntilFound) as [MistakeName, number][]
// The others take longer to find.
const soonFound = planted.filter(([, most]) => most <= 6)

test.each(isLong ? planted : soonFound)('the laws find %s within %i lives', async (name, most) => {
  for (let index = 0; index < most; index++) {
    const { breaches } = await live({ seed: seedOf(index), steps: 500, mistake: mistakes[name] })
    if (breaches.length > 0) return
  }
  expect.fail(`no life of ${most} broke a law`)
})
