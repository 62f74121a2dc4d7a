import type { DynamoDB } from '@aws-sdk/client-dynamodb'
import type { ListQuery, RecordKind, RecordPage, Stored } from 'open-payments-server/adapter'
import { dueKey, type Item, indexes, listKey, position, recordIn, recordKey, s } from './items.js'

/** Returns a page of a list. Its places are read first, then their records, each at its newest version. */
export async function pageOf(
  client: DynamoDB,
  TableName: string,
  { kind, list, cursor, forward, limit }: ListQuery,
): Promise<RecordPage> {
  const edge = cursor && position(cursor.at, cursor.id)
  const beyond = edge === undefined ? '' : ` AND place ${forward ? '>' : '<'} :edge`
  const items = await itemsOf(client, limit + 1, {
    TableName,
    IndexName: indexes.pages,
    ConsistentRead: true,
    ScanIndexForward: forward,
    KeyConditionExpression: `#owner = :owner${beyond}`,
    ExpressionAttributeNames: { '#owner': 'owner' },
    ExpressionAttributeValues: {
      ':owner': s(await listKey(kind, list)),
      ...(edge !== undefined && { ':edge': s(edge) }),
    },
  })
  const ids = items.slice(0, limit).map(({ member }) => member?.S ?? '')
  const records = await recordsOf(client, TableName, kind, forward ? ids : ids.reverse())
  return { records, more: items.length > limit }
}

/** Returns the records of a namespace that are due. The index may lag behind. */
export async function dueRecords(
  client: DynamoDB,
  TableName: string,
  kind: string,
  namespace: string,
  before: number,
  limit: number,
): Promise<readonly Stored[]> {
  const items = await itemsOf(client, limit, {
    TableName,
    IndexName: indexes.due,
    KeyConditionExpression: 'dueOf = :of AND due < :end',
    ExpressionAttributeValues: {
      ':of': s(dueKey(kind, namespace)),
      ':end': s(position(before, '~')),
    },
  })
  return items.map(recordIn)
}

/** The answers without an item after which DynamoDB is taken to give none. */
const emptyAnswersMax = 16

/** Reads answers of the query until there are enough items or no more. */
async function itemsOf(
  client: DynamoDB,
  limit: number,
  asked: Parameters<DynamoDB['query']>[0],
): Promise<readonly Item[]> {
  const items: Item[] = []
  let empty = 0
  for (let from: Item | undefined; limit > 0; ) {
    const Limit = limit - items.length
    const start = from === undefined ? {} : { ExclusiveStartKey: from }
    const answer = await client.query({ ...asked, Limit, ...start })
    const found = answer.Items ?? []
    items.push(...found.slice(0, Limit))
    from = answer.LastEvaluatedKey
    if (from === undefined || items.length >= limit) break
    empty = found.length === 0 ? empty + 1 : 0
    if (empty > emptyAnswersMax) throw unfinished
  }
  return items
}

/** The answers with which DynamoDB may keep keys back, because it is busy. */
const batchAnswersMax = 24

async function recordsOf(
  client: DynamoDB,
  TableName: string,
  kind: RecordKind,
  ids: readonly string[],
): Promise<readonly Stored[]> {
  const found = new Map<string, Stored>()
  let Keys: Item[] = ids.map((id) => recordKey(kind, id))
  for (let answers = 0; Keys.length > 0; answers += 1) {
    if (answers > 0) await pauseAfter(answers)
    if (answers === batchAnswersMax) throw unfinished
    const RequestItems = { [TableName]: { Keys, ConsistentRead: true } }
    const { Responses, UnprocessedKeys } = await client.batchGetItem({ RequestItems })
    for (const record of (Responses?.[TableName] ?? []).map(recordIn)) found.set(record.id, record)
    Keys = UnprocessedKeys?.[TableName]?.Keys ?? []
  }
  return ids.flatMap((id) => found.get(id) ?? [])
}

const unfinished = new Error('DynamoDB is busy: it has not returned all records of a page')

function pauseAfter(answers: number): Promise<void> {
  const pauseMs = Math.random() * Math.min(200, 2 ** answers)
  return new Promise((resolve) => setTimeout(resolve, pauseMs))
}
