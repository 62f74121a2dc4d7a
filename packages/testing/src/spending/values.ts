import type fc from 'fast-check'
import type { Amount, Asset, Instant } from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import { amountOf, amountText, instantText, readable } from './history.js'

/** The module `fast-check`. Callers pass it in, so that the package stays an optional dependency. */
export type FastCheck = typeof fc

/** An arbitrary of fast-check. */
export type Arbitrary<Value> = fc.Arbitrary<Value>

/** Chooses between arbitraries, each with its weight. */
export function weighted<Value>(
  fc: FastCheck,
  ...choices: readonly (readonly [weight: number, arbitrary: Arbitrary<Value>])[]
): Arbitrary<Value> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

export function rarely(fc: FastCheck): Arbitrary<boolean> {
  return weighted(fc, [7, fc.constant(false)], [1, fc.constant(true)])
}

/** Edge values for sums: 1, integers that a double cannot represent, and the 64-bit maximum. */
export function valueEdges(fc: FastCheck): Arbitrary<bigint> {
  const double = 2n ** 53n
  return fc.constantFrom(
    1n,
    2n,
    double - 1n,
    double,
    double + 1n,
    2n ** 63n - 1n,
    2n ** 63n,
    amountValueMax - 1n,
    amountValueMax,
  )
}

/** Positive values up to 2^64 - 1. */
function anyValue(fc: FastCheck): Arbitrary<bigint> {
  return weighted(
    fc,
    [3, fc.bigInt({ min: 1n, max: 10_000n })],
    [2, valueEdges(fc)],
    [1, fc.bigInt({ min: 1n, max: amountValueMax })],
  )
}

function anyAsset(fc: FastCheck): Arbitrary<Asset> {
  return fc.constantFrom<Asset[]>(
    { assetCode: 'USD', assetScale: 2 },
    { assetCode: 'EUR', assetScale: 2 },
    { assetCode: 'JPY', assetScale: 0 },
    { assetCode: 'XRP', assetScale: 9 },
    { assetCode: 'ETH', assetScale: 18 },
  )
}

/** Positive amounts, in any asset or in the given one. */
export function anyAmount(fc: FastCheck, asset?: Asset): Arbitrary<Amount> {
  const assets = asset === undefined ? anyAsset(fc) : fc.constant(asset)
  return fc.tuple(anyValue(fc), assets).map(([value, asset]) => {
    const amount = amountOf(value, asset)
    return readable(amount, () => amountText(amount))
  })
}

const [secondMs, minuteMs, dayMs] = [1_000, 60_000, 86_400_000]
const lastInstant: Instant = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Calendar edges: month ends, leap days, century years without a leap day, and both ends of the range. */
const corners: readonly Instant[] = [
  Date.UTC(2025, 0, 31),
  Date.UTC(2024, 1, 29),
  Date.UTC(2023, 1, 28, 23, 59, 59, 999),
  Date.UTC(2024, 11, 31),
  Date.UTC(2025, 3, 30, 12),
  Date.UTC(2000, 1, 29),
  Date.UTC(2096, 1, 29),
  Date.UTC(2100, 1, 28),
  0,
  lastInstant,
]

const commonDurations = [
  'P1M',
  'P1D',
  'P1W',
  'PT1H',
  'P1Y',
  'P3M',
  'P2W',
  'PT1S',
  'P30D',
  'PT90M',
  'P1M1D',
  'P4Y',
  'P1Y2M10DT2H30M',
] as const

/**
 * Repeating intervals that the library accepts: every form, with and without a count. With `around`, their windows are
 * at least a minute long, as authorization servers require by default.
 */
export function validInterval(fc: FastCheck, around?: Instant): Arbitrary<string> {
  const instants = around === undefined ? anyInstant(fc) : nearInstant(fc, around)
  const durations =
    around === undefined
      ? fc.oneof(fc.constantFrom(...commonDurations), anyDuration(fc))
      : fc.constantFrom(...commonDurations.filter((duration) => duration !== 'PT1S'))
  const written = writtenInstant(fc, instants)
  const span = weighted(
    fc,
    [4, fc.tuple(written, durations).map(([a, b]) => `${a}/${b}`)],
    [1, startAndEnd(fc, instants, around === undefined ? 1 : minuteMs)],
    [2, fc.tuple(durations, written).map(([a, b]) => `${a}/${b}`)],
  )
  return fc.tuple(repetition(fc), span).map(([repeats, text]) => `${repeats}/${text}`)
}

/** Intervals for histories: all forms, and often months from the last days of a month, whose lengths differ. */
export function historyInterval(fc: FastCheck, around: Instant): Arbitrary<string> {
  const date = new Date(around)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  // Day 0 of a month is the last day of the month before. Of four successive months, at least two have 31 days.
  const ends = (first: number) =>
    [0, 1, 2, 3]
      .map((months) => Date.UTC(year, month + first + months, 0))
      .filter((end) => new Date(end).getUTCDate() > 30)
  const starts = date.getUTCDate() > 28 ? [...ends(-3), around] : ends(-3)
  const written = (instants: readonly Instant[]) => writtenInstant(fc, fc.constantFrom(...instants))
  const monthly = fc.oneof(
    written(starts).map((start) => `${start}/P1M`),
    // Far enough ahead that a shorter month lies in between.
    written(ends(4)).map((end) => `P1M/${end}`),
  )
  return weighted(
    fc,
    [2, validInterval(fc, around)],
    [1, fc.tuple(repetition(fc), monthly).map(([repeats, span]) => `${repeats}/${span}`)],
  )
}

function repetition(fc: FastCheck): Arbitrary<string> {
  return weighted(
    fc,
    [3, fc.constantFrom('R', 'R-1')],
    [3, fc.constantFrom('R1', 'R2', 'R3', 'R12')],
    [1, fc.integer({ min: 1, max: 999_999 }).map((count) => `R${count}`)],
  )
}

function anyInstant(fc: FastCheck): Arbitrary<Instant> {
  return fc.oneof(
    fc.constantFrom(...corners),
    fc.integer({ min: 0, max: Math.floor(lastInstant / dayMs) }).map((days) => days * dayMs),
    fc.integer({ min: 0, max: Math.floor(lastInstant / secondMs) }).map((s) => s * secondMs),
    fc.maxSafeNat().map((n) => n % lastInstant),
  )
}

/** Instants whose windows are open at `around`, or open soon after it, or closed just before it. */
function nearInstant(fc: FastCheck, around: Instant): Arbitrary<Instant> {
  const date = new Date(around)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const near = [
    around,
    around,
    Date.UTC(year, month),
    Date.UTC(year, month),
    Date.UTC(year, month + 1),
    // Day 0 of a month is the last day of the month before.
    ...[0, -1, -2, 1].map((months) => Date.UTC(year, month + months, 0)),
    Math.floor(around / dayMs) * dayMs,
    around - minuteMs,
    around + dayMs,
    Date.UTC(year - (year % 4), 1, 29),
  ]
  return fc.constantFrom(...near)
}

function startAndEnd(
  fc: FastCheck,
  instants: Arbitrary<Instant>,
  shortest: number,
): Arbitrary<string> {
  const edges = [shortest, Math.max(secondMs, shortest), 3_600_000, dayMs, 30 * dayMs, 365 * dayMs]
  const lengths = fc.oneof(
    fc.constantFrom(...edges),
    fc.integer({ min: shortest, max: 1_000 * dayMs }),
  )
  return fc
    .tuple(instants, lengths)
    .chain(([from, length]) => {
      const start = Math.min(from, lastInstant - length)
      const [a, b] = [start, start + length].map((at) => writtenInstant(fc, fc.constant(at)))
      return fc.tuple(a ?? fc.constant(''), b ?? fc.constant(''))
    })
    .map(([start, end]) => `${start}/${end}`)
}

/** An instant in any of its RFC 3339 forms. */
function writtenInstant(fc: FastCheck, instants: Arbitrary<Instant>): Arbitrary<string> {
  const zones = weighted<number | undefined>(
    fc,
    [4, fc.constant(undefined)],
    [2, fc.constantFrom(0, 60, -60, 330, 345, -570, 840, -1439, 1439)],
  )
  const lowerCase = weighted(fc, [5, fc.constant(false)], [1, fc.constant(true)])
  return fc.tuple(instants, zones, fc.integer({ min: 0, max: 9 }), lowerCase).map(writeInstant)
}

function writeInstant([at, zone, digits, lowerCase]: [
  at: Instant,
  zone: number | undefined,
  digits: number,
  lowerCase: boolean,
]): string {
  // Write the instant in UTC if its local year is out of range.
  const local = at + (zone ?? 0) * minuteMs
  const writable = zone !== undefined && local <= lastInstant
  const iso = instantText(writable ? local : at)
  const fraction = iso.slice(20, 23).padEnd(digits, '0').slice(0, Math.max(3, digits))
  const fractionless = digits < 3 && fraction === '000'
  const text = iso.slice(0, 19) + (fractionless ? '' : `.${fraction}`)
  const written = text + (writable ? offsetText(zone) : 'Z')
  return lowerCase ? written.toLowerCase() : written
}

function offsetText(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  const digits = [hours, rest].map((part) => String(part).padStart(2, '0'))
  return `${minutes < 0 ? '-' : '+'}${digits.join(':')}`
}

/** Durations of any components, up to a thousand years. */
function anyDuration(fc: FastCheck): Arbitrary<string> {
  const part = (unit: string, max: number) =>
    fc
      .option(fc.integer({ min: 0, max }), { nil: undefined })
      .map((count) => (count === undefined ? '' : `${count}${unit}`))
  const composed = fc
    .tuple(
      fc.tuple(part('Y', 500), part('M', 400), part('D', 9_999)),
      fc.tuple(part('H', 9_999), part('M', 99_999), part('S', 999_999)),
    )
    .map(([date, time]) => [date.join(''), time.join('')])
    .filter(([date = '', time = '']) => /[1-9]/.test(date + time))
    .map(([date = '', time = '']) => `P${date}${time === '' ? '' : `T${time}`}`)
  const weeks = fc.integer({ min: 1, max: 52_000 }).map((count) => `P${count}W`)
  return fc.oneof(composed, weeks, fc.constantFrom('P1000Y', 'PT999999999S', 'P366000D'))
}

const start = '2026-01-31T00:00:00Z'

const brokenRepetitions = 'R0 R-2 R-0 R01 R+1 R1.5 R1e3 R1000000 R1000000000 r3 RR 3'.split(' ')
const brokenDurations = (
  'P PT P1 P1S PT1D P1DT P1.5D P1,5D P0.5M P1M1W P1W1D -P1M P-1M +P1M p1m 1M P1M1Y PT1S1M P1H ' +
  'PT0S P0D P0W P0Y0M0DT0H0M0S P1001Y P366001D P999999999Y P9999999999D P1M. P1MT'
).split(' ')
const brokenInstants = [
  '2026-02-30T00:00:00Z',
  '2025-02-29T00:00:00Z',
  '2100-02-29T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-00-01T00:00:00Z',
  '2026-01-00T00:00:00Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01T00:60:00Z',
  '2016-12-31T23:59:60Z',
  '2026-01-01T00:00:00',
  '2026-01-01',
  '2026-01-01 00:00:00Z',
  '2026-01-01T00:00Z',
  '2026-01-01T00:00:00.Z',
  '2026-01-01T00:00:00+0100',
  '2026-01-01T00:00:00+24:00',
  '2026-01-01T00:00:00+01:60',
  '1969-12-31T23:59:59Z',
  '9999-12-31T23:59:59-00:01',
  '+010000-01-01T00:00:00Z',
  '10000-01-01T00:00:00Z',
  '20260101T000000Z',
]

/** Texts that resemble repeating intervals and that the library rejects. */
export function brokenInterval(fc: FastCheck): Arbitrary<string> {
  const good = validInterval(fc)
  const repeats = repetition(fc)
  const instant = writtenInstant(fc, anyInstant(fc))
  const length = fc.oneof(fc.constantFrom(...commonDurations), anyDuration(fc))
  const badInstant = fc.constantFrom(...brokenInstants)
  const badLength = fc.constantFrom(...brokenDurations)
  const joined = (...parts: Arbitrary<string>[]) =>
    fc.tuple(...parts).map((texts) => texts.join('/'))
  return fc.oneof(
    joined(fc.constantFrom(...brokenRepetitions), instant, length),
    joined(repeats, instant, badLength),
    joined(repeats, badLength, instant),
    joined(repeats, badInstant, length),
    joined(repeats, length, badInstant),
    joined(repeats, badInstant, instant),
    joined(repeats, length, length),
    // It ends at its start or before.
    joined(repeats, fc.constant(start), fc.constantFrom(start, '2026-01-30T23:59:59.999Z')),
    joined(repeats, instant),
    joined(repeats, length),
    good.map((text) => `${text}/`),
    good.map((text) => `${text}/P1M`),
    good.map((text) => ` ${text}`),
    good.map((text) => `${text}\n`),
    good.map((text) => text.slice(1)),
    good.map((text) => text.replace('/', '//')),
    fc.constantFrom('', 'R', '/', '//', 'R//', `R/${start}/P${'0'.repeat(120)}1D`),
  )
}
