import type { GrantedItem } from '../access.js'
import type { Instant } from '../instant.js'
import type { GrantConditions } from '../limits.js'
import { sameJson } from '../stored.js'
import type { Amendment, EarlierConditions, Grant } from './record.js'

/** Bounds of the amendments in a record, which every rotation of a token writes again. */
const amendmentsMax = 50
const charactersMax = 16_384

/** The access and conditions that apply from an amendment on. */
interface Terms {
  readonly access: readonly GrantedItem[]
  readonly conditions: GrantConditions
}

/**
 * Returns the amendments of a grant with another one. If they exceed the bounds, the two oldest become one. What
 * applied before the first amendment can therefore always be calculated: undo all amendments, the latest first.
 */
export function withAmendment(
  { granted = [], conditions = {}, amendments = [] }: Grant,
  next: Terms,
  at: Instant,
): readonly Amendment[] {
  const changed = earlierConditions(conditions, next.conditions)
  const before = {
    ...(!sameJson(granted, next.access) && { access: granted }),
    ...(Object.keys(changed).length > 0 && { conditions: changed }),
  }
  return bounded([...amendments, { at, before }])
}

/** Returns the conditions before a change that are others after it. */
function earlierConditions(before: GrantConditions, after: GrantConditions): EarlierConditions {
  const names = Object.keys({ ...before, ...after }) as (keyof GrantConditions)[]
  const changed = names.filter((name) => !sameJson(before[name], after[name]))
  return Object.fromEntries(changed.map((name) => [name, before[name] ?? null]))
}

function bounded(amendments: readonly Amendment[]): readonly Amendment[] {
  const [first, second, ...others] = amendments
  if (first === undefined || second === undefined || isWithinBounds(amendments)) return amendments
  return bounded([merged(first, second), ...others])
}

function isWithinBounds(amendments: readonly Amendment[]): boolean {
  return amendments.length <= amendmentsMax && JSON.stringify(amendments).length <= charactersMax
}

/** Joins two successive amendments. All that applied before the first did so until then, or longer. */
function merged({ at, before }: Amendment, { before: later }: Amendment): Amendment {
  const conditions = { ...later.conditions, ...before.conditions }
  const access = before.access ?? later.access
  return {
    at,
    before: {
      ...(access !== undefined && { access }),
      ...(Object.keys(conditions).length > 0 && { conditions }),
    },
  }
}
