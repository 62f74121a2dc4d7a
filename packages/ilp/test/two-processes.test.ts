import { isLong } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import type { PaymentSenderOptions } from '../src/index.js'
import { usePostgres } from './databases.js'
import { createLink, type Fate, type Setting, useSkippingClock } from './paying-wallet.js'
import { booksIn } from './receiving-wallet.js'

const cleared = usePostgres(1)
useSkippingClock()

async function open(where: string, more: Partial<Setting> = {}) {
  const [database] = where === 'in memory' ? [] : await cleared()
  const here = booksIn(database)
  const there = booksIn()
  return createLink({ here, there, receiver: 'USD', isOurs: true, amount: 500n, ...more })
}

/** A process that stops before its nth call of a port, until it is released. */
function pausing(nth: number) {
  let calls = 0
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let reach = () => {}
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })
  return {
    release,
    reached,
    async paused() {
      calls += 1
      if (calls !== nth) return
      reach()
      await released
    },
  }
}

const unreadable: Partial<PaymentSenderOptions> = {
  receivers: async () => ({ ok: false, reason: 'it does not respond' }),
}
const first: Readonly<Record<string, Partial<PaymentSenderOptions>>> = {
  'that sends': {},
  'that cannot read the receiver': unreadable,
}
const arrives: Fate = { how: 'arrives' }
const second: Readonly<Record<string, Fate[]>> = {
  'one that sends all of it': [],
  'one that is killed before it has a reply': [{ how: 'its sender is killed before its reply' }],
  'one that is killed after its first packet': [
    arrives,
    { how: 'its sender is killed before it leaves' },
  ],
}
const cases = Object.keys(first).flatMap((one) => Object.keys(second).map((other) => [one, other]))

/** A process that is paused before its nth call, and goes on after others have ended the payment. */
async function beside(where: string, one: string, other: string, nth: number) {
  const link = await open(where)
  const paused = pausing(nth)
  const stale = link.process([], () => {}, { ...first[one], paused: paused.paused })
  const ending = stale.deliver().then(
    () => 'ended',
    () => 'ended',
  )
  const stoppedAt = await Promise.race([ending, paused.reached])
  await link.process([...(second[other] ?? [])]).deliver()
  paused.release()
  await ending
  // Further processes go on with what is left.
  for (let more = 0; more < 8 && !(await link.isOver()); more++) {
    await link.advance(60_000)
    await link
      .process([])
      .deliver()
      .catch(() => undefined)
  }
  return { ...(await link.state()), isLast: stoppedAt === 'ended' }
}

function expectRight(end: Awaited<ReturnType<typeof beside>>, when: string): void {
  const { debited, arrived, undebited, inDoubt, owing, owed, difference } = end
  expect(['completed', 'failed'], when).toContain(end.state)
  const due = debited + undebited
  expect(due, when).toBeGreaterThanOrEqual(arrived)
  expect(due, when).toBeLessThanOrEqual(arrived + inDoubt)
  expect(owing - owed, when).toBeLessThanOrEqual(difference)
  expect(owing, when).toBeGreaterThanOrEqual(owed)
  expect(arrived, when).toBeLessThanOrEqual(500n)
  // L10
  const { repeated, decidedAgain } = end
  expect({ repeated, decidedAgain }, when).toEqual({ repeated: 0, decidedAgain: 0 })
}

describe.each(cases)('a process %s, whose lease is over, beside %s', (one = '', other = '') => {
  test('debits what arrived, or it is listed, wherever it was paused', async () => {
    for (let nth = 1; ; nth += isLong ? 1 : 7) {
      const end = await beside('in memory', one, other, nth)
      expectRight(end, `paused before call ${nth}`)
      if (end.isLast) break
    }
  })

  test('does so on PostgreSQL', async () => {
    for (let nth = isLong ? 1 : 11; ; nth += isLong ? 1 : 22) {
      const end = await beside('on PostgreSQL', one, other, nth)
      expectRight(end, `paused before call ${nth}`)
      if (end.isLast) break
    }
  })
})

/** One process reads what the receiver has received, and is paused; another one decides meanwhile. */
async function decidingTwice(where: string, mistake?: Setting['mistake']) {
  const link = await open(where, { isOurs: false, ...(mistake !== undefined && { mistake }) })
  const lost: Fate[] = [{ how: 'arrives' }, { how: 'is lost' }]
  await link.process(lost).deliver()
  await link.advance(45_000)
  let isRead = () => {}
  const read = new Promise<void>((resolve) => {
    isRead = resolve
  })
  let goOn = () => {}
  const until = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const { options } = link.process([])
  const receivers: typeof options.receivers = async (url) => {
    const found = await options.receivers(url)
    isRead()
    await until
    return found
  }
  const stale = link
    .process([], () => {}, { receivers })
    .deliver()
    .catch(() => undefined)
  await read
  await link.advance(1_000)
  await link
    .process([])
    .deliver()
    .catch(() => undefined)
  goOn()
  await stale
  return link.state()
}

describe.each(['in memory', 'on PostgreSQL'])('two processes that decide at once %s', (where) => {
  test('decide each packet once: only the writer of the payment does', async () => {
    const end = await decidingTwice(where)
    expect(end).toMatchObject({ state: 'completed', arrived: 500n, repeated: 0, decidedAgain: 0 })
  })

  test('are found if one writes although the other has taken over the payment', async () => {
    const end = await decidingTwice(where, ({ sendings }) => ({
      sendings: {
        ...sendings,
        take: (...given) => sendings.take(...given),
        async write(id, writer, ...given) {
          await sendings.take(id, writer)
          return sendings.write(id, writer, ...given)
        },
      },
    }))
    expect(end.decidedAgain).toBeGreaterThan(0)
  })
})

test('a clock with parts of a millisecond is no reason to leave a packet in doubt', async () => {
  const mistake: Setting['mistake'] = ({ now = () => Date.now() }) => ({ now: () => now() + 0.5 })
  const link = await open('on PostgreSQL', { mistake })
  await link.process([]).deliver()
  expect(await link.state()).toMatchObject({ state: 'completed', arrived: 500n, difference: 0n })
})
