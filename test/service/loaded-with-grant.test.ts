import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { seededRandom } from '../support/random.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  payByQuote,
  quoteToken,
  usd,
} from '../support/spending.js'
import { idOfPayment } from '../support/spending-client.js'
import type { TestClient } from '../support/world.js'

const windowMs = 60_000
const limit = 2_500n

/** The access of three grants: for a life, in windows, and in windows by the second item of two. */
const accesses = [
  [outgoingItem({ debitAmount: usd(limit) })],
  [outgoingItem({ debitAmount: usd(limit), interval: 'R/2020-01-01T00:00:00Z/PT1M' })],
  [
    outgoingItem({ debitAmount: usd(1) }),
    outgoingItem({ debitAmount: usd(limit), interval: 'R/2020-01-01T00:00:00Z/PT1M' }),
  ],
]

/** Two processes on one store, each with what it has seen, and the number of loads that each has made. */
async function createProcesses() {
  const shared = memoryStore()
  const clock = manualClock()
  const meddling: { now: (() => Promise<unknown>) | undefined } = { now: undefined }
  const processes = await Promise.all(
    ['one', 'two'].map(async (name) => {
      const loads = { count: 0 }
      const store: Store = {
        ...shared,
        async load(keys) {
          loads.count += 1
          const found = await shared.load(keys)
          const meddle = meddling.now
          meddling.now = undefined
          await meddle?.()
          return found
        },
      }
      const random = seededRandom(name)
      const options = { store, clock, auth: { random }, resources: { random } }
      const world = createSpendingWorld(options)
      return { loads, world, client: world.client('shop', { nonces: name === 'one' ? 0 : 1e6 }) }
    }),
  )
  const [one, two] = processes
  if (one === undefined || two === undefined) throw new Error('there is no process')
  const quoting = await quoteToken(one.client)
  const grants = []
  for (const access of accesses) grants.push(await grantToPay(one.world, one.client, access))
  const quote = async (client: TestClient, value: bigint): Promise<string> =>
    (await newQuote(client, quoting, { debitAmount: usd(value) })).body.id
  return { clock, meddling, processes: [one, two] as const, grants, quote }
}

/** A payment of a process, and what happens after its first load. */
interface Step {
  readonly process: 0 | 1
  readonly grant: number
  readonly value: bigint
  readonly waitMs: number
  readonly meanwhile: 'nothing' | 'another payment' | 'the window turns' | 'the grant is revoked'
  /** What it has sent in the end, as reported by either process. */
  readonly sentPercent: bigint
  readonly reporter: 0 | 1
}

const bit = fc.constantFrom(0 as const, 1 as const)
const step: fc.Arbitrary<Step> = fc.record({
  process: bit,
  grant: fc.nat(accesses.length - 1),
  value: fc.bigInt(2n, 1_500n),
  waitMs: fc.constantFrom(0, 1_000, windowMs),
  meanwhile: fc.oneof(
    { weight: 6, arbitrary: fc.constant('nothing' as const) },
    { weight: 2, arbitrary: fc.constant('another payment' as const) },
    { weight: 2, arbitrary: fc.constant('the window turns' as const) },
    { weight: 1, arbitrary: fc.constant('the grant is revoked' as const) },
  ),
  sentPercent: fc.bigInt(0n, 100n),
  reporter: bit,
})

describe('whatever a process guesses about budgets', () => {
  test('each payment is counted once, in the window of its request, and costs at most two loads', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
        const { clock, meddling, processes, grants, quote } = await createProcesses()
        const spent = new Map<string, bigint>()
        const revoked = new Set<number>()
        const budgetAt = (grant: number) => {
          const start = Math.floor(clock.now() / windowMs)
          return grant === 0 ? 'life' : `${grant} ${start}`
        }
        const model = (budget: string, value: bigint): boolean => {
          const total = (spent.get(budget) ?? 0n) + value
          if (total > limit) return false
          spent.set(budget, total)
          return true
        }

        for (const { process, grant, value, waitMs, meanwhile, sentPercent, reporter } of steps) {
          const { client, loads, world } = processes[process]
          const other = processes[process === 0 ? 1 : 0]
          const { token, grantId } = grants[grant] ?? { token: '', grantId: '' }
          clock.advance(waitMs)
          const quoteId = await quote(client, value)
          const otherQuote = await quote(other.client, 100n)
          const budget = budgetAt(grant)
          let isOtherMade = false
          const meddle = {
            nothing: undefined,
            async 'another payment'() {
              const made = await payByQuote(other.client, token, otherQuote)
              isOtherMade = made.status === 201
              if (!revoked.has(grant)) expect(isOtherMade).toBe(model(budget, 100n))
            },
            async 'the window turns'() {
              clock.advance(windowMs)
            },
            async 'the grant is revoked'() {
              await world.auth.grants.revoke(grantId)
              revoked.add(grant)
            },
          }[meanwhile]

          meddling.now = meddle
          loads.count = 0
          const answer = await payByQuote(client, token, quoteId)
          meddling.now = undefined
          if (revoked.has(grant)) {
            expect(answer.status).toBe(401)
            continue
          }
          expect(answer.status).toBe(model(budget, value) ? 201 : 403)
          // A refusal is certain only once its records are loaded after all ports were called.
          const again = answer.status === 201 ? 0 : 1
          if (meanwhile === 'nothing') expect(loads.count).toBeLessThanOrEqual(2 + again)
          if (answer.status !== 201) continue
          expect(answer.body.grantSpentDebitAmount).toEqual(usd(spent.get(budget) ?? 0n))

          const paymentId = idOfPayment(answer)
          const { outgoingPayments } = processes[reporter].world.resources
          expect(await outgoingPayments.begin(paymentId)).toMatchObject({ ok: true })
          processes[reporter].loads.count = 0
          const sentAmount = usd((value * sentPercent) / 100n)
          const reported = await outgoingPayments.reportSent(paymentId, {
            sentAmount,
            deliveredAmount: sentAmount,
            final: true,
          })
          expect(reported).toMatchObject({ ok: true, changed: true })
          expect(processes[reporter].loads.count).toBe(1)
          const unsent = value - BigInt(sentAmount.value)
          spent.set(budget, (spent.get(budget) ?? 0n) - unsent)
        }
      }),
      { numRuns: 60 },
    )
  })

  test('the first payment under a grant without an interval needs one load, in any process', async () => {
    const { processes, grants, quote } = await createProcesses()
    for (const { client, loads } of processes) {
      const quoteId = await quote(client, 10n)
      loads.count = 0
      expect((await payByQuote(client, grants[0]?.token ?? '', quoteId)).status).toBe(201)
      expect(loads.count).toBe(1)
    }
  })

  test('a payment in a new window needs two loads, and the next one in it one', async () => {
    const { clock, processes, grants, quote } = await createProcesses()
    const [{ client, loads }] = processes
    const counts = []
    for (const waitMs of [0, 0, windowMs, 0]) {
      clock.advance(waitMs)
      const quoteId = await quote(client, 10n)
      loads.count = 0
      expect((await payByQuote(client, grants[1]?.token ?? '', quoteId)).status).toBe(201)
      counts.push(loads.count)
    }
    expect(counts).toEqual([2, 1, 2, 1])
  })

  test('a process that has not seen a payment loads its budget afterwards, and cancels it as any other', async () => {
    const { processes, grants, quote } = await createProcesses()
    const [{ client }, { world, loads, client: itsClient }] = processes
    // Its first commit loads the record of its server.
    await quote(itsClient, 10n)
    const made = await payByQuote(client, grants[0]?.token ?? '', await quote(client, 10n))
    loads.count = 0
    const cancelled = await world.resources.outgoingPayments.cancel(idOfPayment(made))
    expect(cancelled).toMatchObject({ ok: true, changed: true })
    expect(loads.count).toBe(2)
    const next = await payByQuote(client, grants[0]?.token ?? '', await quote(client, 5n))
    expect(next.body.grantSpentDebitAmount).toEqual(usd(5))
  })
})
