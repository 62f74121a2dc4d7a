import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { PaymentResult } from '../core/decision.js'
import type { Stored } from '../core/stored.js'
import { type Collection, canonicalUrl, resourceId } from '../protocol/url.js'
import {
  type AddressScope,
  type GrantScope,
  type ListPage,
  type PageQuery,
  type PageRequest,
  readPageQuery,
} from '../service/lists.js'
import {
  exactly,
  having,
  integer,
  type Members,
  number,
  readInput,
  string,
  text,
} from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'

/** Checks the types in an amount. The state machines decide whether its value and asset are acceptable. */
export const amount = having({
  value: string,
  assetCode: string,
  assetScale: number,
} satisfies Members<Amount>)

/** Checks that a value is a record, as `getRecord` returns it. */
export const record = having({ id: text, version: integer } satisfies Partial<Members<Stored>>)

/** Checks that a value is the view of a payment, as returned by another call. */
export const view = having({ paymentId: text, status: text })

type OfWalletAddress = { readonly walletAddress: string }

/**
 * The reads that the host can make of payments of a kind.
 *
 * @typeParam View what most calls return of a payment.
 * @typeParam Record how it is stored.
 * @typeParam Scope what selects a list of them.
 */
export interface PaymentReader<View, Record, Scope = { readonly walletAddress: string }> {
  /** Resolves to the view of a payment, or to `undefined` if the id is unknown. */
  get(paymentId: string): Promise<View | undefined>
  /**
   * Resolves to the record of a payment as it is stored, such as for a report, or to `undefined` if the id is unknown.
   */
  getRecord(paymentId: string): Promise<Record | undefined>
  /** Returns the id in a payment's URL, or `undefined` if the URL does not belong to this server. */
  idOf(url: string): string | undefined
  /**
   * Resolves to a page of a list, oldest first: the payments of a wallet address, regardless of which client created
   * them, or the outgoing payments under a grant. Each payment that existed before the first page appears exactly once;
   * a payment that is created while you page may or may not appear.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  list(query: Scope & PageQuery): Promise<ListPage<View>>
  /**
   * Returns all payments of a list, oldest first, for a `for await` loop. The library reads them in
   * pages of 100 as the loop proceeds, and holds one page in memory. Each payment that existed when the loop
   * began appears exactly once, as it was when its page was read; a payment that is created during the loop
   * may or may not appear.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  iterate(query: Scope): AsyncIterable<View>
}

/** The part of a service of payments that reads them. */
interface ReadablePayments<Payment, Selected> {
  load(paymentId: string): Promise<Payment | undefined>
  list(selected: Selected, page: PageRequest): Promise<ListPage<Payment>>
  iterate<View>(selected: Selected, seen: (payment: Payment) => View): AsyncIterable<View>
}

/** How a query selects a list of payments: the checks of its members, and what they select. */
export interface ScopeReader<Scope, Selected = AddressScope | GrantScope> {
  readonly members: v.ObjectEntries
  /** @throws {InvalidInputError} for members that select no list. */
  read(query: Scope): Selected
}

export function paymentReader<Payment, View, Scope extends object, Selected>(
  payments: ReadablePayments<Payment, Selected>,
  seen: (payment: Payment) => View,
  baseUrl: string,
  collection: Collection,
  { members, read }: ScopeReader<Scope, Selected>,
): PaymentReader<View, Payment, Scope> {
  const queryOfPayments = exactly(members)
  const pageQueryOfPayments = exactly({ ...members, ...pageMembers })
  return {
    async get(paymentId) {
      readInput('paymentId', string, paymentId)
      const payment = await payments.load(paymentId)
      return payment && seen(payment)
    },
    async getRecord(paymentId) {
      readInput('paymentId', string, paymentId)
      return payments.load(paymentId)
    },
    idOf(url) {
      readInput('url', string, url)
      return resourceId(baseUrl, collection, url)
    },
    async list(query) {
      readInput('query', pageQueryOfPayments, query)
      const { pagination, result } = await payments.list(read(query), requirePage(query))
      return { pagination, result: result.map(seen) }
    },
    iterate(query) {
      readInput('query', queryOfPayments, query)
      return payments.iterate(read(query), seen)
    },
  }
}

export function seenResult<Payment, View, Refusal extends string>(
  result: PaymentResult<Payment, Refusal>,
  seen: (payment: Payment) => View,
): PaymentResult<View, Refusal> {
  return result.ok ? { ok: true, payment: seen(result.payment), changed: result.changed } : result
}

/** The checks of the members of `PageQuery`. */
export const pageMembers = {
  first: v.optional(integer),
  last: v.optional(integer),
  cursor: v.optional(text),
}

export const byWalletAddress: ScopeReader<OfWalletAddress> = {
  members: { walletAddress: text },
  read: scopeOf,
}

export function scopeOf({ walletAddress }: OfWalletAddress): AddressScope {
  const canonical = canonicalUrl(walletAddress)
  if (canonical !== undefined) return { walletAddress: canonical }
  throw new InvalidInputError('query.walletAddress', 'must be a valid https URL')
}

export function requirePage(query: PageQuery) {
  const page = readPageQuery(query)
  if (!page.ok) throw new InvalidInputError(`query.${page.path}`, page.problem)
  return page.value
}
