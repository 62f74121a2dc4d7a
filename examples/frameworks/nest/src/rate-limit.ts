import type { RateLimit } from 'open-payments-server'

const minuteMs = 60_000

/** Allows each client so many requests and revocations per minute, in one process. */
export function perMinute(callsMax: number): RateLimit {
  let minute = 0
  let counts = new Map<string, number>()
  return ({ client, bucket, at }) => {
    if (client === undefined) return undefined // not signed
    const now = Math.floor(at / minuteMs)
    if (now !== minute) [minute, counts] = [now, new Map()]
    const counted = `${bucket} ${client}`
    const count = (counts.get(counted) ?? 0) + 1
    counts.set(counted, count)
    return count > callsMax ? { retryAfterMs: (minute + 1) * minuteMs - at } : undefined
  }
}
