import type { PostgresClient } from 'open-payments-server/postgres'
import { openTable } from './own-table.js'

/** The progress of a payment that is sent over Interledger. */
export interface Progress {
  /** What was sent and fulfilled, in the payer's asset. */
  readonly sent: bigint
  /** What was delivered, in the receiver's asset. */
  readonly delivered: bigint
  /** The packets whose outcome is unknown. */
  readonly pending: readonly PendingPacket[]
  /** What the receiver had received before the first packet, in its asset. */
  readonly receivedBefore?: bigint
}

export interface PendingPacket {
  /** The bytes of the ILP Prepare, base64. */
  readonly packet: string
  /** The shared secret of the receiver, base64url, which reads the reply. */
  readonly sharedSecret: string
}

/**
 * Records each packet before it is sent, so that the record survives a process that ends between two packets. Each
 * payment has one writer at a time.
 */
export interface SendingBook {
  /** Makes `writer` the only writer of a payment, and returns its progress. */
  take(paymentId: string, writer: string): Promise<Progress>
  /** Resolves to false if another writer has taken over the payment: nothing is written. */
  write(paymentId: string, writer: string, progress: Progress): Promise<boolean>
  /** Removes a payment that is over, unless another writer has taken it over. */
  forget(paymentId: string, writer: string): Promise<void>
}

const nothing: Progress = { sent: 0n, delivered: 0n, pending: [] }

/** A book in the memory of this process. */
export function memorySendingBook(): SendingBook {
  const pages = new Map<string, { readonly writer: string; readonly progress: Progress }>()
  return {
    async take(paymentId, writer) {
      const progress = pages.get(paymentId)?.progress ?? nothing
      pages.set(paymentId, { writer, progress })
      return progress
    },
    async write(paymentId, writer, progress) {
      if (pages.get(paymentId)?.writer !== writer) return false
      pages.set(paymentId, { writer, progress })
      return true
    },
    async forget(paymentId, writer) {
      if (pages.get(paymentId)?.writer === writer) pages.delete(paymentId)
    },
  }
}

/** A book in a table of the wallet's own, in the same database as the library's records. */
export async function postgresSendingBook(
  database: PostgresClient,
  wallet: string,
): Promise<SendingBook> {
  const query = await openTable(
    database,
    `wallet_sendings (
      wallet text NOT NULL,
      payment text NOT NULL,
      writer text NOT NULL,
      sent numeric NOT NULL,
      delivered numeric NOT NULL,
      pending jsonb NOT NULL,
      received_before numeric,
      PRIMARY KEY (wallet, payment)
    )`,
  )

  return {
    async take(paymentId, writer) {
      const { rows } = await query(
        `INSERT INTO wallet_sendings VALUES ($1, $2, $3, 0, 0, '[]')
          ON CONFLICT (wallet, payment) DO UPDATE SET writer = excluded.writer
          RETURNING sent::text, delivered::text, pending::text, received_before::text`,
        [wallet, paymentId, writer],
      )
      const { sent, delivered, pending, received_before: before } = rows[0] ?? {}
      return {
        sent: BigInt(sent),
        delivered: BigInt(delivered),
        pending: JSON.parse(pending),
        ...(before !== null && { receivedBefore: BigInt(before) }),
      }
    },
    async write(paymentId, writer, { sent, delivered, pending, receivedBefore }) {
      const { rows } = await query(
        `UPDATE wallet_sendings SET sent = $4, delivered = $5, pending = $6, received_before = $7
          WHERE wallet = $1 AND payment = $2 AND writer = $3 RETURNING payment`,
        [
          wallet,
          paymentId,
          writer,
          `${sent}`,
          `${delivered}`,
          JSON.stringify(pending),
          receivedBefore === undefined ? null : `${receivedBefore}`,
        ],
      )
      return rows.length === 1
    },
    async forget(paymentId, writer) {
      await query(
        'DELETE FROM wallet_sendings WHERE wallet = $1 AND payment = $2 AND writer = $3',
        [wallet, paymentId, writer],
      )
    },
  }
}
