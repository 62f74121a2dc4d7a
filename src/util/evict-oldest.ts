/** Removes the entry that was inserted first, if a map or set has more than `max` entries. */
export function evictOldest<Key>(entries: Map<Key, unknown> | Set<Key>, max: number): void {
  if (entries.size <= max) return
  for (const oldest of entries.keys()) {
    entries.delete(oldest)
    return
  }
}
