import { createHash } from 'node:crypto'
import type { AttributeValue, DynamoDB, TransactWriteItem } from '@aws-sdk/client-dynamodb'
import type { Store } from 'open-payments-server'
import type {
  ListQuery,
  RecordChange,
  RecordKey,
  RecordKind,
  RecordPage,
  Stored,
  VersionGuard,
} from 'open-payments-server/adapter'

export interface DynamodbOptions {
  readonly table?: string
}

/** Creates the table of `dynamodbStore`: one for records and for their places in lists. */
export async function createDynamodbTable(client: DynamoDB, options: DynamodbOptions = {}) {
  const text = (AttributeName: string) => ({ AttributeName, AttributeType: 'S' }) as const
  const keys = (hash: string, range: string) => [
    { AttributeName: hash, KeyType: 'HASH' as const },
    { AttributeName: range, KeyType: 'RANGE' as const },
  ]
  const all = { ProjectionType: 'ALL' } as const
  await client.createTable({
    TableName: options.table ?? 'open-payments',
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: ['owner', 'member', 'place', 'dueOf', 'due'].map(text),
    KeySchema: keys('owner', 'member'),
    // Local indexes have consistent reads, which lists need. Due times may lag.
    LocalSecondaryIndexes: [
      { IndexName: 'pages', KeySchema: keys('owner', 'place'), Projection: all },
    ],
    GlobalSecondaryIndexes: [
      { IndexName: 'due', KeySchema: keys('dueOf', 'due'), Projection: all },
    ],
  })
}

/**
 * Stores records in DynamoDB: an item for each record, an item for each of its places in lists, and a transaction for
 * each commit. Before production:
 *
 * - Use the table in one region: global tables are eventually consistent between regions.
 * - All places of one list are in one partition, which may take up to 1,000 writes a second and 10 GB.
 */
export function dynamodbStore(client: DynamoDB, options: DynamodbOptions = {}): Store {
  const TableName = options.table ?? 'open-payments'

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
    const places = placesOf(kind, record).map(({ Key }) => ({ Delete: { TableName, Key } }))
    const Key = recordKey(kind, id)
    return isWritten(client, [{ Delete: { TableName, Key, ...atVersion(version) } }, ...places])
  }

  return {
    load,

    async commit({ changes, guards }) {
      const writes = changes.flatMap((change) => writesOf(TableName, change))
      const conditions = guards.map(({ kind, id, version }) => {
        return { ConditionCheck: { TableName, Key: recordKey(kind, id), ...atVersion(version) } }
      })
      return isWritten(client, [...writes, ...conditions])
    },

    list: (query) => pageOf(client, TableName, query),

    async due(kind, namespace, before, limit) {
      const items = await query(client, limit, {
        TableName,
        IndexName: 'due',
        KeyConditionExpression: 'dueOf = :of AND due < :end',
        ExpressionAttributeValues: {
          ':of': s(`${kind}/${namespace}`),
          ':end': s(position(before, '~')),
        },
      })
      return items.map(recordIn)
    },

    async remove(records) {
      const removed: boolean[] = []
      for (let from = 0; from < records.length; from += 25) {
        removed.push(...(await Promise.all(records.slice(from, from + 25).map(removeOne))))
      }
      return removed
    },
  }
}

/** A place is updated where it is when it moves: its key does not contain its position. */
function placesOf(kind: RecordKind, { id, lists = [] }: Pick<Stored, 'id' | 'lists'>) {
  return lists.map(({ list: wanted, at }) => {
    const Key = { owner: s(listOf(kind, wanted)), member: s(id) }
    return { Key, place: position(at, id) }
  })
}

function writesOf(
  TableName: string,
  { kind, next, expectedVersion: version, previous }: RecordChange,
): TransactWriteItem[] {
  const { id, dueAt } = next
  const due = dueAt !== undefined && {
    dueOf: s(`${kind}/${id.slice(0, 8)}`),
    due: s(position(dueAt, id)),
  }
  const record = {
    ...recordKey(kind, id),
    version: n(next.version),
    body: s(JSON.stringify(next)),
  }
  const [old, places] = [placesOf(kind, { id, lists: previous?.lists ?? [] }), placesOf(kind, next)]
  const isNamed = (place: (typeof old)[number], by: typeof old) =>
    by.some(({ Key }) => Key.owner.S === place.Key.owner.S)
  const isSame = (place: (typeof old)[number]) =>
    old.some(({ Key, place: at }) => Key.owner.S === place.Key.owner.S && at === place.place)
  return [
    { Put: { TableName, Item: { ...record, ...due }, ...atVersion(version) } },
    ...old
      .filter((place) => !isNamed(place, places))
      .map(({ Key }) => ({ Delete: { TableName, Key } })),
    ...places
      .filter((place) => !isSame(place))
      .map(({ Key, place }) => ({ Put: { TableName, Item: { ...Key, place: s(place) } } })),
  ]
}

async function recordsOf(
  client: DynamoDB,
  TableName: string,
  kind: RecordKind,
  ids: readonly string[],
): Promise<Stored[]> {
  const found = new Map<string, Stored>()
  let Keys = ids.map((id) => recordKey(kind, id))
  while (Keys.length > 0) {
    const wanted = { [TableName]: { Keys, ConsistentRead: true } }
    const { Responses, UnprocessedKeys } = await client.batchGetItem({ RequestItems: wanted })
    for (const item of Responses?.[TableName] ?? []) found.set(recordIn(item).id, recordIn(item))
    Keys = (UnprocessedKeys?.[TableName]?.Keys ?? []) as typeof Keys
  }
  return ids.flatMap((id) => found.get(id) ?? [])
}

async function pageOf(
  client: DynamoDB,
  TableName: string,
  { kind, list: wanted, cursor, forward, limit }: ListQuery,
): Promise<RecordPage> {
  const edge = cursor && position(cursor.at, cursor.id)
  const items = await query(client, limit + 1, {
    TableName,
    IndexName: 'pages',
    ConsistentRead: true,
    ScanIndexForward: forward,
    KeyConditionExpression: `#owner = :owner${edge === undefined ? '' : ` AND place ${forward ? '>' : '<'} :edge`}`,
    ExpressionAttributeNames: { '#owner': 'owner' },
    ExpressionAttributeValues: {
      ':owner': s(listOf(kind, wanted)),
      ...(edge && { ':edge': s(edge) }),
    },
  })
  const ids = items.slice(0, limit).map(({ member }) => member?.S ?? '')
  const records = await recordsOf(client, TableName, kind, forward ? ids : ids.reverse())
  return { records, more: items.length > limit }
}

type Item = Record<string, AttributeValue>

/** Reads pages of the query until there are enough items or no more. */
async function query(client: DynamoDB, limit: number, asked: Parameters<DynamoDB['query']>[0]) {
  const items: Item[] = []
  for (let ExclusiveStartKey: Item | undefined; ; ) {
    const Limit = limit - items.length
    const page = await client.query({
      ...asked,
      Limit,
      ...(ExclusiveStartKey && { ExclusiveStartKey }),
    })
    items.push(...(page.Items ?? []))
    ExclusiveStartKey = page.LastEvaluatedKey
    if (ExclusiveStartKey === undefined || items.length >= limit) return items
  }
}

async function isWritten(client: DynamoDB, TransactItems: TransactWriteItem[]): Promise<boolean> {
  if (TransactItems.length === 0) return true
  try {
    await repeated(() => client.transactWriteItems({ TransactItems }))
    return true
  } catch (error) {
    const codes = cancellationsOf(error)
    // The transaction wrote nothing: it lost to another one, or met others for too long.
    if (codes.includes('ConditionalCheckFailed') || codes.includes('TransactionConflict')) {
      return false
    }
    throw error
  }
}

/** Transactions that meet are cancelled, possibly all of them, so they are repeated for up to 3 s. */
async function repeated<Answer>(transact: () => Promise<Answer>): Promise<Answer> {
  for (const startedAt = performance.now(); ; ) {
    try {
      return await transact()
    } catch (error) {
      const codes = cancellationsOf(error)
      const mayRepeat =
        codes.includes('TransactionConflict') && !codes.includes('ConditionalCheckFailed')
      if (!mayRepeat || performance.now() - startedAt > 3_000) throw error
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 32))
    }
  }
}

function cancellationsOf(error: unknown): readonly (string | undefined)[] {
  const { CancellationReasons = [] } = error as { CancellationReasons?: { Code?: string }[] }
  return CancellationReasons.map(({ Code }) => Code)
}

function atVersion(version: number) {
  if (version === 0) return { ConditionExpression: 'attribute_not_exists(body)' }
  return {
    ConditionExpression: '#version = :expected',
    ExpressionAttributeNames: { '#version': 'version' },
    ExpressionAttributeValues: { ':expected': n(version) },
  }
}

function recordKey(kind: RecordKind, id: string) {
  return { owner: s(`record/${kind}/${id}`), member: s('record') }
}

function listOf(kind: RecordKind, list: string): string {
  // A key has at most 2,048 bytes. As JSON, lone surrogates stay distinct.
  return `list/${kind}/${createHash('sha256').update(JSON.stringify(list)).digest('base64url')}`
}

function recordIn({ body }: Item): Stored {
  return JSON.parse(body?.S ?? '') as Stored
}

/** Formats a safe integer as 17 digits that sort in numeric order, and the id after it. */
function position(at: number, id: string): string {
  return `${String(BigInt(at) + 2n ** 53n).padStart(17, '0')}/${id}`
}

function s(S: string) {
  return { S }
}

function n(N: number) {
  return { N: String(N) }
}
