import type { DynamoDB, TransactWriteItem } from '@aws-sdk/client-dynamodb'
import type { Store } from 'open-payments-server'
import type {
  RecordChange,
  RecordKey,
  RecordKind,
  Stored,
  VersionGuard,
} from 'open-payments-server/adapter'
import { atVersion, dueKey, listKey, n, position, recordIn, recordKey, s } from './items.js'
import { dueRecords, pageOf } from './queries.js'
import { type DynamodbOptions, tableOf } from './table.js'
import { isWritten, repeated } from './transactions.js'

/** The records that are removed side by side: each takes a load and a transaction. */
const removedTogether = 25

/**
 * Stores records in DynamoDB: an item for each record, an item for each of its places in lists, and a transaction for
 * each commit. Run `createTable` first.
 *
 * A commit that meets others is repeated for up to 3 s, then it resolves to false. A repeat of a request whose answer
 * was lost takes effect once. The records of a commit have at most 4 MB together.
 *
 * @throws {InvalidInputError} for an unknown option.
 *
 * @example
 * ```ts
 * import { DynamoDB } from '@aws-sdk/client-dynamodb'
 * import { dynamodbStore } from 'open-payments-server-dynamodb'
 *
 * const store = dynamodbStore(new DynamoDB({ region: 'eu-central-1' }), { table: 'payments' })
 * console.log(await store.load([{ kind: 'grant', id: 'wallet01grant-1' }]))
 * ```
 */
export function dynamodbStore(client: DynamoDB, options: DynamodbOptions = {}): Store {
  const TableName = tableOf(options)

  /** One item is read consistently, several in a transaction, which costs twice as much. */
  async function load(keys: readonly RecordKey[]): Promise<readonly (Stored | undefined)[]> {
    const [first] = keys
    if (first !== undefined && keys.length === 1) {
      const Key = recordKey(first.kind, first.id)
      const { Item } = await client.getItem({ TableName, Key, ConsistentRead: true })
      return [Item && recordIn(Item)]
    }
    // A transaction may not contain an item twice.
    const wanted = new Map(keys.map(({ kind, id }) => [`${kind} ${id}`, recordKey(kind, id)]))
    if (wanted.size === 0) return []
    const TransactItems = [...wanted.values()].map((Key) => ({ Get: { TableName, Key } }))
    const { Responses = [] } = await repeated(() => client.transactGetItems({ TransactItems }))
    const items = new Map([...wanted.keys()].map((name, i) => [name, Responses[i]?.Item]))
    return keys.map(({ kind, id }) => {
      const item = items.get(`${kind} ${id}`)
      return item && recordIn(item)
    })
  }

  async function removeOne({ kind, id, version }: VersionGuard): Promise<boolean> {
    const [record] = await load([{ kind, id }])
    if (record?.version !== version) return false
    const places = await placesOf(kind, record)
    const Key = recordKey(kind, id)
    return isWritten(client, [
      { Delete: { TableName, Key, ...atVersion(version) } },
      ...places.map((place) => ({ Delete: { TableName, Key: place.Key } })),
    ])
  }

  return {
    load,

    async commit({ changes, guards }) {
      const conditions = guards.map(({ kind, id, version }) => {
        return { ConditionCheck: { TableName, Key: recordKey(kind, id), ...atVersion(version) } }
      })
      // The caller may change the records as soon as this function waits.
      const writes = await Promise.all(changes.map((change) => writesOf(TableName, change)))
      return isWritten(client, [...writes.flat(), ...conditions])
    },

    list: (query) => pageOf(client, TableName, query),

    due: (kind, namespace, before, limit) =>
      dueRecords(client, TableName, kind, namespace, before, limit),

    async remove(records) {
      const removed: boolean[] = []
      for (let from = 0; from < records.length; from += removedTogether) {
        const some = records.slice(from, from + removedTogether)
        removed.push(...(await Promise.all(some.map(removeOne))))
      }
      return removed
    },
  }
}

/** A place is updated where it is when it moves: its key does not contain its position. */
interface Place {
  readonly Key: { readonly owner: { S: string }; readonly member: { S: string } }
  readonly place: string
}

async function placesOf(
  kind: RecordKind,
  { id, lists = [] }: Pick<Stored, 'id' | 'lists'>,
): Promise<readonly Place[]> {
  return Promise.all(
    lists.map(async ({ list, at }) => {
      return {
        Key: { owner: s(await listKey(kind, list)), member: s(id) },
        place: position(at, id),
      }
    }),
  )
}

/** Reads the change before it waits. */
async function writesOf(
  TableName: string,
  { kind, next, expectedVersion, previous }: RecordChange,
): Promise<readonly TransactWriteItem[]> {
  const { id, dueAt, version } = next
  const due = dueAt === undefined ? {} : dueMembers(kind, id, dueAt)
  const record = { ...recordKey(kind, id), version: n(version), body: s(JSON.stringify(next)) }
  const [old, places] = await Promise.all([
    placesOf(kind, { id, lists: previous?.lists ?? [] }),
    placesOf(kind, next),
  ])
  const isIn = (place: Place, those: readonly Place[]) =>
    those.some(({ Key }) => Key.owner.S === place.Key.owner.S)
  const isUnmoved = (place: Place) =>
    old.some(({ Key, place: at }) => Key.owner.S === place.Key.owner.S && at === place.place)
  return [
    { Put: { TableName, Item: { ...record, ...due }, ...atVersion(expectedVersion) } },
    ...old
      .filter((place) => !isIn(place, places))
      .map(({ Key }) => ({ Delete: { TableName, Key } })),
    ...places
      .filter((place) => !isUnmoved(place))
      .map(({ Key, place }) => ({ Put: { TableName, Item: { ...Key, place: s(place) } } })),
  ]
}

function dueMembers(kind: RecordKind, id: string, dueAt: number) {
  return { dueOf: s(dueKey(kind, id.slice(0, 8))), due: s(position(dueAt, id)) }
}
