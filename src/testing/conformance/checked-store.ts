import type { RecordPage, Store } from 'open-payments-server'
import { demand, isObject, show } from './trial.js'

/** Wraps a store so that a rejection or a result of the wrong type fails the case and names the method. */
export function checkedStore(store: Store): Store {
  return {
    async load(kind, id) {
      const found: unknown = await answerOf('load', store.load(kind, id))
      demand(
        found === undefined || isObject(found),
        `load returned ${show(found)}; expected a record, or undefined if it does not exist`,
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
        `list returned ${show(page)}; expected { records: [...], more: true or false }`,
      )
      return page as unknown as RecordPage
    },
    async due(kind, namespace, before, limit) {
      const found: unknown = await answerOf('due', store.due(kind, namespace, before, limit))
      demand(Array.isArray(found), `due returned ${show(found)}; expected an array of records`)
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
      `${method} rejected, which means that its outcome is unknown. While the database is available, ` +
        'return false for a conflict with another writer, and retry serialization failures and ' +
        `deadlocks. It rejected with: ${problem}`,
      { cause: error },
    )
  }
}

function boolean(method: string, answer: unknown): boolean {
  demand(typeof answer === 'boolean', `${method} returned ${show(answer)}; expected true or false`)
  return answer
}
