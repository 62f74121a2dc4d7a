import type { DeliveredEvent, EventHandler } from 'open-payments-server'
import type { Pool } from 'pg'

/** The host's own tables, in any database. */
export const reportTables = `
  CREATE TABLE IF NOT EXISTS report_payments (
    direction text NOT NULL,
    payment_id text NOT NULL,
    account text NOT NULL,
    client text NOT NULL,
    status text NOT NULL,
    value numeric(20, 0) NOT NULL,
    asset_code text NOT NULL,
    asset_scale integer NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (direction, payment_id)
  );
  CREATE INDEX IF NOT EXISTS report_payments_account ON report_payments (account, updated_at);
  CREATE TABLE IF NOT EXISTS report_events (id text PRIMARY KEY, at timestamptz NOT NULL);
`

/** Returns a handler of events that keeps a row for each payment. */
export function reportFeeder(pool: Pool): EventHandler {
  return async (event) => {
    const row = rowOf(event)
    if (row === undefined) return
    const { direction, id, total } = row
    const { value, assetCode, assetScale } = total
    const [, status] = event.type.split('.')
    const { walletAddress, client } = row
    await pool.query(feed, [
      ...[event.id, new Date(event.at), direction, id, walletAddress, client, status],
      ...[value, assetCode, assetScale],
    ])
  }
}

/** One statement, so that an event that is delivered again changes nothing. */
const feed = `WITH first AS (
    INSERT INTO report_events (id, at) VALUES ($1, $2::timestamptz)
      ON CONFLICT DO NOTHING RETURNING at
  )
  INSERT INTO report_payments
    SELECT $3, $4, $5, $6, $7, $8::numeric, $9, $10::integer, first.at FROM first
    ON CONFLICT (direction, payment_id) DO UPDATE
      SET status = EXCLUDED.status, value = EXCLUDED.value,
        updated_at = EXCLUDED.updated_at`

/** The totals of an event include those of the events before it. */
function rowOf(event: DeliveredEvent) {
  switch (event.type) {
    case 'incoming-payment.created':
    case 'incoming-payment.received':
    case 'incoming-payment.completed':
    case 'incoming-payment.expired': {
      const { incomingPaymentId: id, receivedAmount: total } = event
      return { ...event, direction: 'in', id, total }
    }
    case 'outgoing-payment.created':
    case 'outgoing-payment.begun':
    case 'outgoing-payment.sent':
    case 'outgoing-payment.completed':
    case 'outgoing-payment.failed': {
      const { outgoingPaymentId: id, sentAmount: total } = event
      return { ...event, direction: 'out', id, total }
    }
    default:
      return undefined // grants and quotes
  }
}
