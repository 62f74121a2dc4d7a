import type { Commit, RecordKind, Stored } from '../../../src/entry-adapter.js'
import type { Database, Written } from '../database.js'
import type { Journal } from '../journal.js'

/** What a law of the store sees: one commit or removal that has taken effect. */
export interface Change {
  readonly written: readonly Written[]
  /** Absent for a removal. */
  readonly commit: Commit | undefined
  readonly database: Database
  readonly journal: Journal
  /** When it has taken effect, by a correct clock, and how far each clock of a server may be ahead or behind. */
  readonly at: number
  readonly skewMaxMs: number
}

/** Returns a description of each violation. */
export type Law = (change: Change) => readonly string[]

/** Returns the records of a kind that a commit created or replaced. */
export function writesOf<Kind extends Stored>(
  { written }: Change,
  kind: RecordKind,
): readonly { readonly before: Kind | undefined; readonly after: Kind }[] {
  return written.flatMap((each) =>
    each.kind === kind && each.after !== undefined
      ? [{ before: each.before as Kind | undefined, after: each.after as Kind }]
      : [],
  )
}

/** Whether two records are the same except for these members. */
export function differsIn(
  before: object,
  after: object,
  except: readonly string[],
): string | undefined {
  const [one, other] = [before, after] as Record<string, unknown>[]
  if (one === undefined || other === undefined) return undefined
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].find(
    (name) => !except.includes(name) && JSON.stringify(one[name]) !== JSON.stringify(other[name]),
  )
}
