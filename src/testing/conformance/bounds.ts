import type { Commit, ListEntry, RecordChange } from 'open-payments-server'

/** Returns the size of a commit that `storeBounds.commitSize` limits. */
export function commitSizeOf({ changes, guards }: Commit): number {
  return changes.reduce((size, change) => size + 1 + movedEntries(change), guards.length)
}

/** Returns the number of list entries that a change adds, moves or removes. */
function movedEntries({ next, previous }: RecordChange): number {
  const { lists: after = [] } = next
  const { lists: before = [] } = previous ?? {}
  const kept = after.filter((entry) => before.some((old) => isSameEntry(old, entry)))
  const names = new Set([...before, ...after].map(({ list }) => list))
  return names.size - kept.length
}

function isSameEntry(one: ListEntry, other: ListEntry): boolean {
  return one.list === other.list && one.at === other.at
}
