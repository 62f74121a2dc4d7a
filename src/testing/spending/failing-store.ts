import { type Store, TransactionError } from 'open-payments-server'
import type { StoreFailure } from './history.js'

/** A store that fails when the test says so. */
export interface FailingStore {
  readonly store: Store
  /**
   * Makes the next write reject, before or after it takes effect. Every second time, only this write rejects, and the
   * servers find out what happened. Otherwise, every later call rejects too, until the returned function is called.
   */
  fail(failure: StoreFailure): () => void
}

export function failingStore(store: Store): FailingStore {
  let next: StoreFailure | undefined
  let isDown = false
  let failures = 0

  function requireUp(): void {
    // The servers do not retry after this error. After another error, they would retry for 3 s.
    if (isDown) throw new TransactionError('ERR_TRANSACTION_FAILED', 'the store is down')
  }

  async function write(work: () => Promise<boolean>): Promise<boolean> {
    requireUp()
    if (next === undefined) return work()
    const failure = next
    next = undefined
    isDown = ++failures % 2 === 1
    if (failure === 'after') await work()
    throw new Error('the store failed')
  }

  async function read<Result>(work: () => Promise<Result>): Promise<Result> {
    requireUp()
    return work()
  }

  return {
    store: {
      load: (kind, id) => read(() => store.load(kind, id)),
      list: (query) => read(() => store.list(query)),
      due: (...query) => read(() => store.due(...query)),
      remove: (...record) => write(() => store.remove(...record)),
      commit: (commit) => write(() => store.commit(commit)),
    },
    fail(failure) {
      next = failure
      return () => {
        next = undefined
        isDown = false
      }
    },
  }
}
