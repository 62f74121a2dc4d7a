import type { RecordPage, Store } from 'open-payments-server'
import { demand, isObject, show } from './trial.js'

/** The same store, with errors that say which method did not answer, or answered what it never should. */
export function checkedStore(store: Store): Store {
  return {
    async load(kind, id) {
      const found: unknown = await answerOf('load', store.load(kind, id))
      demand(
        found === undefined || isObject(found),
        `load answered ${show(found)}; it should be a record, or undefined where there is none`,
      )
      return found as Awaited<ReturnType<Store['load']>>
    },
    async commit(commit) {
      return boolean('commit', await answerOf('commit', store.commit(commit)))
    },
    async list(query) {
      const page: unknown = await answerOf('list', store.list(query))
      demand(
        isObject(page) && Array.isArray(page['records']) && typeof page['more'] === 'boolean',
        `list answered ${show(page)}; it should be { records: [...], more: true or false }`,
      )
      return page as unknown as RecordPage
    },
    async due(kind, namespace, before, limit) {
      const found: unknown = await answerOf('due', store.due(kind, namespace, before, limit))
      demand(Array.isArray(found), `due answered ${show(found)}; it should be an array of records`)
      return found
    },
    async remove(kind, id, version) {
      return boolean('remove', await answerOf('remove', store.remove(kind, id, version)))
    },
  }
}

async function answerOf<Answer>(method: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    const problem = error instanceof Error ? error.message : show(error)
    throw new Error(
      `${method} rejected, which says that its outcome is unknown. While the database is up it should ` +
        'answer: what is lost to another writer is false, and serialization failures and deadlocks are ' +
        `tried again. It rejected with: ${problem}`,
      { cause: error },
    )
  }
}

function boolean(method: string, answer: unknown): boolean {
  demand(
    typeof answer === 'boolean',
    `${method} answered ${show(answer)}; it should be true or false`,
  )
  return answer
}
