import { decideByOperator, type OperatorDecision } from '../core/attempts/operator.js'
import type { Settlement } from '../core/attempts/settlement.js'
import type { Instant } from '../core/instant.js'
import type { Book } from './book.js'
import { type DecideResult, viewOf } from './views.js'

export async function decide(
  { book, now }: { readonly book: Book; readonly now: () => Instant },
  id: string,
  decision: OperatorDecision,
): Promise<DecideResult> {
  if ((await book.load(id)) === undefined) {
    return { ok: false, refusal: 'settlement_unknown', reason: `no settlement has the id ${id}` }
  }
  const last: { version?: number; decided?: ReturnType<typeof decideByOperator> } = {}
  const change = (settlement: Settlement, version: number) => {
    const decided = decideByOperator(settlement, decision, now())
    Object.assign(last, { version, decided })
    return decided.ok ? decided.record : undefined
  }
  const record = await book.change(id, change, now())
  if (last.decided?.ok === false) {
    const { ok, refusal, reason } = last.decided
    return { ok, refusal, reason }
  }
  const changed = record.version !== last.version
  return { ok: true, changed, settlement: viewOf(id, record.settlement) }
}
