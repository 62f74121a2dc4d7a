import { ok } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import { isUnderGrant, type Requester } from '../core/outgoing-payment/authority.js'
import type { ListEntry, Stored } from '../core/stored.js'
import { type ListQuery, type RecordPage, type Store, storeBounds } from '../ports/store.js'
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
   * The position of the page in its list. A page that selects items of a list, such as grants by their status, may
   * have fewer items than asked for, or none, although more follow: one call reads a limited part of the list. Go on
   * from its cursor for as long as `hasNextPage`, or `hasPreviousPage`, says so. An empty page without more has no
   * cursors.
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

export interface AddressScope {
  readonly walletAddress: string
  readonly grantId?: undefined
}

export interface ClientScope {
  readonly walletAddress: string
  readonly client: string
}

/** The outgoing payments that were created under one grant. */
export interface GrantScope {
  readonly grantId: string
}

/** The outgoing payments of which a part is in doubt. */
export interface DoubtScope {
  readonly inDoubt: true
}

export type PageRequest = Pick<ListQuery, 'cursor' | 'forward' | 'limit'>

type RecordList = Pick<ListQuery, 'kind' | 'list'>

type Place = NonNullable<ListQuery['cursor']>

const limitDefault = 20
/** How many times one page reads a list to find the items that are kept, so that no call reads without a bound. */
const stepsMax = 2
const limitMax = storeBounds.listLimit
const cursorLengthMax = 256

/** Returns the name of the list of the payments of a wallet address that clients see with `list-all`. */
export function sharedListName(namespace: string, { walletAddress }: AddressScope): string {
  return `${namespace} ${walletAddress}`
}

export function clientListName(namespace: string, { walletAddress, client }: ClientScope): string {
  return `${namespace} ${walletAddress} ${client}`
}

/** Returns the name of the list of the payments that the owner ordered at a wallet address: no client sees them. */
export function ownerListName(namespace: string, { walletAddress }: AddressScope): string {
  // The name of every other list has a space here. As in the shared list, the views for reports take the account from
  // the tenth character on.
  return `${namespace}!${walletAddress}`
}

/** The lists that contain an incoming payment: the shared one and, unless the host created it, that of its client. */
export function listsOf(
  namespace: string,
  walletAddress: string,
  client: string | undefined,
  at: Instant,
): readonly ListEntry[] {
  const shared = { list: sharedListName(namespace, { walletAddress }), at }
  if (client === undefined) return [shared]
  return [shared, { list: clientListName(namespace, { walletAddress, client }), at }]
}

/**
 * The lists that contain an outgoing payment: the shared one and those of its client and grant, or only the owner's.
 */
export function paymentListsOf(
  namespace: string,
  payment: { readonly walletAddress: string } & Requester,
  at: Instant,
): readonly ListEntry[] {
  if (!isUnderGrant(payment)) return [{ list: ownerListName(namespace, payment), at }]
  const { walletAddress, client, grantId } = payment
  const underGrant = { list: grantListName(namespace, { grantId }), at }
  return [...listsOf(namespace, walletAddress, client, at), underGrant]
}

/** Returns the name of the list of the payments that were created under a grant. */
export function grantListName(namespace: string, { grantId }: GrantScope): string {
  return `${namespace} grant ${grantId}`
}

/** Returns the name of a list of the payments that wait for their owner: of a wallet address, or under a grant. */
export function waitingListName(namespace: string, scope: AddressScope | GrantScope): string {
  const { grantId } = scope
  return `${namespace} waiting ${grantId === undefined ? scope.walletAddress : `grant ${grantId}`}`
}

/** The lists that contain a payment while it waits for its owner. */
export function waitingListsOf(
  namespace: string,
  payment: { readonly walletAddress: string } & Requester,
  at: Instant,
): readonly ListEntry[] {
  const { walletAddress } = payment
  const ofAccount = { list: waitingListName(namespace, { walletAddress }), at }
  if (!isUnderGrant(payment)) return [ofAccount]
  const { grantId } = payment
  return [ofAccount, { list: waitingListName(namespace, { grantId }), at }]
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
  readonly lists: readonly string[]
  /** Resolves to the records that belong to a page, and whether more of them may follow. */
  read(request: PageRequest, steps?: number): Promise<ItemPage<Item>>
}

interface ItemPage<Item extends Stored> extends RecordPage {
  readonly records: readonly Item[]
  /** How far the list was read, if that is further than the records. */
  readonly reached?: Place
}

/** Returns a list as a source. With `keep`, a page looks at no more than `stepsMax` times 100 records. */
export function sourceOf<Item extends Stored>(
  store: Store,
  list: RecordList,
  keep?: Keep<Item>,
): Source<Item> {
  const read = async (request: PageRequest) =>
    (await store.list({ ...list, ...request })) as ItemPage<Item>
  const all = { lists: [list.list], read }
  if (keep === undefined) return all
  return { ...all, read: (request, steps = stepsMax) => readKept(all, request, keep, steps) }
}

/**
 * Returns two lists as one, in which each id occurs once. A record of the first may be removed once the second has one
 * with its id, in the same place of the list.
 */
export function mergedSource<First extends Stored, Second extends Stored>(
  first: Source<First>,
  second: Source<Second>,
): Source<First | Second> {
  const lists = [...new Set([...first.lists, ...second.lists])]
  return {
    lists,
    async read(request, steps) {
      // The lists are read one after the other: an item whose record in the first is removed during the call is found
      // in the second.
      const one = await first.read(request, steps)
      const other = await second.read(request, steps)
      const all: readonly (First | Second)[] = [...one.records, ...other.records]
      const found = [...new Map(all.map((each) => [each.id, each])).values()]
      const order = orderOf(request)
      // Beyond the place up to which both were read, records of one may be missing.
      const ends = [endOf(one, request, lists), endOf(other, request, lists)]
      const [reached] = ends.flatMap((place) => place ?? []).sort(order)
      const known = found
        .flatMap((record) => {
          const place = placeIn(record, lists)
          const isKnown = place && (reached === undefined || order(place, reached) <= 0)
          return isKnown ? [{ record, place }] : []
        })
        .sort((left, right) => order(left.place, right.place))
        .map(({ record }) => record)
      const records = known.slice(0, request.limit)
      const isFull = known.length > request.limit
      return {
        records: request.forward ? records : records.reverse(),
        more: isFull || one.more || other.more,
        ...(reached !== undefined && !isFull && { reached }),
      }
    },
  }
}

/** How far a page was read; `undefined` if that is to the end of its list. */
function endOf(
  { records, more, reached }: ItemPage<Stored>,
  { forward }: PageRequest,
  lists: readonly string[],
): Place | undefined {
  return more ? (reached ?? placeIn(records.at(forward ? -1 : 0), lists)) : undefined
}

/** Compares places as a list is read in a direction. */
function orderOf({ forward }: Pick<PageRequest, 'forward'>) {
  const order = (one: Place, other: Place) =>
    one.at - other.at || (one.id < other.id ? -1 : Number(one.id > other.id))
  return forward ? order : (one: Place, other: Place) => order(other, one)
}

async function readKept<Item extends Stored>(
  { lists, read }: Source<Item>,
  request: PageRequest,
  keep: Keep<Item>,
  steps: number,
): Promise<ItemPage<Item>> {
  const { forward, limit } = request
  const kept: Item[] = []
  const page = (more: boolean, reached?: Place) => ({
    records: forward ? kept : kept.reverse(),
    more,
    ...(reached !== undefined && { reached }),
  })
  let next: PageRequest = { ...request, limit: limitMax }
  for (let step = 1; ; step += 1) {
    const { records, more } = await read(next)
    const found = forward ? records : records.toReversed()
    for (const record of found) {
      if (!keep(record)) continue
      if (kept.length === limit) return page(true)
      kept.push(record)
    }
    const reached = more ? placeIn(found.at(-1), lists) : undefined
    if (reached === undefined) return page(false)
    if (kept.length === limit || step === steps) return page(true, reached)
    next = { ...next, cursor: reached }
  }
}

/**
 * Reads a page. A cursor is only a position in the order of creation, so a cursor of another list
 * reveals none of its items. A page with a cursor takes a second query.
 */
export async function readPage<Item extends Stored>(
  { lists, read }: Source<Item>,
  request: PageRequest,
): Promise<ListPage<Item>> {
  const { forward, cursor } = request
  const { records, more, reached } = await read(request)
  const [first, last] = [records.at(0), records.at(-1)].map((record) => placeIn(record, lists))
  const start = (forward ? undefined : reached) ?? first ?? reached
  const end = (forward ? reached : undefined) ?? last ?? reached
  const nearest = forward ? start : end
  // If the page is empty, all items lie on the other side of the query's cursor.
  const from = nearest !== undefined && { cursor: nearest }
  const behind = cursor && (await read({ ...from, forward: !forward, limit: 1 }, 1))
  const isBehind = behind !== undefined && (behind.records.length > 0 || behind.more)
  return {
    pagination: {
      ...(start !== undefined && { startCursor: formatCursor(start) }),
      ...(end !== undefined && { endCursor: formatCursor(end) }),
      hasNextPage: forward ? more : isBehind,
      hasPreviousPage: forward ? isBehind : more,
    },
    result: records,
  }
}

/** A store that ignores the cursor would be read for ever. */
function beyond(request: PageRequest, reached: Place): Place {
  const { cursor } = request
  if (cursor === undefined || orderOf(request)(cursor, reached) < 0) return reached
  throw new Error('the store returned a page of a list that does not follow the page before it')
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
      const { lists, read } = await findSource()
      let page: PageRequest | undefined = { forward: true, limit: limitMax }
      while (page !== undefined) {
        const found: ItemPage<Item> = await read(page)
        for (const record of found.records) if (keep(record)) yield view(record)
        const cursor = endOf(found, page, lists)
        page = cursor && { ...page, cursor: beyond(page, cursor) }
      }
    },
  }
}

/** Creates the readers of the lists of payments: pages, and all payments. */
export function createPaymentLists<Payment extends Stored>(
  { store, namespace }: Pick<ServiceContext, 'store' | 'namespace'>,
  kind: 'incoming-payment' | 'outgoing-payment',
) {
  const source = (list: string) => sourceOf<Payment>(store, { kind, list })

  async function hostsList(scope: AddressScope | GrantScope): Promise<Source<Payment>> {
    const own = await namespace()
    if (scope.grantId !== undefined) return source(grantListName(own, scope))
    const shared = source(sharedListName(own, scope))
    const isOrdered = kind === 'outgoing-payment'
    return isOrdered ? mergedSource(shared, source(ownerListName(own, scope))) : shared
  }
  return {
    /** Resolves to a page of what the host may see: all of it. */
    list: async (scope: AddressScope | GrantScope, page: PageRequest) =>
      readPage(await hostsList(scope), page),
    iterate: <View>(scope: AddressScope | GrantScope, seen: (payment: Payment) => View) =>
      iterateList(() => hostsList(scope), seen),
    /** Resolves to a page of what a client with `list-all` may see: nothing that the owner ordered. */
    listShared: async (scope: AddressScope, page: PageRequest) =>
      readPage(source(sharedListName(await namespace(), scope)), page),
    /** Resolves to a page of what a client with `list` may see: what it created. */
    listOfClient: async (scope: ClientScope, page: PageRequest) =>
      readPage(source(clientListName(await namespace(), scope)), page),
  }
}

function placeIn(record: Stored | undefined, lists: readonly string[]): Place | undefined {
  const entry = record?.lists?.find(({ list }) => lists.includes(list))
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
