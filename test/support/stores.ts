import type { Scheduler } from 'fast-check'
import type { Store } from '../../src/index.js'

/** Lets the scheduler choose when each call begins and when its answer arrives, and so who overtakes whom. */
export function scheduledStore(store: Store, scheduler: Scheduler): Store {
  const around =
    <Args extends unknown[], Result>(name: string, call: (...args: Args) => Promise<Result>) =>
    async (...args: Args) => {
      await scheduler.schedule(Promise.resolve(), `before ${name}`)
      const result = await call(...args)
      await scheduler.schedule(Promise.resolve(), `after ${name}`)
      return result
    }
  return {
    load: around('load', store.load),
    commit: around('commit', store.commit),
    list: around('list', store.list),
    due: around('due', store.due),
    remove: around('remove', store.remove),
  }
}

/** A broken store: whoever writes last wins, whatever version it had seen. */
export function lastWriteWins(store: Store): Store {
  return {
    ...store,
    async commit({ changes }) {
      for (const { kind, next } of changes) {
        const current = (await store.load(kind, next.id))?.version ?? 0
        await store.commit({ changes: [{ kind, next, expectedVersion: current }], guards: [] })
      }
      return true
    },
  }
}

/** A broken store: it checks the versions, looks away, and writes whatever has happened meanwhile. */
export function checkThenAct(scheduler: Scheduler, store: Store): Store {
  const overwriting = lastWriteWins(store)
  return {
    ...store,
    async commit(commit) {
      for (const { kind, next, expectedVersion } of commit.changes) {
        if (((await store.load(kind, next.id))?.version ?? 0) !== expectedVersion) return false
      }
      await scheduler.schedule(Promise.resolve(), 'between check and act')
      return overwriting.commit(commit)
    },
  }
}

/** A broken store: creating a record that exists already replaces it instead of failing. */
export function upsert(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const lenient = await Promise.all(
        changes.map(async (change) => {
          const current = (await store.load(change.kind, change.next.id))?.version ?? 0
          return change.expectedVersion === 0 ? { ...change, expectedVersion: current } : change
        }),
      )
      return store.commit({ changes: lenient, guards })
    },
  }
}
