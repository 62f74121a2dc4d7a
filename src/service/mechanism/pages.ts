import type { Instant, ListEntry, Stored } from '../../core/decision.js'
import type { ListQuery, RecordKind, Store } from '../../ports/store.js'
import type { Parsed } from '../../protocol/schema.js'
import { canonicalUrl } from '../../protocol/url.js'
import { decodeUtf8, encodeUtf8, fromBase64url, toBase64url } from '../../util/bytes.js'
import { invalidOption } from '../../util/option-error.js'

/** Which page of a list is wanted: `first` or `last`, or neither for the first 20 after the cursor. */
export interface PageQuery {
  /** So many after the cursor, or from the beginning of the list: 1 to 100. */
  readonly first?: number
  /** So many before the cursor, or up to the end of the list: 1 to 100. */
  readonly last?: number
  /** `startCursor` or `endCursor` of another page. */
  readonly cursor?: string
}

/** Which of a wallet address's payments the host wants to see, whoever created them. */
export interface PaymentListQuery extends PageQuery {
  readonly walletAddress: string
}

/**
 * Where a page lies in its list. A page on which there is nothing has no cursors.
 *
 * @see Open Payments OpenAPI, schema `page-info`
 */
export interface PageInfo {
  readonly startCursor?: string
  readonly endCursor?: string
  readonly hasNextPage: boolean
  readonly hasPreviousPage: boolean
}

/** A page of a list, oldest first whichever way one pages. */
export interface Page<Item> {
  readonly pagination: PageInfo
  readonly result: readonly Item[]
}

/** Whose payments a list holds: all of a wallet address, or those of one client instance. */
export interface ListScope {
  readonly walletAddress: string
  readonly client?: string
}

/** A page query that has been understood. */
export type PageRequest = Pick<ListQuery, 'cursor' | 'forward' | 'limit'>

type Place = NonNullable<ListQuery['cursor']>

const limitDefault = 20
const limitMax = 100
const cursorLengthMax = 256

/** The name of a list: what `Stored.lists` and `Store.list` call it. */
export function listName(namespace: string, { walletAddress, client }: ListScope): string {
  const all = `${namespace} ${walletAddress}`
  return client === undefined ? all : `${all} ${client}`
}

/** The lists that a payment of a wallet address is in: the one of all, and the one of its client instance. */
export function listsOf(
  namespace: string,
  walletAddress: string,
  client: string,
  at: Instant,
): readonly [ListEntry, ListEntry] {
  return [
    { list: listName(namespace, { walletAddress }), at },
    { list: listName(namespace, { walletAddress, client }), at },
  ]
}

export function readPageQuery({ first, last, cursor }: PageQuery): Parsed<PageRequest> {
  if (first !== undefined && last !== undefined) {
    return { path: 'last', problem: 'cannot stand beside first' }
  }
  const limit = first ?? last ?? limitDefault
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > limitMax) {
    const path = last === undefined ? 'first' : 'last'
    return { path, problem: `is no whole number from 1 to ${limitMax}` }
  }
  const page = { forward: last === undefined, limit }
  if (cursor === undefined) return { value: page }
  const place = parseCursor(cursor)
  return place === undefined
    ? { path: 'cursor', problem: 'is no cursor of a page' }
    : { value: { ...page, cursor: place } }
}

/**
 * Reads what the host asks for.
 *
 * @throws {OptionError} for a wallet address, a number or a cursor that is none.
 */
export function requireListQuery({ walletAddress, ...query }: PaymentListQuery): {
  readonly scope: ListScope
  readonly page: PageRequest
} {
  const canonical = canonicalUrl(walletAddress)
  if (canonical === undefined) throw invalidOption('walletAddress', 'is no canonical https URL')
  const page = readPageQuery(query)
  if (!('value' in page)) throw invalidOption(page.path, page.problem)
  return { scope: { walletAddress: canonical }, page: page.value }
}

/**
 * Reads a page of a list. A cursor is no more than a place in the order of creation: that of another list
 * shows nothing of it. Beside the page itself it costs a second query where a cursor is given.
 */
export async function readPage<Item extends Stored>(
  store: Store,
  list: { readonly kind: RecordKind; readonly list: string },
  request: PageRequest,
): Promise<Page<Item>> {
  const { forward, cursor } = request
  const { records, more } = await store.list({ ...list, ...request })
  const [start, end] = [records.at(0), records.at(-1)].map((record) => placeIn(record, list.list))
  const nearest = forward ? start : end
  // Of an empty page nothing lies beyond the cursor: whatever there is lies on its other side.
  const from = nearest === undefined ? {} : { cursor: nearest }
  const behind =
    cursor !== undefined &&
    (await store.list({ ...list, ...from, forward: !forward, limit: 1 })).records.length > 0
  return {
    pagination: {
      ...(start === undefined ? {} : { startCursor: formatCursor(start) }),
      ...(end === undefined ? {} : { endCursor: formatCursor(end) }),
      hasNextPage: forward ? more : behind,
      hasPreviousPage: forward ? behind : more,
    },
    result: records as readonly Item[],
  }
}

function placeIn(record: Stored | undefined, list: string): Place | undefined {
  const entry = record?.lists?.find(({ list: wanted }) => wanted === list)
  return record && entry && { at: entry.at, id: record.id }
}

function formatCursor({ at, id }: Place): string {
  return toBase64url(encodeUtf8(`${at} ${id}`))
}

function parseCursor(text: string): Place | undefined {
  const bytes = text.length > cursorLengthMax ? undefined : fromBase64url(text)
  const parts = /^(0|[1-9]\d{0,15}) ([A-Za-z0-9._-]{1,128})$/.exec(
    (bytes && decodeUtf8(bytes)) ?? '',
  )
  const [, at, id] = parts ?? []
  if (id === undefined || !Number.isSafeInteger(Number(at))) return undefined
  return { at: Number(at), id }
}
