import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { askByRepeating, attempts, type Reply } from '../../src/entry-attempts.js'
import { InvalidInputError, memoryStore } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { runs } from '../support/runs.js'

const keptMs = 3_600_000
const request = { id: 'payment-1', amount: 1_000n }
const unknown: Reply = { outcome: 'unknown', reason: 'no reply' }

/** A bank that carries out an order once for its key, and forgets a key after `keptMs`. Replies can be lost. */
function bank(clock: { now(): number }) {
  const keys = new Map<string, number>()
  let arrived = 0n
  const state = { isDown: false, loses: true }
  async function send(order: { readonly amount: bigint }): Promise<Reply> {
    if (state.isDown) return unknown
    const since = keys.get(request.id)
    if (since === undefined || clock.now() >= since + keptMs) {
      keys.set(request.id, clock.now())
      arrived += order.amount
    }
    return state.loses ? unknown : { outcome: 'proven' }
  }
  return { state, send, arrived: () => arrived }
}

function settlements() {
  const clock = manualClock()
  const { state, send, arrived } = bank(clock)
  const driver = attempts({
    ...{ name: 'bank', store: memoryStore(), clock, evidence: 'id', send },
    ask: askByRepeating(send, { keptMs }),
    onError: () => undefined,
  })
  return { clock, state, arrived, driver }
}

describe('an order that is repeated under its key', () => {
  test('arrives once however long its replies are lost, and whenever it is settled again', async () => {
    const step = fc.record({
      afterMs: fc.integer({ min: 1, max: 2 * keptMs }),
      isDown: fc.boolean(),
      loses: fc.boolean(),
    })
    const seen = { once: 0, inDoubt: 0 }
    const property = fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const { clock, state, arrived, driver } = settlements()
      for (const { afterMs, ...next } of [{ afterMs: 0, isDown: false, loses: true }, ...steps]) {
        clock.advance(afterMs)
        Object.assign(state, next)
        const settled = await driver.settle(request)
        expect(arrived()).toBe(1_000n)
        if (settled.state === 'ended' && settled.arrived > 0n) seen.once++
        if (settled.totals.inDoubt > 0n && clock.now() > keptMs) seen.inDoubt++
      }
    })
    await fc.assert(property, { numRuns: runs(2_000, 200) })
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
  })

  test('stays in doubt once its key may be forgotten, until an operator decides', async () => {
    const { clock, state, arrived, driver } = settlements()
    await driver.settle(request)
    clock.advance(keptMs)
    state.loses = false
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', inDoubt: 1_000n })
    expect(arrived()).toBe(1_000n)
    expect(await driver.decide(request.id, 'arrived', 'ada')).toMatchObject({ ok: true })
    expect(await driver.settle(request)).toMatchObject({ arrived: 1_000n, inDoubt: 0n })
  })

  test('needs the time for which keys are kept', () => {
    const { send } = bank(manualClock())
    for (const options of [undefined, {}, { keptMs: 0 }]) {
      expect(() => askByRepeating(send, options as never)).toThrow(InvalidInputError)
    }
  })
})
