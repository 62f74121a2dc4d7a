import type { Scheduler } from 'fast-check'
import type { Store } from '../../src/index.js'
import { checkThenAct as checkThenActOver } from './broken-stores/commits.js'

export { lastWriteWins } from './broken-stores/commits.js'

/** Lets the scheduler choose when each call begins and when its response arrives, and so their order. */
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

/** A faulty store: between checking the versions and writing, it waits for the scheduler. */
export function checkThenAct(scheduler: Scheduler, store: Store): Store {
  return checkThenActOver(store, () =>
    scheduler.schedule(Promise.resolve(), 'between check and act'),
  )
}
