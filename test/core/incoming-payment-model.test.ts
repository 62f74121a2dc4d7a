import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Amount } from '../../src/core/amount.js'
import { isOpen } from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { type PaymentLife, paymentLife, usd } from '../support/incoming-payments.js'

const lifetimeMs = 1000
const most = 2n ** 64n - 1n

/** A cash book that lists each credit and nothing else. */
interface Ledger {
  now: Instant
  readonly wanted: bigint | undefined
  readonly lines: { readonly transferId: string; readonly value: bigint }[]
  /** Whether it was closed before it was full. */
  closedByHand: boolean
  /** Whether it was recorded as expired while it was open. */
  noted: boolean
}

function total({ lines }: Ledger): bigint {
  return lines.reduce((sum, { value }) => sum + value, 0n)
}

function isFull(ledger: Ledger): boolean {
  return ledger.wanted !== undefined && total(ledger) >= ledger.wanted
}

function isClosed(ledger: Ledger): boolean {
  return ledger.closedByHand || isFull(ledger)
}

function isLate({ now }: Ledger): boolean {
  return now > startOfTests + lifetimeMs
}

/** Counts each outcome, to verify that the search reaches all of them. */
const met = new Map<string, number>()

function count(answer: string): void {
  met.set(answer, (met.get(answer) ?? 0) + 1)
}

/** Verifies that the payment agrees with the cash book. */
function check(ledger: Ledger, life: PaymentLife): void {
  const { received, completed, version } = life.payment()
  const { lines, closedByHand, noted, now } = ledger
  const told = (what: string) =>
    life.events.filter(({ type }) => type === `incoming-payment.${what}`).length
  const says = {
    received: BigInt(received),
    completed,
    version,
    open: isOpen(life.payment(), now),
    told: [told('received'), told('completed'), told('expired')],
  }
  expect(says).toEqual({
    received: total(ledger),
    completed: isClosed(ledger),
    version: 1 + lines.length + Number(closedByHand) + Number(noted),
    open: !isClosed(ledger) && !isLate(ledger),
    told: [lines.length, Number(isClosed(ledger)), Number(noted)],
  })
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

/** A report of funds that arrived: new, repeated, or under the transfer id of another. */
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

  /** The correct outcomes. When several refusals apply, the order is not specified. */
  private answers(ledger: Ledger): string[] {
    const { value, assetCode } = this.amount
    const line = ledger.lines.find(({ transferId }) => transferId === this.transferId)
    if (line !== undefined) {
      return [
        line.value === BigInt(value) && assetCode === 'USD' ? 'unchanged' : 'transfer_mismatch',
      ]
    }
    const refusals = [
      ...(assetCode !== 'USD' || value === '0' ? ['amount_invalid'] : []),
      ...(isClosed(ledger) ? ['payment_completed'] : []),
      ...(isLate(ledger) ? ['payment_expired'] : []),
      ...(total(ledger) + BigInt(value) > most ? ['amount_invalid'] : []),
    ]
    return refusals.length > 0 ? refusals : ['changed']
  }

  run(ledger: Ledger, life: PaymentLife) {
    const answers = this.answers(ledger)
    const decision = life.receive(this.amount, this.transferId)
    const answer = decision.outcome === 'refused' ? decision.refusal : decision.outcome
    count(answer)
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

/** The payment is completed before it is full. */
class Complete implements Command {
  check() {
    return true
  }
  run(ledger: Ledger, life: PaymentLife) {
    const answer = life.complete().outcome
    count(`complete: ${answer}${isLate(ledger) ? ', late' : ''}`)
    expect(answer).toBe(isClosed(ledger) ? 'unchanged' : 'changed')
    if (answer === 'changed') ledger.closedByHand = true
    check(ledger, life)
  }
  toString() {
    return 'complete'
  }
}

/** A sweep records the expiry if it has passed. */
class Sweep implements Command {
  check() {
    return true
  }
  run(ledger: Ledger, life: PaymentLife) {
    const decision = life.expire()
    const answer = decision.outcome === 'refused' ? decision.refusal : decision.outcome
    const due = isClosed(ledger) || ledger.noted ? 'unchanged' : 'payment_open'
    count(`sweep: ${answer}`)
    expect(answer).toBe(due === 'payment_open' && isLate(ledger) ? 'changed' : due)
    if (answer === 'changed') ledger.noted = true
    check(ledger, life)
  }
  toString() {
    return 'sweep'
  }
}

const amount = fc.oneof(
  fc.constantFrom(1n, 10n, 40n, 60n, 100n).map(usd),
  fc.constantFrom(1n, 10n, 40n, 60n, 100n).map(usd),
  fc.constantFrom(usd(0n), usd(most), usd(most - 1n), { ...usd(10n), assetCode: 'EUR' }),
  fc.bigInt({ min: 1n, max: most }).map(usd),
)

// Uses few ids, so that transfers repeat, often with the same amount.
const report = fc
  .tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), amount)
  .map(([transferId, amount]) => new Report(transferId, amount))

const sameAgain = fc.constantFrom('a', 'b', 'c').map((id) => new Report(id, usd(10n)))

const pause = (...ms: number[]) => fc.constantFrom(...ms).map((ms) => new LetTimePass(ms))

const commands = fc.commands<Ledger, PaymentLife>(
  [
    report,
    report,
    report,
    report,
    report,
    sameAgain,
    sameAgain,
    fc.constant(new Complete()),
    fc.constant(new Sweep()),
    pause(0, 1, 10, lifetimeMs / 2, lifetimeMs),
    pause(lifetimeMs, lifetimeMs + 1),
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
          model: { now: startOfTests, wanted, lines: [], closedByHand: false, noted: false },
          real: paymentLife({ ...amount, expiresAt: startOfTests + lifetimeMs }),
        }),
        commands,
      )
    }),
    parameters,
  )
}

describe('an incoming payment agrees with a cash book', () => {
  test('for any reports, at any time and in any number', () => {
    search({ numRuns: 1000 })
  })

  test('reaches every outcome many times', () => {
    met.clear()
    search({ numRuns: 800, seed: 1 })
    const everywhere = [
      'changed',
      'unchanged',
      'transfer_mismatch',
      'payment_completed',
      'payment_expired',
      'amount_invalid',
      'complete: changed',
      'complete: changed, late',
      'complete: unchanged',
      'complete: unchanged, late',
      'sweep: changed',
      'sweep: unchanged',
      'sweep: payment_open',
    ]
    expect([...met.keys()].sort()).toEqual(everywhere.sort())
    for (const name of everywhere) expect(met.get(name), name).toBeGreaterThan(50)
  })
})
