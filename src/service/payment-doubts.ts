import type { Amount } from '../core/amount.js'
import type { Instant } from '../core/instant.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import { retained, type Stored } from '../core/stored.js'
import { storeBounds } from '../ports/store.js'
import type { ServiceContext } from './context.js'
import { type ListPage, type PageRequest, readPage, type Source, sourceOf } from './lists.js'
import { loadRecords, nameOf, type Read } from './load.js'
import type { Change } from './write/write.js'

/**
 * The mark of a payment in doubt, by which the payments in doubt are found: a record has three lists at most, and a
 * payment is in three already. It is in a list while its payment is in doubt, and removed afterwards.
 */
export interface DoubtRecord extends Stored {
  readonly paymentId: string
  readonly amount: Amount
  readonly since: Instant
}

function doubtListName(namespace: string): string {
  return `${namespace} in doubt`
}

export function doubtKey(namespace: string, paymentId: string) {
  return { kind: 'doubt', id: `${namespace}${paymentId}.doubt` } as const
}

/** Returns the change of the mark that follows from the next version of its payment, if there is one. */
export function doubtChanges(
  namespace: string,
  { id: paymentId, inDoubt, debitAmount, commandId, updatedAt: now }: OutgoingPayment,
  read: Read,
): readonly Change[] {
  const key = doubtKey(namespace, paymentId)
  const before = read<DoubtRecord>(key)
  const base = { id: key.id, version: (before?.version ?? 0) + 1, commandId, paymentId }
  if (inDoubt === undefined) {
    if (before?.lists === undefined) return []
    const { amount, since } = before
    return [{ kind: 'doubt', next: { ...base, amount, since, ...retained(now) } as DoubtRecord }]
  }
  const { amount: value, since } = inDoubt
  const next: DoubtRecord = {
    ...base,
    amount: { ...debitAmount, value },
    since,
    lists: [{ list: doubtListName(namespace), at: since }],
  }
  const isSame = before?.lists !== undefined && before.since === since
  return isSame && before.amount.value === value ? [] : [{ kind: 'doubt', next }]
}

/** What is in doubt at a server. */
export interface DoubtSummary {
  /** The number of payments in doubt. */
  readonly payments: number
  /** The age of the oldest doubt; 0 if there is none. */
  readonly oldestAgeMs: number
  /** The sum in doubt of each asset. A sum can exceed 64 bits. */
  readonly amounts: readonly Amount[]
}

export type Doubts = ReturnType<typeof createDoubts>

/** Creates the readers of the payments in doubt, oldest doubt first. */
export function createDoubts(context: ServiceContext) {
  const { store, namespace, clock } = context

  async function source(): Promise<Source<DoubtRecord>> {
    return sourceOf<DoubtRecord>(store, {
      kind: 'doubt',
      list: doubtListName(await namespace()),
    })
  }

  /** Two loads at most: a page has 100 marks, and a load 60 keys. */
  async function paymentsOf(marks: readonly DoubtRecord[]): Promise<readonly OutgoingPayment[]> {
    const payments: OutgoingPayment[] = []
    for (let i = 0; i < marks.length; i += storeBounds.loadKeys) {
      const keys = marks
        .slice(i, i + storeBounds.loadKeys)
        .map(({ paymentId: id }) => ({ kind: 'outgoing-payment', id }) as const)
      const records = await loadRecords(store, keys)
      for (const key of keys) {
        const payment = records.get(nameOf(key)) as OutgoingPayment | undefined
        // It may have been decided since its mark was read.
        if (payment?.inDoubt !== undefined) payments.push(payment)
      }
    }
    return payments
  }

  async function list(page: PageRequest): Promise<ListPage<OutgoingPayment>> {
    const { pagination, result } = await readPage(await source(), page)
    return { pagination, result: await paymentsOf(result) }
  }

  /** Reads marks in pages of 100, at most `limit`. */
  async function* pages(limit = Number.POSITIVE_INFINITY): AsyncGenerator<readonly DoubtRecord[]> {
    const { read } = await source()
    let left = limit
    let page: PageRequest | undefined = { forward: true, limit: storeBounds.listLimit }
    while (page !== undefined && left > 0) {
      const { records, more } = await read({ ...page, limit: Math.min(page.limit, left) })
      yield records
      left -= records.length
      const last = records.at(-1)
      page = more && last ? { ...page, cursor: { at: last.since, id: last.id } } : undefined
    }
  }

  return {
    list,
    async *iterate<View>(seen: (payment: OutgoingPayment) => View): AsyncGenerator<View> {
      for await (const marks of pages()) {
        for (const payment of await paymentsOf(marks)) yield seen(payment)
      }
    },
    /** Reads the marks of at most `limit` payments. */
    async summary(limit: number): Promise<DoubtSummary> {
      const sums = new Map<string, Amount>()
      let payments = 0
      let oldest = clock.now()
      for await (const marks of pages(limit)) {
        payments += marks.length
        for (const { amount, since } of marks) {
          oldest = Math.min(oldest, since)
          const asset = `${amount.assetCode} ${amount.assetScale}`
          const value = BigInt(sums.get(asset)?.value ?? 0) + BigInt(amount.value)
          sums.set(asset, { ...amount, value: value.toString() })
        }
      }
      return { payments, oldestAgeMs: clock.now() - oldest, amounts: [...sums.values()] }
    },
  }
}
