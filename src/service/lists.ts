import { ok } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { ListEntry, Stored } from '../core/stored.js'
import {
  type ListQuery,
  type RecordKind,
  type RecordPage,
  type Store,
  storeBounds,
} from '../ports/store.js'
import type { Parsed } from '../protocol/schema.js'
import { decodeUtf8, encodeUtf8, fromBase64url, toBase64url } from '../util/bytes.js'
import type { ServiceContext } from './context.js'

/** The requested page of a list: with `first` or `last`, or without both the first 20 after the cursor. */
export interface PageQuery {
  /** The number of items after the cursor, or from the start of the list: 1 to 100. */
  readonly first?: number
  /** The number of items before the cursor, or up to the end of the list: 1 to 100. */
  readonly last?: number
  /** `startCursor` or `endCursor` of another page. */
  readonly cursor?: string | undefined
}

/** A page of a list, oldest item first in both directions. */
export interface ListPage<Item> {
  /**
   * The position of the page in its list. An empty page has no cursors.
   *
   * @see Open Payments OpenAPI, schema `page-info`
   */
  readonly pagination: {
    readonly startCursor?: string
    readonly endCursor?: string
    readonly hasNextPage: boolean
    readonly hasPreviousPage: boolean
  }
  readonly result: readonly Item[]
}

/** The payments in a list: all of a wallet address, or only the payments that one client created. */
export interface ListScope {
  readonly walletAddress: string
  readonly client?: string
  readonly grantId?: undefined
}

/** The outgoing payments that were created under one grant. */
export interface GrantScope {
  readonly grantId: string
}

/** A validated page query. */
export type PageRequest = Pick<ListQuery, 'cursor' | 'forward' | 'limit'>

/** A list of records of one kind. */
type RecordList = Pick<ListQuery, 'kind' | 'list'>

type Place = NonNullable<ListQuery['cursor']>

const limitDefault = 20
const limitMax = storeBounds.listLimit
const cursorLengthMax = 256

/** Returns the name of a list, as used by `Stored.lists` and `Store.list`. */
export function listName(namespace: string, { walletAddress, client }: ListScope): string {
  const all = `${namespace} ${walletAddress}`
  return client === undefined ? all : `${all} ${client}`
}

/** The lists that contain a payment: all payments of the wallet address, and those that its client created there. */
export function listsOf(
  namespace: string,
  walletAddress: string,
  client: string | undefined,
  at: Instant,
): readonly ListEntry[] {
  const ofAll = { list: listName(namespace, { walletAddress }), at }
  if (client === undefined) return [ofAll]
  return [ofAll, { list: listName(namespace, { walletAddress, client }), at }]
}

/** The lists that contain an outgoing payment: those of `listsOf`, and the payments under its grant. */
export function paymentListsOf(
  namespace: string,
  payment: { readonly walletAddress: string; readonly client: string; readonly grantId: string },
  at: Instant,
): readonly ListEntry[] {
  const { walletAddress, client } = payment
  const underGrant = { list: grantListName(namespace, payment), at }
  return [...listsOf(namespace, walletAddress, client, at), underGrant]
}

/** Returns the name of the list of the payments that were created under a grant. */
export function grantListName(namespace: string, { grantId }: GrantScope): string {
  return `${namespace} grant ${grantId}`
}

export function readPageQuery({ first, last, cursor }: PageQuery): Parsed<PageRequest> {
  if (first !== undefined && last !== undefined) {
    return { ok: false, path: 'last', problem: 'must not be used together with first' }
  }
  const limit = first ?? last ?? limitDefault
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > limitMax) {
    const path = last === undefined ? 'first' : 'last'
    return { ok: false, path, problem: `must be an integer from 1 to ${limitMax}` }
  }
  const page = { forward: last === undefined, limit }
  if (cursor === undefined) return ok(page)
  const place = parseCursor(cursor)
  return place === undefined
    ? { ok: false, path: 'cursor', problem: 'is not a valid cursor' }
    : ok({ ...page, cursor: place })
}

/** Which items of a list belong to the page. */
type Keep<Item> = (item: Item) => boolean

/** The source of pages: a list, a part of a list, or several lists. */
export interface Source<Item extends Stored> {
  /** The name of the list, or of all of them. */
  readonly list: string
  /** Resolves to the records that belong to a page, and whether more of them follow. */
  read(request: PageRequest): Promise<ItemPage<Item>>
}

interface ItemPage<Item extends Stored> extends RecordPage {
  readonly records: readonly Item[]
}

/**
 * Returns a list as a source. With `keep`, as many pages of 100 records are read as are needed to find the items that
 * are kept.
 */
export function sourceOf<Item extends Stored>(
  store: Store,
  list: RecordList,
  keep?: Keep<Item>,
): Source<Item> {
  const read = async (request: PageRequest) =>
    (await store.list({ ...list, ...request })) as ItemPage<Item>
  const all = { list: list.list, read }
  return keep === undefined ? all : { ...all, read: (request) => readKept(all, request, keep) }
}

/**
 * Returns two lists of the same name as one, in which each id occurs once. A record of the first may be removed once
 * the second has one with its id, in the same place of the list.
 */
export function mergedSource<First extends Stored, Second extends Stored>(
  first: Source<First>,
  second: Source<Second>,
): Source<First | Second> {
  return {
    list: first.list,
    async read(request) {
      // The lists are read one after the other: an item whose record in the first is removed during the call is found
      // in the second.
      const one = await first.read(request)
      const other = await second.read(request)
      const all: readonly (First | Second)[] = [...one.records, ...other.records]
      const found = [...new Map(all.map((each) => [each.id, each])).values()]
      const sorted = found.toSorted(inOrderOf(first.list))
      const { forward, limit } = request
      return {
        records: forward ? sorted.slice(0, limit) : sorted.slice(-limit),
        more: sorted.length > limit || one.more || other.more,
      }
    },
  }
}

/** Compares records as a list orders them. */
function inOrderOf(list: string) {
  return (one: Stored, other: Stored) => {
    const [left, right] = [placeIn(one, list), placeIn(other, list)]
    if (left === undefined || right === undefined) return 0
    return left.at - right.at || (left.id < right.id ? -1 : 1)
  }
}

async function readKept<Item extends Stored>(
  { list, read }: Source<Item>,
  request: PageRequest,
  keep: Keep<Item>,
): Promise<ItemPage<Item>> {
  const { forward, limit } = request
  const kept: Item[] = []
  const page = (more: boolean) => ({ records: forward ? kept : kept.reverse(), more })
  let next: PageRequest = { ...request, limit: limitMax }
  for (;;) {
    const { records, more } = await read(next)
    const found = forward ? records : records.toReversed()
    for (const record of found) {
      if (!keep(record)) continue
      if (kept.length === limit) return page(true)
      kept.push(record)
    }
    const cursor = more ? placeIn(found.at(-1), list) : undefined
    if (cursor === undefined) return page(false)
    next = { ...next, cursor }
  }
}

/**
 * Reads a page. A cursor is only a position in the order of creation, so a cursor of another list
 * reveals none of its items. A page with a cursor takes a second query.
 */
export async function readPage<Item extends Stored>(
  { list, read }: Source<Item>,
  request: PageRequest,
): Promise<ListPage<Item>> {
  const { forward, cursor } = request
  const { records, more } = await read(request)
  const [start, end] = [records.at(0), records.at(-1)].map((record) => placeIn(record, list))
  const nearest = forward ? start : end
  // If the page is empty, all items lie on the other side of the query's cursor.
  const from = nearest !== undefined && { cursor: nearest }
  const behind =
    cursor !== undefined &&
    (await read({ ...from, forward: !forward, limit: 1 })).records.length > 0
  return {
    pagination: {
      ...(start !== undefined && { startCursor: formatCursor(start) }),
      ...(end !== undefined && { endCursor: formatCursor(end) }),
      hasNextPage: forward ? more : behind,
      hasPreviousPage: forward ? behind : more,
    },
    result: records,
  }
}

/**
 * Returns all items of a source, oldest first. Each iteration starts from the beginning. It reads the next page of 100
 * records when the caller has taken the items of the page before, and holds no other records.
 */
export function iterateList<Item extends Stored, View>(
  findSource: () => Promise<Source<Item>>,
  view: (item: Item) => View,
  keep: Keep<Item> = () => true,
): AsyncIterable<View> {
  return {
    async *[Symbol.asyncIterator]() {
      const { list, read } = await findSource()
      let page: PageRequest | undefined = { forward: true, limit: limitMax }
      while (page !== undefined) {
        const { records, more }: ItemPage<Item> = await read(page)
        for (const record of records) if (keep(record)) yield view(record)
        const cursor = more ? placeIn(records.at(-1), list) : undefined
        page = cursor && { ...page, cursor }
      }
    },
  }
}

/** Creates the readers of the lists of payments: pages, and all payments. */
export function createPaymentLists<Payment extends Stored>(
  { store, namespace }: Pick<ServiceContext, 'store' | 'namespace'>,
  kind: RecordKind,
) {
  async function listOf(scope: ListScope | GrantScope): Promise<Source<Payment>> {
    const list =
      scope.grantId === undefined
        ? listName(await namespace(), scope)
        : grantListName(await namespace(), scope)
    return sourceOf(store, { kind, list })
  }
  return {
    list: async (scope: ListScope | GrantScope, page: PageRequest) =>
      readPage(await listOf(scope), page),
    iterate: <View>(scope: ListScope | GrantScope, seen: (payment: Payment) => View) =>
      iterateList(() => listOf(scope), seen),
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
