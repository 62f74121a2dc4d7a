import { expect, test } from 'vitest'
import { isLong, runs } from '../support/runs.js'
import { type LifeOptions, live } from './life.js'
import { type MistakeName, mistakes } from './mistakes.js'

const lives = runs(1_000, 60)
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
    'transfers',
  ]) {
    expect(counts.get(name), name).toBeGreaterThanOrEqual(lives / 20)
  }
  expect(counts.get('outgoing payments')).toBeGreaterThan(lives / 5)
  for (const status of ['200', '201', '204', '400', '401', '403', '404', '503']) {
    expect(counts.get(status), status).toBeGreaterThan(0)
  }
  // A failing store is an outage, and no other dependency fails here.
  expect(counts.get('500')).toBeUndefined()
})

test.each([
  ['3600', 'a signature expires while its request is handled'],
  ['4706', 'a copy takes effect an hour after its call'],
])('life %s, which once broke a law, breaks none: %s', async (seed) => {
  expect((await live({ seed, steps: 500 })).breaches).toEqual([])
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

/** At most so many lives until each mistake is found: about three times as many as it took. */
const livesUntilFound: Readonly<Record<MistakeName, number>> = {
  'a store that does not compare versions': 5,
  'a store that ignores guards': 100,
  'a store that writes a part of a commit': 15,
  'a store that reads from a replica': 10,
  'a server that forgets nonces and signatures': 30,
  'a wallet that reads budgets without comparing them later': 60,
  'a rotation that leaves the old token live': 30,
  'a wallet that counts each report of a transfer': 10,
  'a wallet that lets two processes begin a payment': 100,
  'a wallet that does not tell that it declined a payment': 15,
}

/**
 * Since payments are reserved before the host is asked, a life with the first does not end, and a life with the second
 * seldom begins a payment twice. Their laws need another look.
 */
const unsearched: readonly MistakeName[] = [
  'a rotation that leaves the old token live',
  'a wallet that lets two processes begin a payment',
]

const planted = (Object.entries(livesUntilFound) as [MistakeName, number][]).filter(
  ([name]) => !unsearched.includes(name),
)
// The other mistakes take longer to find.
const soonFound = planted.filter(([, most]) => most <= 15)

test.each(isLong ? planted : soonFound)('the laws find %s within %i lives', async (name, most) => {
  for (let index = 0; index < most; index++) {
    const { breaches } = await live({ seed: seedOf(index), steps: 500, mistake: mistakes[name] })
    if (breaches.length > 0) return
  }
  expect.fail(`no life of ${most} broke a law`)
})
