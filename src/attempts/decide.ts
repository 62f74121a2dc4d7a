import { decideAttempt } from '../core/attempts/evidence.js'
import { stopSettlement } from '../core/attempts/reply.js'
import {
  type Attempt,
  isByWord,
  isOpen,
  type Settlement,
  totalsOf,
} from '../core/attempts/settlement.js'
import type { Refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { Book } from './book.js'
import { type DecideRefusal, type DecideResult, viewOf } from './views.js'

/** Decides attempts by an operator. */
export async function decide(
  { book, now }: { readonly book: Book; readonly now: () => Instant },
  id: string,
  what: 'arrived' | 'never',
  who: string,
  reference: string | undefined,
): Promise<DecideResult> {
  if ((await book.load(id)) === undefined) {
    return { ok: false, refusal: 'settlement_unknown', reason: `no settlement has the id ${id}` }
  }
  const last: { version?: number; decided?: Decided } = {}
  const change = (settlement: Settlement, version: number) => {
    const decided = decidedBy(settlement, what, who, reference, now())
    Object.assign(last, { version, decided })
    return decided.ok ? decided.next : undefined
  }
  const record = await book.change(id, change, now())
  if (last.decided?.ok === false) {
    const { ok, refusal, reason } = last.decided
    return { ok, refusal, reason }
  }
  const changed = record.version !== last.version
  return { ok: true, changed, settlement: viewOf(id, record.settlement) }
}

type Decided =
  | { readonly ok: true; readonly next: Settlement }
  | Pick<Refused<DecideRefusal>, 'ok' | 'refusal' | 'reason'>

function decidedBy(
  settlement: Settlement,
  what: 'arrived' | 'never',
  who: string,
  reference: string | undefined,
  now: Instant,
): Decided {
  const by = { by: 'operator', who } as const
  const { attempts } = settlement
  const referencesOf = (is: (attempt: Attempt) => boolean) =>
    attempts.filter(is).map((each) => each.reference)
  const open = reference === undefined ? referencesOf(isOpen) : [reference]
  const byWord = open.length === 0 ? referencesOf(isByWord) : []
  if (open.length + byWord.length === 0) {
    const reason = 'no attempt of the settlement is in doubt'
    return { ok: false, refusal: 'nothing_in_doubt', reason }
  }
  let next = settlement
  for (const each of [...open, ...byWord]) {
    const isConfirmed = what === 'arrived' && byWord.length > 0
    const decided = decideAttempt(next, each, isConfirmed ? 'confirmed' : what, by, now)
    if (!decided.ok) return decided
    next = decided.record
  }
  // It has ended: what is free now is the host's to refund, and not sent again.
  const hasEnded = totalsOf(settlement).free === 0n && !attempts.some(isOpen)
  if (hasEnded && totalsOf(next).free > 0n) next = stopSettlement(next, `decided by ${who}`, now)
  return { ok: true, next }
}
