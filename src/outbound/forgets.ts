/** The key sets and failures that the host asked to forget while one look-up or request was in progress. */
export interface Forgotten {
  /** Whether its key set was forgotten since it began. */
  keySet(): boolean
  /** Whether another failure of its host was forgotten since. */
  host(): boolean
}

/** Counts the calls of `forget` for the key sets and hosts of look-ups in progress. */
export function createForgets() {
  const counts = new Map<string, { inProgress: number; forgets: number }>()

  function begin(name: string) {
    const count = counts.get(name) ?? { inProgress: 0, forgets: 0 }
    counts.set(name, count)
    count.inProgress += 1
    const { forgets } = count
    return {
      isForgotten: () => count.forgets > forgets,
      end() {
        count.inProgress -= 1
        if (count.inProgress === 0) counts.delete(name)
      },
    }
  }

  return {
    /** Runs a look-up or a request of a key set. */
    async during<Value>(url: URL, work: (forgotten: Forgotten) => Promise<Value>): Promise<Value> {
      const [keySet, host] = [begin(url.href), begin(url.host)]
      try {
        return await work({ keySet: keySet.isForgotten, host: host.isForgotten })
      } finally {
        keySet.end()
        host.end()
      }
    },
    forget(url: URL): void {
      for (const name of [url.href, url.host]) {
        const count = counts.get(name)
        if (count !== undefined) count.forgets += 1
      }
    },
  }
}
