import type { Instant } from '../../src/core/instant.js'
import type { Line, Sums } from './spending-book.js'

/**
 * The reports of the host about a payment. Each function returns the refusal, or `undefined` if it accepts the report.
 */

function end(line: Line, state: 'completed' | 'failed', now: Instant): undefined {
  line.state = state
  line.endedAt = now
}

export function begin(
  line: Line,
  now: Instant,
  { holdMs }: { readonly holdMs: number },
): string | undefined {
  if (line.state === 'begun') return 'payment_begun'
  if (line.state !== 'created') return 'payment_over'
  if (now >= line.createdAt + holdMs) return 'payment_lapsed'
  line.state = 'begun'
  return undefined
}

export function cancel(line: Line, now: Instant): string | undefined {
  if (line.state === 'begun') return 'payment_begun'
  if (line.state === 'failed' && line.sent === 0n) return undefined
  return line.state === 'created' ? end(line, 'failed', now) : 'payment_over'
}

export function report(
  line: Line,
  { sent, delivered }: Sums,
  as: 'report-sent' | 'final' | 'fail',
  now: Instant,
): string | undefined {
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

/** Returns how many payments lapse in a sweep. The sweep removes payments past their retention. */
export function sweep(
  lines: readonly Line[],
  now: Instant,
  { holdMs, retentionMs }: { readonly holdMs: number; readonly retentionMs: number },
): number {
  for (const line of lines) {
    if (line.endedAt !== undefined && line.endedAt + retentionMs <= now) line.gone = true
  }
  const due = lines.filter(({ state, createdAt }) => {
    return state === 'created' && now >= createdAt + holdMs
  })
  for (const line of due) end(line, 'failed', now)
  return due.length
}
