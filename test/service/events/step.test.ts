import { expect, test } from 'vitest'
import type { EventRecord } from '../../../src/service/event-record.js'
import type { ClaimRecord } from '../../../src/service/events/claims.js'
import { beginningAt, type Observed } from '../../../src/service/events/state.js'
import { step } from '../../../src/service/events/step.js'
import { startOfTests } from '../../support/clock.js'

test('a consumer that cannot count the deliveries of a dead one leaves them named in the claim', () => {
  const base = { version: 1, commandId: 'command-1' }
  const id = 'names000payment-1.outgoing-payment.0001.command-1.sum'
  const event = { ...base, id, attempts: 0, dueAt: startOfTests } as unknown as EventRecord
  const claim: ClaimRecord = { ...base, id: 'names000.claim', holder: 'this one', started: [id] }
  const settings = { concurrency: 8, limit: 100, pollMs: 1_000, attemptsMax: 16 }
  let state = beginningAt(0, settings)
  const types: string[] = []
  const observed: readonly Observed[] = [
    { type: 'time' },
    { type: 'found', due: [event], isCut: false },
    { type: 'claimed', claim, abandoned: [id] },
    { type: 'store failed', error: new Error('the store is away') },
  ]
  for (const each of observed) {
    const stepped = step(state, [each], { elapsedMs: 0, now: startOfTests })
    state = stepped.state
    types.push(...stepped.actions.map(({ type }) => type))
  }
  expect(types).toEqual(['look up', 'claim', 'suspect', 'abandon'])
  expect(state.isOver).toBe(true)
})
