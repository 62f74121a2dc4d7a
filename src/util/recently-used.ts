/** A map with a maximum size, which keeps the entries that were used last. */
export interface RecentlyUsed<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
  delete(key: string): void
}

/**
 * Returns a map of at most `max` entries. Keeps at least the half of them that was used last.
 *
 * To move each entry that is used to the end of one `Map` takes 13 µs with 8,000 entries if it is the same each time:
 * V8 walks over the places that the entry had before. Here no entry is moved: when one map is half full, it becomes the
 * older one, and the previous older one is dropped, with all entries that were not used since.
 */
export function recentlyUsed<Value>(max: number): RecentlyUsed<Value> {
  const half = Math.floor((max + 1) / 2)
  let older = new Map<string, Value>()
  let newer = new Map<string, Value>()

  function set(key: string, value: Value): void {
    newer.set(key, value)
    if (newer.size < half) return
    older = newer
    newer = new Map()
  }

  return {
    get(key) {
      const used = newer.get(key)
      if (used !== undefined) return used
      const value = older.get(key)
      if (value !== undefined) set(key, value)
      return value
    },
    set,
    delete(key) {
      newer.delete(key)
      older.delete(key)
    },
  }
}
