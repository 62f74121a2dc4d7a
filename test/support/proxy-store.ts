import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import { loadOne } from './one-record.js'

/**
 * The fate of a call: it works; it fails before anything is written; it takes effect but its response is
 * lost; or it takes effect but reports that it did not.
 */
export type Fate = 'works' | 'fails' | 'lands-and-fails' | 'lands-and-denies'

export const fates: readonly Fate[] = ['works', 'fails', 'lands-and-fails', 'lands-and-denies']

export interface Liar {
  /** The store as the library sees it. */
  readonly store: Store
  /** How often each fate occurred for a commit or removal. */
  readonly struck: ReadonlyMap<Fate, number>
  /** All stored records, read from the underlying store. */
  records(): Promise<readonly (readonly [RecordKind, Stored])[]>
}

/**
 * Wraps a store so that its responses are not always true. A read can only work or fail.
 *
 * @param fateOf is called once for each call, with the name of the method.
 */
export function lyingStore(store: Store, fateOf: (method: keyof Store) => Fate): Liar {
  const struck = new Map<Fate, number>()
  const written = new Map<string, readonly [RecordKind, string]>()

  async function reading<Result>(method: keyof Store, read: () => Promise<Result>) {
    if (fateOf(method) === 'fails') throw lost()
    return read()
  }

  /** @param denied the answer of a write that did not take effect. */
  async function writing<Answer>(
    method: 'commit' | 'remove',
    write: () => Promise<Answer>,
    denied: Answer,
  ): Promise<Answer> {
    const fate = fateOf(method)
    struck.set(fate, (struck.get(fate) ?? 0) + 1)
    if (fate === 'fails') throw lost()
    const landed = await write()
    if (fate === 'lands-and-fails') throw lost()
    return fate === 'lands-and-denies' ? denied : landed
  }

  return {
    struck,
    store: {
      load: (keys) => reading('load', () => store.load(keys)),
      list: (query) => reading('list', () => store.list(query)),
      due: (...query) => reading('due', () => store.due(...query)),
      remove: (records) =>
        writing(
          'remove',
          () => store.remove(records),
          records.map(() => false),
        ),
      commit(commit) {
        for (const { kind, next } of commit.changes) {
          written.set(`${kind} ${next.id}`, [kind, next.id])
        }
        return writing('commit', () => store.commit(commit), false)
      },
    },
    async records() {
      const found: (readonly [RecordKind, Stored])[] = []
      for (const [kind, id] of written.values()) {
        const record = await loadOne(store, kind, id)
        if (record !== undefined) found.push([kind, record])
      }
      return found
    },
  }
}

function lost(): Error {
  return Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' })
}
