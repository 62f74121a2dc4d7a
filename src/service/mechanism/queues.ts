/**
 * Lets those of this process who lost a race try again one after another, in the order in which they came:
 * all at once, each but one would do its work for nothing, and the slowest might never have its turn.
 */
export interface Queues {
  /** Resolves when it is the caller's turn, which lasts until what it resolved with is called. */
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
