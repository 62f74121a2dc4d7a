import type { Commit, Store } from '../../src/index.js'

/** Lets one through at a time: who is next of those who wait is said by a list of numbers. */
export interface Turnstile {
  /** Waits for its turn. */
  pass(name: string): Promise<void>
  /** The store as an actor of that name sees it: each call waits for its turn. */
  store(name: string, store: Store): Store
  /** Resolves once all have done what they do, and all that this brought about has happened. */
  run<Result>(...running: readonly Promise<Result>[]): Promise<Result[]>
  /** Who was let through to what, in this order. */
  readonly log: readonly string[]
}

/** The order in which calls take effect is all that one can see of a store from outside. */
export function turnstile(order: readonly number[]): Turnstile {
  const waiting: { readonly name: string; readonly go: () => void }[] = []
  const log: string[] = []
  let turns = 0

  const pass = (name: string) =>
    new Promise<void>((go) => {
      waiting.push({ name, go })
    })

  return {
    log,
    pass,
    store(actor, store) {
      const inTurn =
        <Args extends unknown[], Result>(name: string, call: (...args: Args) => Promise<Result>) =>
        async (...args: Args) => {
          await pass(`${actor}: ${name}`)
          return call(...args)
        }
      return {
        load: (kind, id) => inTurn(`load ${kind}`, store.load)(kind, id),
        commit: (commit) => inTurn(`commit ${kindsOf(commit)}`, store.commit)(commit),
        list: inTurn('list', store.list),
        due: inTurn('due', store.due),
        remove: inTurn('remove', store.remove),
      }
    },
    async run(...running) {
      let over = false
      const all = Promise.all(running).finally(() => {
        over = true
      })
      all.catch(() => undefined)
      while (!over) {
        await quiet()
        const [next] = waiting.splice((order[turns++] ?? 0) % (waiting.length || 1), 1)
        if (next === undefined) continue
        log.push(next.name)
        next.go()
      }
      return all
    },
  }
}

function kindsOf({ changes }: Commit): string {
  return changes.flatMap(({ kind }) => (kind === 'event' ? [] : kind)).join(' and ')
}

/** Until nobody has anything left to do but wait. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
