import type { Instant } from '../core/instant.js'
import type { Random } from '../ports/host.js'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

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
  const text = time + Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  const variant = (8 + (Number.parseInt(text.charAt(16), 16) & 3)).toString(16)
  const parts = [
    text.slice(0, 8),
    text.slice(8, 12),
    `7${text.slice(13, 16)}`,
    variant + text.slice(17, 20),
    text.slice(20, 32),
  ]
  return parts.join('-')
}

/** Whether a text is a UUID in lower case, as RFC 9562 section 4 writes it. */
export function isUuid(text: string): boolean {
  return uuid.test(text)
}
