import type { Instant } from '../../src/core/instant.js'
import { ok, type Result } from '../../src/core/result.js'
import { type Closed, hasEnded, windowAt } from '../../src/testing/spending/windows.js'
import { begin, cancel, report, sweep } from './spending-reports.js'

/**
 * A book of payments, independent of the library: a list of lines, whose sums are calculated for each call. It shares
 * the windows of intervals with the model of the testing kit, and nothing with the library.
 */

export type Counted = 'debitAmount' | 'receiveAmount'
export type AssetName = 'USD' | 'EUR'

/** One granted item: its wallet address, receiver, limit and interval. */
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

/** The item and the window in which a payment counts, and the end of the window. */
export interface Place {
  readonly grant: number
  readonly item: number
  readonly window: Instant | 'life'
  readonly end: Instant
}

/** The amounts and the receiver of a payment. The debit is in dollars. */
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

/** Both totals; `null` for a total that is not representable as one amount. */
export type Totals = Readonly<Record<Counted, Total | null>>

/** The sent and delivered amounts. */
export interface Sums {
  readonly sent: bigint
  readonly delivered: bigint
}

/** A payment in the book. */
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

/** Whether nothing can be spent any more under these items. */
export function isOver(plans: readonly Plan[], now: Instant): boolean {
  return plans.every(({ interval }) => {
    return interval !== undefined && hasEnded(windowAt(interval, now, 'occurrences'))
  })
}

/** Returns a unique name for a place. */
export const nameOf = ({ grant, item, window }: Place) => `${grant}.${item}.${window}`

export type Book = ReturnType<typeof newBook>

interface BookPolicy {
  readonly holdMs: number
  readonly retentionMs: number
}

export function newBook(grants: readonly (readonly Plan[])[], policy: BookPolicy) {
  const lines: Line[] = []
  const sheet: Sheet = { grants, lines, lost: new Set() }
  return {
    grants,
    lines,
    add: (line: Line) => add(sheet, line),
    /** Finds the last payment with an id: the id of a removed payment can be used again. */
    find: (id: string) => lines.findLast((line) => line.id === id),
    spentAt: (place: Place) => spentAt(sheet, place),
    totalsAt: (place: Place) => totalsAt(sheet, place),
    room: (grant: number, item: number, now: Instant) => room(sheet, grant, item, now),
    charge: (grant: number, walletAddress: string, terms: Terms, now: Instant) =>
      charge(sheet, grant, walletAddress, terms, now),
    spentUnder: (grant: number, now: Instant) => spentUnder(sheet, grant, now),
    begin: (line: Line, now: Instant) => begin(line, now, policy),
    cancel,
    report,
    sweep: (now: Instant) => sweep(lines, now, policy),
  }
}

interface Sheet {
  readonly grants: readonly (readonly Plan[])[]
  readonly lines: Line[]
  /** Places with a total that is no longer representable as one amount. */
  readonly lost: Set<string>
}

const linesAt = ({ lines }: Sheet, place: Place) =>
  lines.filter((line) => nameOf(line.place) === nameOf(place))

function held({ state, ...line }: Line, name: Counted): bigint {
  const ended = state === 'completed' || state === 'failed'
  if (name === 'receiveAmount') return ended ? line.delivered : line.receive
  return ended ? line.sent : line.debit
}

/** Returns how much of an amount the payments at a place hold. */
function heldAt(sheet: Sheet, place: Place, name: Counted): bigint {
  return linesAt(sheet, place).reduce((sum, line) => sum + held(line, name), 0n)
}

/** Returns how much of the limit at a place has been used. */
function spentAt(sheet: Sheet, place: Place): bigint {
  const { limit } = sheet.grants[place.grant]?.[place.item] ?? {}
  return limit === undefined ? 0n : heldAt(sheet, place, limit.counts)
}

/** Returns the total of an amount; `null` after a payment that makes it unrepresentable as one amount. */
function totalAt(sheet: Sheet, place: Place, name: Counted): Total | null {
  const assets = linesAt(sheet, place).map(({ asset }) => (name === 'debitAmount' ? 'USD' : asset))
  const isLost = sheet.lost.has(`${name} ${nameOf(place)}`)
  return isLost ? null : { value: heldAt(sheet, place, name), asset: assets.at(-1) ?? 'USD' }
}

function totalsAt(sheet: Sheet, place: Place): Totals {
  return {
    debitAmount: totalAt(sheet, place, 'debitAmount'),
    receiveAmount: totalAt(sheet, place, 'receiveAmount'),
  }
}

function add(sheet: Sheet, line: Line): void {
  for (const name of ['debitAmount', 'receiveAmount'] as const) {
    const before = totalAt(sheet, line.place, name)
    const asset = name === 'debitAmount' ? 'USD' : line.asset
    const fits = before !== null && before.value + held(line, name) < 2n ** 64n
    const same = before?.value === 0n || before?.asset === asset
    if (!fits || !same) sheet.lost.add(`${name} ${nameOf(line.place)}`)
  }
  sheet.lines.push(line)
}

/** Returns where an item counts a payment now, unless it permits no payment now. */
function placeOf(
  { grants }: Sheet,
  grant: number,
  item: number,
  now: Instant,
): Result<Place, Closed> {
  const { interval } = grants[grant]?.[item] ?? {}
  if (interval === undefined) return ok({ grant, item, window: 'life', end: Number.MAX_VALUE })
  const turn = windowAt(interval, now, 'occurrences')
  return turn.ok ? ok({ grant, item, window: turn.value.start, end: turn.value.end }) : turn
}

/** Returns how much of the limit of an item remains now. */
function room(sheet: Sheet, grant: number, item: number, now: Instant): bigint {
  const { limit } = sheet.grants[grant]?.[item] ?? {}
  const place = placeOf(sheet, grant, item, now)
  return limit === undefined || !place.ok ? 1_000n : limit.value - spentAt(sheet, place.value)
}

/** Returns where a payment counts; `undefined` if no item permits it. */
function charge(sheet: Sheet, grant: number, walletAddress: string, terms: Terms, now: Instant) {
  for (const [item, plan] of (sheet.grants[grant] ?? []).entries()) {
    if (plan.walletAddress !== walletAddress) continue
    if (plan.receiver !== undefined && plan.receiver !== terms.receiver) continue
    const found = placeOf(sheet, grant, item, now)
    if (!found.ok) continue
    const place = found.value
    if (plan.limit === undefined) return { place }
    const { counts, asset, value } = plan.limit
    const [paid, paidIn] =
      counts === 'debitAmount' ? [terms.debit, 'USD'] : [terms.receive, terms.asset]
    if (paidIn === asset && spentAt(sheet, place) + paid <= value) return { place }
  }
  return undefined
}

/** Returns what clients see: the totals of the open windows of all items of a grant. */
function spentUnder(sheet: Sheet, grant: number, now: Instant): Totals {
  const parts = (sheet.grants[grant] ?? []).map(({ limit }, item): Partial<Totals> => {
    const place = placeOf(sheet, grant, item, now)
    if (!place.ok) return {}
    if (linesAt(sheet, place.value).length > 0) return totalsAt(sheet, place.value)
    return limit === undefined ? {} : { [limit.counts]: { value: 0n, asset: limit.asset } }
  })
  return {
    debitAmount: together(parts.map((part) => part.debitAmount)),
    receiveAmount: together(parts.map((part) => part.receiveAmount)),
  }
}

/** Returns the sum of the amounts that several items have spent. */
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
