/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number

/**
 * Returns the time of a decision about a record: now, but not before an instant that the record contains. A clock that
 * was set back, or that differs from another server's, then cannot undo what the record contains.
 */
export function decisionTime(now: Instant, ...recorded: readonly (Instant | undefined)[]): Instant {
  return recorded.reduce<Instant>(
    (latest, at) => (at === undefined ? latest : Math.max(latest, at)),
    now,
  )
}

const dateTime =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

const minuteMs = 60_000

/** 9999-12-31T23:59:59.999Z, the last instant with a four-digit year. */
export const lastInstant: Instant = 253_402_300_799_999

/**
 * Parses an RFC 3339 date-time from 1970 on, with any number of fractional digits. Truncates digits beyond
 * milliseconds instead of rounding, so a limit never ends later than written. Returns `undefined` for text that
 * does not match the grammar, for dates that do not exist (30 February, hour 24) and for leap seconds.
 * `Date.parse` is much more lenient.
 */
export function parseInstant(text: string): Instant | undefined {
  const parts = dateTime.exec(text)
  if (parts === null) return undefined
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] =
    parts
  if (Number(minute) > 59 || Number(second) > 59) return undefined
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined

  const local = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
    Number(fraction.slice(0, 3).padEnd(3, '0')),
  )
  // A month out of range changes the year; a day or an hour out of range changes the day.
  const reread = new Date(local)
  const exists = reread.getUTCFullYear() === Number(year) && reread.getUTCDate() === Number(day)
  if (!exists) return undefined

  const offsetMs =
    sign === undefined ? 0 : (Number(offsetHour) * 60 + Number(offsetMinute)) * minuteMs
  const instant = sign === '-' ? local + offsetMs : local - offsetMs
  return instant >= 0 && instant <= lastInstant ? instant : undefined
}

/** Formats an instant as an RFC 3339 date-time in UTC, with milliseconds. */
export function formatInstant(instant: Instant): string {
  return new Date(instant).toISOString()
}

/** Returns a clock without fractions of a millisecond: records, their order and RFC 3339 have none. */
export function wholeMilliseconds(clock: { now(): number }): { now(): Instant } {
  return { now: () => Math.floor(clock.now()) }
}
