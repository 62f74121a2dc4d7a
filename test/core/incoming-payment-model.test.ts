import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Amount } from '../../src/core/amount.js'
import type { Instant } from '../../src/core/decision.js'
import { isOpen } from '../../src/core/incoming-payment.js'
import { startOfTests } from '../support/clock.js'
import { type PaymentLife, paymentLife, usd } from '../support/incoming-payments.js'

const lifetimeMs = 1000
const most = 2n ** 64n - 1n

/** A cash book: what was credited, line by line, and nothing else. */
interface Ledger {
  now: Instant
  readonly wanted: bigint | undefined
  readonly lines: { readonly transferId: string; readonly value: bigint }[]
}

function total({ lines }: Ledger): bigint {
  return lines.reduce((sum, { value }) => sum + value, 0n)
}

function isFull(ledger: Ledger): boolean {
  return ledger.wanted !== undefined && total(ledger) >= ledger.wanted
}

function isLate({ now }: Ledger): boolean {
  return now > startOfTests + lifetimeMs
}

/** How often each outcome was met, to know that the search got there. */
const met = new Map<string, number>()

/** The payment says of itself what the cash book says. */
function check(ledger: Ledger, life: PaymentLife): void {
  const { received, completed, version } = life.payment()
  expect(BigInt(received)).toBe(total(ledger))
  expect(completed).toBe(isFull(ledger))
  expect(version).toBe(1 + ledger.lines.length)
  expect(isOpen(life.payment(), ledger.now)).toBe(!isFull(ledger) && !isLate(ledger))
  const arrivals = life.events.filter(({ type }) => type === 'incoming-payment.received')
  const completions = life.events.filter(({ type }) => type === 'incoming-payment.completed')
  expect(arrivals).toHaveLength(ledger.lines.length)
  expect(completions).toHaveLength(isFull(ledger) ? 1 : 0)
}

type Command = fc.Command<Ledger, PaymentLife>

class LetTimePass implements Command {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  check() {
    return true
  }
  run(ledger: Ledger, life: PaymentLife) {
    ledger.now += this.ms
    life.set(ledger.now)
    check(ledger, life)
  }
  toString() {
    return `let ${this.ms} ms pass`
  }
}

/** A report of funds that arrived: new, again, or under the id of another. */
class Report implements Command {
  readonly transferId: string
  readonly amount: Amount
  constructor(transferId: string, amount: Amount) {
    this.transferId = transferId
    this.amount = amount
  }
  check() {
    return true
  }

  /** Which answers are right. Where several refusals apply, no order is promised among them. */
  private answers(ledger: Ledger): string[] {
    const { value, assetCode } = this.amount
    const line = ledger.lines.find(({ transferId }) => transferId === this.transferId)
    if (line !== undefined) {
      return [
        line.value === BigInt(value) && assetCode === 'USD' ? 'unchanged' : 'transfer_mismatch',
      ]
    }
    const refusals = [
      ...(assetCode !== 'USD' || value === '0' ? ['invalid_amount'] : []),
      ...(isFull(ledger) ? ['payment_completed'] : []),
      ...(isLate(ledger) ? ['payment_expired'] : []),
      ...(total(ledger) + BigInt(value) > most ? ['invalid_amount'] : []),
    ]
    return refusals.length > 0 ? refusals : ['changed']
  }

  run(ledger: Ledger, life: PaymentLife) {
    const answers = this.answers(ledger)
    const decision = life.receive(this.amount, this.transferId)
    const answer = decision.outcome === 'refused' ? decision.refusal : decision.outcome
    met.set(answer, (met.get(answer) ?? 0) + 1)
    expect(answers).toContain(answer)
    if (answers.includes('changed')) {
      ledger.lines.push({ transferId: this.transferId, value: BigInt(this.amount.value) })
    }
    check(ledger, life)
  }

  toString() {
    return `report ${this.amount.value} ${this.amount.assetCode} as transfer ${this.transferId}`
  }
}

const amount = fc.oneof(
  fc.constantFrom(1n, 10n, 40n, 60n, 100n).map(usd),
  fc.constantFrom(1n, 10n, 40n, 60n, 100n).map(usd),
  fc.constantFrom(usd(0n), usd(most), usd(most - 1n), { ...usd(10n), assetCode: 'EUR' }),
  fc.bigInt({ min: 1n, max: most }).map(usd),
)

// Few ids, so that transfers come again; with the same amount often enough.
const report = fc
  .tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), amount)
  .map(([transferId, amount]) => new Report(transferId, amount))

const sameAgain = fc.constantFrom('a', 'b', 'c').map((id) => new Report(id, usd(10n)))

const commands = fc.commands<Ledger, PaymentLife>(
  [
    report,
    report,
    sameAgain,
    fc.constantFrom(0, 1, 10, lifetimeMs / 2, lifetimeMs).map((ms) => new LetTimePass(ms)),
  ],
  { maxCommands: 30, size: '+1' },
)

const wanted = fc.option(
  fc.oneof(fc.constantFrom(1n, 50n, 100n, most), fc.bigInt({ min: 1n, max: 200n })),
  { nil: undefined },
)

function search(parameters: { readonly numRuns: number; readonly seed?: number }) {
  fc.assert(
    fc.property(wanted, commands, (wanted, commands) => {
      const amount = wanted === undefined ? {} : { incomingAmount: usd(wanted) }
      fc.modelRun(
        () => ({
          model: { now: startOfTests, wanted, lines: [] },
          real: paymentLife({ ...amount, expiresAt: startOfTests + lifetimeMs }),
        }),
        commands,
      )
    }),
    parameters,
  )
}

describe('an incoming payment agrees with a cash book that is kept beside it', () => {
  test('whatever is reported, when and how often', () => {
    search({ numRuns: 2000 })
  })

  test('and the search goes everywhere, many times', () => {
    met.clear()
    search({ numRuns: 500, seed: 1 })
    const everywhere = [
      'changed',
      'unchanged',
      'transfer_mismatch',
      'payment_completed',
      'payment_expired',
      'invalid_amount',
    ]
    expect([...met.keys()].sort()).toEqual(everywhere.sort())
    for (const name of everywhere) expect(met.get(name), name).toBeGreaterThan(50)
  })
})
