import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { grantStatus } from '../../src/core/grant/status.js'
import type { GrantCommand, GrantRefusals } from '../../src/core/grant.js'
import { acceptsFunds } from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { hasEnded, hasFailed } from '../../src/core/outgoing-payment/record.js'
import { steadyClock } from '../../src/service/time.js'
import { startOfTests } from '../support/clock.js'
import {
  alice,
  grantLife,
  grantPolicy,
  managed,
  nextTokensOf,
  outgoing,
  referenceOf,
} from '../support/grants.js'
import { paymentLife, usd } from '../support/incoming-payments.js'
import { runs } from '../support/runs.js'
import { dollars, euros, outgoingLife } from '../support/spending-life.js'

const minute = 60_000
const day = 86_400_000

/** Any sequence of readings of a clock, also of one that goes far back. */
const anyClock = fc.oneof(
  fc.integer({ min: -2 * day, max: 40 * day }),
  fc.integer({ min: -20 * minute, max: 20 * minute }),
)
/** Steps of a clock that goes back by at most a minute in all. */
const nearClock = fc.array(
  fc.oneof(fc.nat(day), fc.nat(12 * minute), fc.integer({ min: -minute, max: 0 })),
  {
    minLength: 60,
    maxLength: 60,
  },
)

/** Returns the readings that a server sees: those of a steady clock. */
function readings(steps: readonly number[]): readonly Instant[] {
  let ahead = startOfTests
  let now = ahead
  const { now: read } = steadyClock({ now: () => now }, () => {
    throw new Error('the clock went back too far')
  })
  return steps.map((step) => {
    ahead = Math.max(ahead, now + Math.max(0, step))
    now = step < 0 ? ahead + step : ahead
    return read()
  })
}

const grantCommands = fc.array(
  fc.constantFrom('approve', 'deny', 'continue', 'rotate', 'revoke', 'cancel' as const),
  { maxLength: 30 },
)

function grantCommand(type: GrantCommand['type'], index: number): GrantCommand {
  const commandId = `command-${index + 1}`
  const nextToken = { ...managed(index + 1), salt: `salt-${index + 1}` }
  const reference = referenceOf(index)
  switch (type) {
    case 'approve':
      return { type, commandId, resourceOwner: 'alice', walletAddresses: [alice], ...reference }
    case 'deny':
      return { type, commandId, ...reference }
    case 'continue':
      return { type, commandId, ...nextTokensOf(index + 1) }
    case 'amend':
      return { type, commandId, conditions: { data: { index } } }
    case 'rotate':
    case 'revoke-token':
      return { type: 'rotate', commandId, presented: managed(index), nextToken }
    default:
      return { type, commandId }
  }
}

const incomingSteps = fc.array(fc.constantFrom('receive', 'complete', 'expire'), { maxLength: 30 })
const outgoingSteps = fc.array(fc.constantFrom('begin', 'part', 'fail', 'cancel', 'lapse'), {
  maxLength: 30,
})

function act(life: ReturnType<typeof outgoingLife>, step: string): void {
  if (step === 'begin') life.begin()
  else if (step === 'part') life.reportSent(dollars(10), euros(5))
  else if (step === 'fail') life.fail()
  else if (step === 'cancel') life.cancel()
  else life.decide<'lapse'>({ type: 'lapse', commandId: life.commandId() })
}

describe('whatever the clock shows, also if it goes back', () => {
  test('a grant that was ended stays as it is, and its instants never decrease', () => {
    fc.assert(
      fc.property(grantCommands, fc.array(anyClock, { minLength: 30 }), (types, offsets) => {
        const life = grantLife({ kind: 'poll', access: [outgoing] })
        for (const [index, type] of types.entries()) {
          life.set(startOfTests + (offsets[index] ?? 0))
          const before = life.grant()
          life.decide<keyof GrantRefusals>(grantCommand(type, index))
          const after = life.grant()
          if (before.finalized !== undefined) expect(after).toBe(before)
          for (const at of [after.consent?.at, after.tokens?.[0]?.issuedAt, after.finalized?.at]) {
            expect(at ?? before.createdAt).toBeGreaterThanOrEqual(before.createdAt)
            const [issued] = before.tokens ?? []
            if (issued && at === after.tokens?.[0]?.issuedAt) {
              expect(at).toBeGreaterThanOrEqual(issued.issuedAt)
            }
          }
        }
      }),
      { numRuns: runs(300) },
    )
  })

  test('the amendments of a grant are recorded in the order of their instants', () => {
    fc.assert(
      fc.property(fc.array(anyClock, { minLength: 2, maxLength: 30 }), (offsets) => {
        const life = grantLife({ kind: 'poll', access: [outgoing] })
        life.decide<keyof GrantRefusals>(grantCommand('approve', 0))
        for (const [index, offset] of offsets.entries()) {
          life.set(startOfTests + offset)
          life.decide<keyof GrantRefusals>(grantCommand('amend', index))
        }
        const at = life.grant().amendments?.map((each) => each.at) ?? []
        expect(at.length).toBeGreaterThan(0)
        expect(at).toEqual([...at].sort((a, b) => a - b))
      }),
      { numRuns: runs(300) },
    )
  })

  test('an incoming payment whose end was recorded accepts no funds', () => {
    let met = 0
    fc.assert(
      fc.property(incomingSteps, fc.array(anyClock, { minLength: 30 }), (steps, offsets) => {
        const life = paymentLife({ expiresAt: startOfTests + 10 * minute })
        let ended: string | undefined
        for (const [index, step] of steps.entries()) {
          life.set(startOfTests + (offsets[index] ?? 0))
          if (step === 'receive') life.receive(usd('1'))
          else if (step === 'complete') life.complete()
          else life.expire()
          if (ended !== undefined) {
            expect(life.payment().received).toBe(ended)
            expect(acceptsFunds(life.payment(), life.now())).toBe(false)
            met += 1
          }
          const over = life.events.some(({ type }) => /completed|expired/.test(type))
          if (over) ended ??= life.payment().received
        }
      }),
      { numRuns: runs(300) },
    )
    expect(met).toBeGreaterThan(20)
  })

  test('an outgoing payment that has ended stays as it is, and what it released is not held again', () => {
    fc.assert(
      fc.property(outgoingSteps, fc.array(anyClock, { minLength: 30 }), (steps, offsets) => {
        const life = outgoingLife()
        for (const [index, step] of steps.entries()) {
          life.set(startOfTests + (offsets[index] ?? 0))
          const [before, held] = [life.payment(), life.budget()]
          act(life, step)
          if (!hasEnded(before)) continue
          expect(life.payment()).toBe(before)
          expect(life.budget()).toBe(held)
        }
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('on servers whose clocks differ by up to 120 s', () => {
  const servers = fc.array(fc.integer({ min: -minute, max: minute }), {
    minLength: 2,
    maxLength: 3,
  })
  const calls = fc.array(fc.record({ server: fc.nat(2), afterMs: fc.nat(10_000) }), {
    minLength: 1,
    maxLength: 30,
  })
  const { waitMs } = grantPolicy

  test('a client that polls never waits longer than the wait, whichever it reaches', () => {
    let refusals = 0
    fc.assert(
      fc.property(servers, calls, (offsets, polls) => {
        let time = startOfTests
        const life = grantLife({ kind: 'poll', access: [outgoing] })
        for (const { server, afterMs } of polls) {
          time += afterMs
          const clock = time + (offsets[server % offsets.length] ?? 0)
          life.set(clock)
          const refused = life.poll()
          if (refused.ok || refused.refusal !== 'too_fast') continue
          refusals += 1
          const waits = (refused.retryAt ?? Number.POSITIVE_INFINITY) - clock
          expect(waits).toBeLessThanOrEqual(waitMs)
          time += waits
          life.set(clock + waits)
          expect(life.poll()).not.toMatchObject({ refusal: 'too_fast' })
        }
      }),
      { numRuns: runs(300) },
    )
    expect(refusals).toBeGreaterThan(20)
  })

  test('a server accepts no two polls within the wait, however far the clock of another is ahead', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 * minute }), calls, (behindMs, polls) => {
        let clock = startOfTests - behindMs
        let acceptedAt: number | undefined
        const life = grantLife({ kind: 'poll', access: [outgoing] })
        for (const { afterMs } of polls) {
          clock += afterMs
          life.set(clock)
          if (!life.poll().ok) continue
          if (acceptedAt !== undefined) expect(clock - acceptedAt).toBeGreaterThanOrEqual(waitMs)
          acceptedAt = clock
        }
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('on a server whose clock goes back by at most 60 s', () => {
  test('a grant that was seen to be over is never open again', () => {
    const open = ['pending', 'approved']
    fc.assert(
      fc.property(grantCommands, nearClock, (types, steps) => {
        const life = grantLife({ kind: 'poll', access: [outgoing] })
        const seen = readings(steps)
        let over = false
        for (const [index, type] of types.entries()) {
          life.set(seen[index] ?? startOfTests)
          if (over) {
            const before = life.grant()
            life.decide<keyof GrantRefusals>(grantCommand(type, index))
            expect(life.grant()).toBe(before)
          } else {
            life.decide<keyof GrantRefusals>(grantCommand(type, index))
          }
          const isOpenNow = open.includes(grantStatus(life.grant(), life.now()))
          if (over) expect(isOpenNow).toBe(false)
          over ||= !isOpenNow
        }
      }),
      { numRuns: runs(300) },
    )
  })

  test('a payment that was seen to be over is never open again', () => {
    fc.assert(
      fc.property(incomingSteps, outgoingSteps, nearClock, (receiving, paying, steps) => {
        const seen = readings(steps)
        const incoming = paymentLife({ expiresAt: startOfTests + 10 * minute })
        const outgoing = outgoingLife()
        const over = { incoming: false, outgoing: false }
        for (const [index, now] of seen.entries()) {
          incoming.set(now)
          outgoing.set(now)
          const { received } = incoming.payment()
          if (receiving[index] === 'receive') incoming.receive(usd('1'))
          else if (receiving[index] === 'expire') incoming.expire()
          const step = paying[index]
          if (step !== undefined) act(outgoing, step)
          if (over.incoming) expect(incoming.payment().received).toBe(received)
          if (over.outgoing) expect(hasFailed(outgoing.payment(), now)).toBe(true)
          over.incoming ||= !acceptsFunds(incoming.payment(), now)
          over.outgoing ||= hasFailed(outgoing.payment(), now)
        }
      }),
      { numRuns: runs(300) },
    )
  })
})
