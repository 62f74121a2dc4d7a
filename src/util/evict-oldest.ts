/**
 * Removes the entries that were inserted first, an eighth of `max`, if a map or set has more than `max`. To remove one
 * at each insertion takes ten times as long: each time, the iteration skips what was removed before.
 */
export function evictOldest<Key>(entries: Map<Key, unknown> | Set<Key>, max: number): void {
  if (entries.size <= max) return
  let left = Math.ceil(max / 8)
  for (const oldest of entries.keys()) {
    entries.delete(oldest)
    left -= 1
    if (left === 0) return
  }
}
