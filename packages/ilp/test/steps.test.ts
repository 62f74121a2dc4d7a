import type { Database } from 'create-open-payments-server/wallet/sql'
import { isLong } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { sqlite, usePostgres } from './databases.js'
import { createLink, type Fate, type Setting, useSkippingClock } from './paying-wallet.js'
import { booksIn, type Step } from './receiving-wallet.js'

const cleared = usePostgres(2)
useSkippingClock()

type Currencies = Required<Pick<Setting, 'payer' | 'receiver'>>
const dollars: Currencies = { payer: 'USD', receiver: 'USD' }
const currencies: readonly Currencies[] = [
  dollars,
  { payer: 'USD', receiver: 'EUR' },
  { payer: 'EUR', receiver: 'USD' },
]
/** All of them in `npm run test:long`; else another one for each step. */
const currenciesAt = (step: number) =>
  isLong ? currencies : currencies.filter((_, index) => index === step % currencies.length)

const places: Readonly<Record<string, () => Promise<readonly (Database | undefined)[]>>> = {
  'in memory': async () => [],
  'on SQLite': () => Promise.all([sqlite(), sqlite()]),
  async 'on PostgreSQL'() {
    return cleared()
  },
}

async function open(
  where: string,
  isOurs: boolean,
  each: Currencies,
  more: Pick<Setting, 'mistake'> = {},
) {
  const [one, other] = (await places[where]?.()) ?? []
  const books = { here: booksIn(one), there: booksIn(other) }
  return createLink({ ...books, amount: 500n, isOurs, ...each, ...more })
}

type Link = Awaited<ReturnType<typeof open>>

/** Further processes go on, each after the lease of the one before is over. */
async function finish(link: Link) {
  for (let more = 0; more < 10 && !(await link.isOver()); more++) {
    await link.advance(60_000)
    await link.process([]).deliver()
  }
  // Also after it has ended: its event was not acknowledged.
  await link.process([]).deliver()
  return link.state()
}

function expectWhole(
  { debited, ...end }: Awaited<ReturnType<typeof finish>>,
  { payer, receiver }: Currencies,
  when: string,
): void {
  const price = { 'USD to USD': 500n, 'USD to EUR': 540n, 'EUR to USD': 463n }
  expect(end, when).toMatchObject({ state: 'completed', arrived: 500n, delivered: 500n })
  expect(end, when).toMatchObject({ inDoubt: 0n, denied: expect.any(BigInt), excess: 0n })
  expect(debited, when).toBe(price[`${payer} to ${receiver}` as keyof typeof price])
  expect(end.owing, when).toBe(end.owed)
  expect(end, when).toMatchObject({ undebited: 0n, repeated: 0, decidedAgain: 0 })
}

const lost: Fate[] = [{ how: 'arrives' }, { how: 'is lost' }]

/**
 * The steps of the processes that send a payment of which a packet was lost: the first sends it, and the second decides
 * what became of it, and ends it.
 */
async function stepsOf(link: Link): Promise<readonly string[]> {
  const calls: string[] = []
  const paused = async (call: string) => void calls.push(call)
  await link.process([...lost], () => {}, { paused }).deliver()
  await link.advance(60_000)
  await link.process([], () => {}, { paused }).deliver()
  expect(await link.isOver()).toBe(true)
  return calls
}

/** Kills the process that reaches a step. */
async function killedAt(link: Link, step: number) {
  let reached = 0
  const paused = async () => (reached++ === step ? 'killed' : undefined)
  await link.process([...lost], () => {}, { paused }).deliver()
  await link.advance(60_000)
  if (reached <= step) await link.process([], () => {}, { paused }).deliver()
  expect(reached).toBeGreaterThan(step)
  return finish(link)
}

const wallets = [
  ['ours', true],
  ['another one, which counts each packet and closes none', false],
] as const

// What SQLite adds is the SQL of the book, which the suite of books runs on each database.
const chosen = Object.keys(places).filter((where) => isLong || where !== 'on SQLite')

describe.each(chosen)('a payment %s', (where) => {
  // In `npm test`, each wallet has half of the steps in memory, and an eighth on PostgreSQL.
  const parts = where === 'in memory' ? 2 : 8

  test.each(wallets)(
    'to a wallet that is %s arrives once, and is debited once, at whatever step its sender is killed',
    async (_, isOurs) => {
      const steps = await stepsOf(await open(where, isOurs, dollars))
      const first = [...new Set(steps)]
      for (const [step, call] of steps.entries()) {
        const isChosen = first.indexOf(call) % parts === Number(isOurs)
        if (!isLong && !(isChosen && steps.indexOf(call) === step)) continue
        for (const each of currenciesAt(step)) {
          const link = await open(where, isOurs, each)
          expectWhole(await killedAt(link, step), each, `killed before ${call} (${step})`)
        }
      }
    },
  )

  test('arrives once, and is claimed once, at whatever step its receiver is killed', async () => {
    const steps: readonly Step[] = ['reserves', 'credits', 'claims', 'commits', 'replies']
    for (const [step, before] of steps.entries()) {
      // In memory, the credit and the claim are one step.
      if (where === 'in memory' && /claims|commits/.test(before)) continue
      for (const each of currenciesAt(step)) {
        const link = await open(where, true, each)
        const fates: Fate[] = [{ how: 'arrives' }, { how: 'its receiver is killed', before }]
        await link.process(fates).deliver()
        expectWhole(await finish(link), each, `killed before it ${before}`)
      }
    }
  })
})

test('a packet that is recorded only after its reply is found', async () => {
  const mistake: Setting['mistake'] = ({ sendings }) => ({
    sendings: {
      ...sendings,
      async write(id, writer, sending, isListed) {
        const isUnderWay = sending.settlement.attempts.some(
          ({ outcome }) => outcome.state === 'reserved',
        )
        return isUnderWay || sendings.write(id, writer, sending, isListed)
      },
    },
  })
  const steps = await stepsOf(await open('in memory', false, dollars))
  const link = await open('in memory', false, dollars, { mistake })
  const { arrived } = await killedAt(link, steps.indexOf('the reply'))
  expect(arrived).toBeGreaterThan(500n)
})
