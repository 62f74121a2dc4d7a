import {
  type Attempt,
  arrivedOf,
  hasEnded,
  isByWord,
  isOpen,
  type Known,
  type KnownOutcome,
  knownOf,
  type Outcome,
  type Settlement,
} from './settlement.js'

export function withOutcome(
  settlement: Settlement,
  { reference }: Attempt,
  outcome: Outcome,
): Settlement {
  const attempts = settlement.attempts.map((each) =>
    each.reference === reference ? { ...each, outcome } : each,
  )
  return { ...settlement, attempts }
}

/** How an arrival is known. */
type Evidence<Each = KnownOutcome> = Each extends KnownOutcome
  ? Omit<Each, 'arrived' | keyof Known>
  : never

/**
 * Records that this much of an attempt arrived, also if something else was known before. What a sum has shown moves
 * between the attempts that it decided, because only the choice of them was wrong. What more arrives is `excess`. What
 * had counted and did not arrive, others have paid, and is `withdrawn` if the settlement has ended.
 */
export function withArrival(
  settlement: Settlement,
  attempt: Attempt,
  arrived: bigint,
  evidence: Evidence,
): Settlement {
  const before = knownOf(attempt)
  const { decision } = before
  const more = isOpen(attempt) ? 0n : arrived - arrivedOf(attempt)
  const less = atLeastNothing(-more)
  let left = atLeastNothing(more)
  let excess = 0n
  /** Gives back what a sum had shown of an attempt, and an operator has taken. */
  function restored<Each extends Known>(outcome: Each): Each {
    const part = least(left, BigInt(outcome.others ?? 0))
    const kept = least(part, BigInt(outcome.withdrawn ?? 0))
    left -= part
    // The rest may have been sent again, or is in the payer's account.
    excess += outcome.isCorrected ? part : part - kept
    return withAmounts(outcome, { others: -part, withdrawn: -kept })
  }
  const own = restored(before)
  let next = settlement
  for (const [other, outcome] of decidedWith(settlement, attempt)) {
    const part = isByWord(other) ? least(left, arrivedOf(other)) : 0n
    left -= part
    next = withOutcome(next, other, { ...outcome, arrived: `${arrivedOf(other) - part}` })
  }
  for (const [other, outcome] of decidedWith(next, attempt)) {
    next = withOutcome(next, other, restored(outcome))
  }
  const after = withAmounts(own, {
    excess: excess + left,
    others: decision === undefined ? 0n : less,
    withdrawn: hasEnded(settlement) ? less : 0n,
  })
  const outcome = { ...evidence, ...after, arrived: `${arrived}` }
  return withOutcome(explained(next, before, left), attempt, outcome)
}

/** A sum that has decided since may have shown what arrived after "never", so nothing of it is known by that sum. */
function explained(settlement: Settlement, { decision = 0 }: Known, excess: bigint): Settlement {
  const { base, decisionCount } = settlement
  if (base === undefined || decisionCount <= decision) return settlement
  return { ...settlement, base: `${BigInt(base) - excess}` }
}

/** The other attempts that the same sum has decided. */
function decidedWith(settlement: Settlement, attempt: Attempt) {
  const { decision } = knownOf(attempt)
  return settlement.attempts.flatMap((other) => {
    const { outcome, reference } = other
    const isOther = decision !== undefined && reference !== attempt.reference
    const isKnown = outcome.state === 'decided' || outcome.state === 'proven'
    return isOther && isKnown && outcome.decision === decision ? [[other, outcome] as const] : []
  })
}

function withAmounts<Each extends Known>(
  outcome: Each,
  changes: Readonly<Partial<Record<'excess' | 'others' | 'withdrawn', bigint>>>,
): Each {
  const { excess, others, withdrawn, ...rest }: Known = outcome
  const sums = Object.entries({ excess, others, withdrawn }).flatMap(([name, amount]) => {
    const sum = BigInt(amount ?? 0) + (changes[name as keyof typeof changes] ?? 0n)
    return sum > 0n ? [[name, `${sum}`] as const] : []
  })
  const next: Known = { ...rest, ...Object.fromEntries(sums) }
  return next as Each
}

const atLeastNothing = (amount: bigint) => (amount > 0n ? amount : 0n)
const least = (one: bigint, other: bigint) => (one < other ? one : other)
