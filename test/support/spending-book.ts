import type { Instant } from '../../src/core/decision.js'
import { turnAt } from '../../src/testing/spending/windows.js'

/**
 * A book of payments that is kept beside the library: a list of lines, summed up anew for every question. It
 * shares the windows of intervals with the model of the testing kit, and nothing with the library.
 */

export type Counted = 'debitAmount' | 'receiveAmount'
export type AssetName = 'USD' | 'EUR'

/** One granted item: from where, to whom, how much and when. */
export interface Plan {
  readonly walletAddress: string
  readonly receiver?: string
  readonly limit?: {
    readonly counts: Counted
    readonly asset: AssetName
    readonly value: bigint
  }
  /** A repeating interval. */
  readonly interval?: string
}

/** Where a payment is counted, and until when that window is open. */
export interface Place {
  readonly grant: number
  readonly item: number
  readonly window: Instant | 'life'
  readonly end: Instant
}

/** What is to be paid to whom. Dollars are debited. */
export interface Terms {
  readonly receiver: string
  readonly debit: bigint
  readonly receive: bigint
  readonly asset: AssetName
}

/** A total in one asset. */
export interface Total {
  readonly value: bigint
  readonly asset: AssetName
}

/** Both totals; `null` where one cannot be given as one amount. */
export type Totals = Readonly<Record<Counted, Total | null>>

/** What has been sent and delivered. */
export interface Sums {
  readonly sent: bigint
  readonly delivered: bigint
}

/** A payment as the book has it. */
export interface Line extends Terms, Sums {
  readonly id: string
  readonly client: string
  readonly request: string
  readonly place: Place
  readonly createdAt: Instant
  sent: bigint
  delivered: bigint
  state: 'created' | 'begun' | 'completed' | 'failed'
  endedAt: Instant | undefined
  /** Whether its record was removed. It stays in the book. */
  gone: boolean
}

/** The window of an interval that is open. */
function openWindow(interval: string, now: Instant) {
  const window = turnAt(interval, now, 'occurrences')
  return typeof window === 'string' ? undefined : window
}

/** Whether nothing can be spent any more under these items. */
export function isOver(plans: readonly Plan[], now: Instant): boolean {
  return plans.every(({ interval }) => {
    return interval !== undefined && turnAt(interval, now, 'occurrences') === 'over'
  })
}

/** A place, by name. */
export const nameOf = ({ grant, item, window }: Place) => `${grant}.${item}.${window}`

export type Book = ReturnType<typeof newBook>

export function newBook(
  grants: readonly (readonly Plan[])[],
  { holdMs, retentionMs }: { readonly holdMs: number; readonly retentionMs: number },
) {
  const lines: Line[] = []

  /** Places whose total of an amount can no longer be given as one amount. */
  const lost = new Set<string>()

  function held({ state, ...line }: Line, name: Counted): bigint {
    const ended = state === 'completed' || state === 'failed'
    if (name === 'receiveAmount') return ended ? line.delivered : line.receive
    return ended ? line.sent : line.debit
  }

  const linesAt = (place: Place) => lines.filter((line) => nameOf(line.place) === nameOf(place))

  /** What payments hold of an amount where they are counted. */
  function heldAt(place: Place, name: Counted): bigint {
    return linesAt(place).reduce((sum, line) => sum + held(line, name), 0n)
  }

  /** What has been taken of the limit where a payment is counted. */
  function spentAt(place: Place): bigint {
    const { limit } = grants[place.grant]?.[place.item] ?? {}
    return limit === undefined ? 0n : heldAt(place, limit.counts)
  }

  /** The total of an amount; `null` from the first payment on that made it more than one amount. */
  function totalAt(place: Place, name: Counted): Total | null {
    const assets = linesAt(place).map(({ asset }) => (name === 'debitAmount' ? 'USD' : asset))
    const value = heldAt(place, name)
    return lost.has(`${name} ${nameOf(place)}`) ? null : { value, asset: assets.at(-1) ?? 'USD' }
  }

  const totalsAt = (place: Place): Totals => ({
    debitAmount: totalAt(place, 'debitAmount'),
    receiveAmount: totalAt(place, 'receiveAmount'),
  })

  function add(line: Line): void {
    for (const name of ['debitAmount', 'receiveAmount'] as const) {
      const before = totalAt(line.place, name)
      const asset = name === 'debitAmount' ? 'USD' : line.asset
      const fits = before !== null && before.value + held(line, name) < 2n ** 64n
      const same = before?.value === 0n || before?.asset === asset
      if (!fits || !same) lost.add(`${name} ${nameOf(line.place)}`)
    }
    lines.push(line)
  }

  /** Where an item counts what is paid now; `closed` if nothing may be paid now. */
  function placeOf(grant: number, item: number, now: Instant): Place | 'closed' {
    const { interval } = grants[grant]?.[item] ?? {}
    if (interval === undefined) return { grant, item, window: 'life', end: Number.MAX_VALUE }
    const window = openWindow(interval, now)
    return window === undefined ? 'closed' : { grant, item, window: window.start, end: window.end }
  }

  /** What is left of an item's limit now. */
  function room(grant: number, item: number, now: Instant): bigint {
    const { limit } = grants[grant]?.[item] ?? {}
    const place = placeOf(grant, item, now)
    return limit === undefined || place === 'closed' ? 1_000n : limit.value - spentAt(place)
  }

  /** Where a payment has to be counted, and by what; `undefined` if it must not be made. */
  function charge(grant: number, walletAddress: string, terms: Terms, now: Instant) {
    for (const [item, plan] of (grants[grant] ?? []).entries()) {
      if (plan.walletAddress !== walletAddress) continue
      if (plan.receiver !== undefined && plan.receiver !== terms.receiver) continue
      const place = placeOf(grant, item, now)
      if (place === 'closed') continue
      if (plan.limit === undefined) return { place }
      const { counts, asset, value } = plan.limit
      const [paid, paidIn] =
        counts === 'debitAmount' ? [terms.debit, 'USD'] : [terms.receive, terms.asset]
      if (paidIn === asset && spentAt(place) + paid <= value) return { place }
    }
    return undefined
  }

  /** What clients see of the windows that are open: of all items of the grant together. */
  function spentUnder(grant: number, now: Instant): Totals {
    const parts = (grants[grant] ?? []).map(({ limit }, item): Partial<Totals> => {
      const place = placeOf(grant, item, now)
      if (place === 'closed') return {}
      if (linesAt(place).length > 0) {
        return totalsAt(place)
      }
      return limit === undefined ? {} : { [limit.counts]: { value: 0n, asset: limit.asset } }
    })
    return {
      debitAmount: together(parts.map((part) => part.debitAmount)),
      receiveAmount: together(parts.map((part) => part.receiveAmount)),
    }
  }

  function end(line: Line, state: 'completed' | 'failed', now: Instant): undefined {
    line.state = state
    line.endedAt = now
  }

  /** Each of these answers why nothing happened, or `undefined` when it has been written down. */
  function begin(line: Line, now: Instant): string | undefined {
    if (line.state === 'begun') return 'payment_begun'
    if (line.state !== 'created') return 'payment_over'
    if (now >= line.createdAt + holdMs) return 'payment_lapsed'
    line.state = 'begun'
    return undefined
  }

  function cancel(line: Line, now: Instant): string | undefined {
    if (line.state === 'begun') return 'payment_begun'
    if (line.state === 'failed' && line.sent === 0n) return undefined
    return line.state === 'created' ? end(line, 'failed', now) : 'payment_over'
  }

  function report(line: Line, sums: Sums, as: 'settle' | 'final' | 'fail', now: Instant) {
    const { sent, delivered } = sums
    if (line.state === 'created') return 'payment_not_begun'
    if (line.state === (as === 'fail' ? 'completed' : 'failed')) return 'payment_over'
    if (sent < line.sent) return 'totals_receded'
    if (sent > line.debit) return 'totals_exceeded'
    if (delivered < line.delivered) return 'totals_receded'
    if (delivered > line.receive) return 'totals_exceeded'
    const known = sent === line.sent && delivered === line.delivered
    if (line.state !== 'begun') return known ? undefined : 'payment_over'
    const whole = sent === line.debit || delivered === line.receive
    if (as === 'fail' && whole) return 'payment_sent'
    line.sent = sent
    line.delivered = delivered
    if (as === 'fail') return end(line, 'failed', now)
    return whole || as === 'final' ? end(line, 'completed', now) : undefined
  }

  /** What a sweep does: how many payments lapse. Those past their retention are removed. */
  function sweep(now: Instant): number {
    for (const line of lines) {
      if (line.endedAt !== undefined && line.endedAt + retentionMs <= now) line.gone = true
    }
    const due = lines.filter(({ state, createdAt }) => {
      return state === 'created' && now >= createdAt + holdMs
    })
    for (const line of due) end(line, 'failed', now)
    return due.length
  }

  /** The payment of that id; what was removed makes room for another. */
  const find = (id: string) => lines.findLast((line) => line.id === id)

  return {
    grants,
    lines,
    add,
    find,
    spentAt,
    totalsAt,
    room,
    charge,
    spentUnder,
    begin,
    cancel,
    report,
    sweep,
  }
}

/** The sum of what several items have spent of an amount. */
function together(totals: readonly (Total | null | undefined)[]): Total | null {
  const known = totals.filter((total) => total !== undefined)
  if (known.includes(null)) return null
  const positive = known.flatMap((total) => (total !== null && total.value > 0n ? total : []))
  const [first = known[0] ?? null] = positive
  if (first === null) return null
  const value = positive.reduce((sum, total) => sum + total.value, 0n)
  const one = positive.every(({ asset }) => asset === first.asset) && value < 2n ** 64n
  return one ? { value, asset: first.asset } : null
}
