/**
 * Serializes the retries of operations in this process that lost a race, in order of arrival. If they ran concurrently,
 * all but one would fail again, and the slowest might never succeed.
 */
export interface Queues {
  /**
   * Resolves when the caller is first in the queue. The caller must call the resolved function to leave it.
   */
  take(key: string): Promise<() => void>
}

export function createQueues(): Queues {
  const last = new Map<string, Promise<void>>()
  return {
    async take(key) {
      const before = last.get(key)
      let leave = () => {}
      const mine = new Promise<void>((resolve) => {
        leave = resolve
      })
      last.set(key, mine)
      await before
      return () => {
        if (last.get(key) === mine) last.delete(key)
        leave()
      }
    },
  }
}
