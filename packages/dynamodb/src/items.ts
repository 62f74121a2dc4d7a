import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { hashedListName, type RecordKind, type Stored } from 'open-payments-server/adapter'

export type Item = Record<string, AttributeValue>

/** The names of attributes: a record has `owner`, `member`, `version`, `body`, and `dueOf`, `due` if it is due once. */
export const indexes = { pages: 'pages', due: 'due' } as const

export function s(S: string) {
  return { S }
}

export function n(N: number) {
  return { N: String(N) }
}

export function recordKey(kind: RecordKind, id: string) {
  return { owner: s(`record/${kind}/${id}`), member: s('record') }
}

/** A key has at most 2,048 bytes, which the name of a list may exceed. */
export async function listKey(kind: RecordKind, list: string): Promise<string> {
  return `list/${kind}/${await hashedListName(list)}`
}

export function dueKey(kind: string, namespace: string): string {
  return `${kind}/${namespace}`
}

/** Formats a safe integer as 17 digits that sort in numeric order, and the id after it. */
export function position(at: number, id: string): string {
  return `${String(BigInt(at) + 2n ** 53n).padStart(17, '0')}/${id}`
}

export function recordIn({ body }: Item): Stored {
  return JSON.parse(body?.S ?? '') as Stored
}

/** The condition that a record is at a version; at version 0, that it does not exist. */
export function atVersion(version: number) {
  if (version === 0) return { ConditionExpression: 'attribute_not_exists(body)' }
  return {
    ConditionExpression: '#version = :expected',
    ExpressionAttributeNames: { '#version': 'version' },
    ExpressionAttributeValues: { ':expected': n(version) },
  }
}
