import { isLong } from 'open-payments-test-support/runs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PaymentSenderOptions } from '../src/index.js'
import { createLink, type Fate, skippingClock } from './paying-wallet.js'
import { booksIn } from './receiving-wallet.js'

let uninstall = () => {}
beforeAll(() => {
  uninstall = skippingClock.install()
})
afterAll(() => uninstall())

const open = () =>
  createLink({ here: booksIn(), there: booksIn(), receiver: 'USD', isOurs: true, amount: 500n })

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

describe.each(cases)('a process %s, whose lease is over, beside %s', (one = '', other = '') => {
  test('debits what arrived, or it is listed, wherever it was paused', async () => {
    for (let nth = 1; ; nth += isLong || nth < 4 ? 1 : 9) {
      const link = await open()
      const paused = pausing(nth)
      const stale = link.process([], () => {}, { ...first[one], paused: paused.paused })
      const ending = stale.deliver().then(
        () => 'ended',
        () => 'ended',
      )
      const where = await Promise.race([ending, paused.reached])
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
      const end = await link.state()
      const { debited, arrived, undebited, inDoubt, owing, owed, difference } = end
      expect(['completed', 'failed'], `paused before call ${nth}`).toContain(end.state)
      const due = debited + undebited
      expect(due, `paused before call ${nth}`).toBeGreaterThanOrEqual(arrived)
      expect(due, `paused before call ${nth}`).toBeLessThanOrEqual(arrived + inDoubt)
      expect(owing - owed, `paused before call ${nth}`).toBeLessThanOrEqual(difference)
      expect(owing, `paused before call ${nth}`).toBeGreaterThanOrEqual(owed)
      expect(arrived).toBeLessThanOrEqual(500n)
      if (where === 'ended') break
    }
  })
})
