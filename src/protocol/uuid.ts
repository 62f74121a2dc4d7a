import type { Instant } from '../core/instant.js'
import type { Random } from '../ports/host.js'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The two digits of each byte. */
const hexOf = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The greatest time that 48 bits hold: a day in the year 10,889. */
const timeMax = 2 ** 48 - 1

/**
 * Creates a UUID of version 7: the millisecond of its creation, and 74 random bits. The ids of one server ascend with
 * time, so that a store adds them at the end of its indexes, where pages are already in memory.
 *
 * @see RFC 9562 section 5.7
 */
export function newUuid(now: Instant, random: Random): string {
  const bytes = random.getRandomValues(new Uint8Array(10))
  const time = Math.min(Math.max(0, now), timeMax).toString(16).padStart(12, '0')
  let digits = ''
  for (const byte of bytes) digits += hexOf[byte]
  const variant = '89ab'.charAt(((bytes[2] ?? 0) >> 4) & 3)
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(1, 4)}` +
    `-${variant}${digits.slice(5, 8)}-${digits.slice(8)}`
  )
}

/** Whether a text is a UUID in lower case, as RFC 9562 section 4 writes it. */
export function isUuid(text: string): boolean {
  return uuid.test(text)
}
