import type { Commit, Store } from '../../src/index.js'

/** Lets one actor through at a time; a list of numbers selects which of the waiting ones. */
export interface Turnstile {
  /** Waits until it is selected. */
  pass(name: string): Promise<void>
  /** The store as the named actor sees it: each call waits until it is selected. */
  store(name: string, store: Store): Store
  /** Resolves when all actors are done and all pending work has completed. */
  run<Result>(...running: readonly Promise<Result>[]): Promise<Result[]>
  /** The actors and their calls in the order in which they were let through. */
  readonly log: readonly string[]
}

/** From outside, only the order in which calls take effect is observable. */
export function turnstile(order: readonly number[]): Turnstile {
  const waiting: { readonly name: string; readonly go: () => void }[] = []
  const log: string[] = []
  let queues = 0

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
        const [next] = waiting.splice((order[queues++] ?? 0) % (waiting.length || 1), 1)
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

/** Waits until every actor is done or waiting. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
