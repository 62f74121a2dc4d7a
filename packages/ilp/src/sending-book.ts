import type { OutgoingPaymentView } from 'open-payments-server'
import type { Settlement } from 'open-payments-server/attempts'
import type { Sql, SqlDatabase } from './sql-book.js'

/** Where all packets of a payment go. */
export interface Route {
  /** ILP address of the peer. */
  readonly peer: string
  /** ILP address of the receiver. */
  readonly ilpAddress: string
  /** Base64url. */
  readonly sharedSecret: string
}

/** What the record of a payment that has ended says of the payer's account. */
export interface EndedPayment
  extends Pick<
    OutgoingPaymentView,
    'debitAmount' | 'receiveAmount' | 'sentAmount' | 'deliveredAmount'
  > {
  /** The part of `sentAmount` that is in doubt. Absent without one, and once it is decided. */
  readonly inDoubt?: OutgoingPaymentView['inDoubt']
  /** What the payer's account was debited more since then, negative for less: an operator has corrected it. */
  readonly corrected?: string
}

/** What is recorded of a payment that is sent. It is plain JSON. */
export interface Sending {
  /** Absent before the receiver could be read. */
  readonly route?: Route
  /**
   * An attempt for each packet whose reference is the condition. Amounts are what arrives, in the receiver's asset.
   * Once it is stopped, whoever has the record ends the payment with its totals, and sends nothing.
   */
  readonly settlement: Settlement
  /** The amount of each of these packets in the asset of the peer, by its condition. */
  readonly packets: Readonly<Record<string, string>>
  /** The sum of the fulfilled packets that are no longer among these, in the asset of the peer. */
  readonly sent: string
  /** What the receiver had received before the first packet, in its asset. Absent before it could be read. */
  readonly before?: string
  /** What a receiver behind a peer that closes no packets had received when the payment ended, if it could be read. */
  readonly received?: string
  /** Present while nothing gets through and nothing is decided: since when, and how often it was tried. */
  readonly waiting?: { readonly since: number; readonly tries: number }
  /** Present once the payment has ended, while its payer may have to be told: what its record debits. */
  readonly ended?: EndedPayment
}

/**
 * Records each packet of a payment before it is sent, so that the record survives a process that ends between two
 * packets. Each payment has one writer at a time.
 */
export interface SendingBook {
  /** Makes `writer` the only writer of a payment, and returns its record. */
  take(paymentId: string, writer: string): Promise<Sending | undefined>
  /**
   * Resolves to false if another writer has taken over the payment: nothing is written.
   *
   * @param isListed whether an operator should know about the payment.
   */
  write(paymentId: string, writer: string, sending: Sending, isListed: boolean): Promise<boolean>
  /** Removes a payment that is over, unless another writer has taken it over. */
  forget(paymentId: string, writer: string): Promise<void>
  /** Returns at most 100 payments that are listed, in the order of their ids. */
  listed(
    after?: string,
  ): Promise<readonly { readonly paymentId: string; readonly sending: Sending }[]>
}

export const listedMax = 100

/**
 * A book in the memory of this process, for tests and demonstrations: a process that ends forgets its packets.
 *
 * @example
 * ```ts
 * import { memorySendingBook } from 'open-payments-ilp'
 *
 * console.log(await memorySendingBook().listed()) // []
 * ```
 */
export function memorySendingBook(): SendingBook {
  interface Page {
    readonly writer: string
    readonly sending?: Sending
    readonly isListed: boolean
  }
  const pages = new Map<string, Page>()
  return {
    async take(paymentId, writer) {
      const page = { isListed: false, ...pages.get(paymentId), writer }
      pages.set(paymentId, page)
      return page.sending
    },
    async write(paymentId, writer, sending, isListed) {
      if (pages.get(paymentId)?.writer !== writer) return false
      pages.set(paymentId, { writer, sending, isListed })
      return true
    },
    async forget(paymentId, writer) {
      if (pages.get(paymentId)?.writer === writer) pages.delete(paymentId)
    },
    async listed(after = '') {
      return [...pages]
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .flatMap(([paymentId, { sending, isListed }]) =>
          isListed && sending !== undefined && paymentId > after ? [{ paymentId, sending }] : [],
        )
        .slice(0, listedMax)
    },
  }
}

/**
 * A book in the table `ilp_sendings` of the wallet's database, which `createPacketTables` creates.
 *
 * @example
 * ```ts
 * import { createPacketTables, type SqlDatabase, sqlSendingBook } from 'open-payments-ilp'
 *
 * async function openBook(database: SqlDatabase) {
 *   await createPacketTables(database)
 *   return sqlSendingBook(database)
 * }
 * ```
 */
export function sqlSendingBook({ sql, transaction }: SqlDatabase): SendingBook {
  const writerOf = async (inside: Sql, paymentId: string) =>
    (await inside('SELECT writer FROM ilp_sendings WHERE payment = ?', paymentId))[0]?.['writer']
  const own = 'WHERE payment = ? AND writer = ?'

  return {
    take: (paymentId, writer) =>
      transaction(async (inside) => {
        await inside('UPDATE ilp_sendings SET writer = ? WHERE payment = ?', writer, paymentId)
        const [row] = await inside('SELECT record FROM ilp_sendings WHERE payment = ?', paymentId)
        if (row === undefined) {
          await inside("INSERT INTO ilp_sendings VALUES (?, ?, 0, '')", paymentId, writer)
        }
        const text = `${row?.['record'] ?? ''}`
        return text === '' ? undefined : JSON.parse(text)
      }),
    write: (paymentId, writer, sending, isListed) =>
      transaction(async (inside) => {
        const values = [isListed ? 1 : 0, JSON.stringify(sending), paymentId, writer]
        await inside(`UPDATE ilp_sendings SET doubtful = ?, record = ? ${own}`, ...values)
        return (await writerOf(inside, paymentId)) === writer
      }),
    async forget(paymentId, writer) {
      await sql(`DELETE FROM ilp_sendings ${own}`, paymentId, writer)
    },
    async listed(after = '') {
      const rows = await sql(
        `SELECT payment, record FROM ilp_sendings WHERE doubtful = 1 AND payment > ?
          ORDER BY payment LIMIT ${listedMax}`,
        after,
      )
      return rows.map((row) => ({
        paymentId: `${row['payment']}`,
        sending: JSON.parse(`${row['record']}`),
      }))
    },
  }
}
