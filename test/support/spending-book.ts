import type { Instant } from '../../src/core/instant.js'
import { ok, type Result } from '../../src/core/result.js'
import { type Closed, hasEnded, turnAt } from '../../src/testing/spending/windows.js'
import { begin, cancel, report, sweep } from './spending-reports.js'

/**
 * A book of payments that is kept beside the library: a list of lines, summed up anew for every question. It
 * shares the windows of intervals with the model of the testing kit, and no computation with the library.
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

/** Whether nothing can be spent any more under these items. */
export function isOver(plans: readonly Plan[], now: Instant): boolean {
  return plans.every(({ interval }) => {
    return interval !== undefined && hasEnded(turnAt(interval, now, 'occurrences'))
  })
}

/** A place, by name. */
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
    /** The payment of that id; what was removed makes room for another. */
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
  /** Places whose total of an amount can no longer be given as one amount. */
  readonly lost: Set<string>
}

const linesAt = ({ lines }: Sheet, place: Place) =>
  lines.filter((line) => nameOf(line.place) === nameOf(place))

function held({ state, ...line }: Line, name: Counted): bigint {
  const ended = state === 'completed' || state === 'failed'
  if (name === 'receiveAmount') return ended ? line.delivered : line.receive
  return ended ? line.sent : line.debit
}

/** What payments hold of an amount where they are counted. */
function heldAt(sheet: Sheet, place: Place, name: Counted): bigint {
  return linesAt(sheet, place).reduce((sum, line) => sum + held(line, name), 0n)
}

/** What has been taken of the limit where a payment is counted. */
function spentAt(sheet: Sheet, place: Place): bigint {
  const { limit } = sheet.grants[place.grant]?.[place.item] ?? {}
  return limit === undefined ? 0n : heldAt(sheet, place, limit.counts)
}

/** The total of an amount; `null` from the first payment on that made it more than one amount. */
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

/** Where an item counts what is paid now, unless nothing may be paid now. */
function placeOf(
  { grants }: Sheet,
  grant: number,
  item: number,
  now: Instant,
): Result<Place, Closed> {
  const { interval } = grants[grant]?.[item] ?? {}
  if (interval === undefined) return ok({ grant, item, window: 'life', end: Number.MAX_VALUE })
  const turn = turnAt(interval, now, 'occurrences')
  return turn.ok ? ok({ grant, item, window: turn.value.start, end: turn.value.end }) : turn
}

/** What is left of an item's limit now. */
function room(sheet: Sheet, grant: number, item: number, now: Instant): bigint {
  const { limit } = sheet.grants[grant]?.[item] ?? {}
  const place = placeOf(sheet, grant, item, now)
  return limit === undefined || !place.ok ? 1_000n : limit.value - spentAt(sheet, place.value)
}

/** Where a payment has to be counted, and by what; `undefined` if it must not be made. */
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

/** What clients see of the windows that are open: of all items of the grant together. */
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
