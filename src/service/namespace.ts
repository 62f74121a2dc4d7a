import type { Stored } from '../core/stored.js'
import type { Store } from '../ports/store.js'
import { namespaceAt } from '../protocol/credential.js'
import { hashText } from '../util/hash.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { loadOne } from './load.js'
import { ContentionError } from './store-errors.js'

/**
 * The record of a server. Its id is the namespace without its last character, which the ids of events replace by the
 * number of their slice. So this part of a namespace, and the namespace with it, belongs to one server of a store.
 */
interface ServerRecord extends Stored {
  readonly url: string
}

/** The namespace of a server, with which its ids begin. */
export interface Namespace {
  /** Resolves to the namespace: the first 8 characters of the SHA-256 of the URL. */
  readonly namespace: () => Promise<string>
  /**
   * Makes sure that the namespace in the store belongs to this server. The first call writes a record. Once a call
   * outside of a transaction has resolved, no further call uses the store.
   *
   * @throws {InvalidInputError} if it belongs to another server: 42 bits of a hash can be those of another URL, and
   * both servers would act on each other's grants and payments.
   */
  claim(store: Store, inTransaction: boolean): Promise<void>
}

export function namespaceOfServer(url: string): Namespace {
  const namespace = namespaceAt(url)
  let isClaimed = false

  return {
    namespace,
    async claim(store, inTransaction) {
      if (isClaimed) return
      const owner = await ownerOf(store, `${(await namespace()).slice(0, -1)}.`, url)
      if (owner !== url) {
        throw new InvalidInputError(
          'store',
          `must not be that of ${owner}: ${url} has its namespace`,
        )
      }
      // A transaction can still roll back.
      isClaimed = !inTransaction
    },
  }
}

/** Resolves to the URL that a namespace belongs to: to this one, unless another server was first. */
async function ownerOf(store: Store, id: string, url: string): Promise<string> {
  const load = () => loadOne<ServerRecord>(store, { kind: 'server', id })
  const found = await load()
  if (found !== undefined) return found.url
  const commandId = (await hashText(url)).slice(0, 22)
  const next: ServerRecord = { id, version: 1, commandId, url }
  const commit = { changes: [{ kind: 'server', next, expectedVersion: 0 }], guards: [] } as const
  if (await store.commit(commit)) return url
  const first = await load()
  if (first === undefined) throw new ContentionError()
  return first.url
}
