import type { Scheduler } from 'fast-check'
import type { Store } from '../../src/index.js'
import {
  checkThenAct as checkThenActOver,
  lastWriteWins as lastWriteWinsOver,
} from './broken-stores/commits.js'
import { broken } from './broken-stores/one-record.js'

/** A faulty store: the last write wins. */
export const lastWriteWins = broken(lastWriteWinsOver)

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
  return broken((each) =>
    checkThenActOver(each, () => scheduler.schedule(Promise.resolve(), 'between check and act')),
  )(store)
}
