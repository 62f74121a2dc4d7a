import { recordsTable } from './statements.js'
import type { Migration } from './versions.js'

/** How a database that is not PostgreSQL reads the JSON of a record. */
export interface ReportDialect {
  /** The value at a path of the record: text, or a number. */
  readonly read: (path: string) => string
  /** A value as a whole number. */
  readonly integer: (value: string) => string
  /** Whether a value of the record is true. */
  readonly isTrue: (value: string) => string
  /** The id of a payment: that of its record, without the namespace. */
  readonly paymentId: string
  /** The statements that create what a list is found by: each with these columns, of the records of these kinds. */
  readonly indexes: (values: ReportValues) => readonly string[]
  /** What the views read in the place of these values, so that the indexes are used. */
  readonly columns: (values: ReportValues) => ReportValues
  readonly createView: string
}

export interface ReportValues {
  readonly account: string
  readonly receiver: string
  readonly createdAt: string
  readonly paymentId: string
}

export const reportMigrationsTable = 'open_payments_report_migrations'

/** The lists of payments by a value, each in the order of their creation. */
export const reportLists = [
  { name: 'time', by: [] },
  { name: 'account', by: ['account'] },
  { name: 'receiver', by: ['receiver'] },
] as const

/** Returns the steps that create the views of payments, with their indexes. */
export function reportMigrations(dialect: ReportDialect): readonly Migration[] {
  const { read } = dialect
  const values: ReportValues = {
    account: read('$.walletAddress'),
    receiver: read('$.receiver'),
    createdAt: dialect.integer(read('$.createdAt')),
    paymentId: dialect.paymentId,
  }
  const statements = [...dialect.indexes(values), ...views(dialect, dialect.columns(values))]
  return [{ version: 1, name: 'reports', statements }]
}

function views(dialect: ReportDialect, listed: ReportValues): readonly string[] {
  const { read, integer, isTrue, createView } = dialect
  const text = (name: string, path: string) => `${read(path)} AS ${name}`
  const at = (name: string, path: string) => `${integer(read(path))} AS ${name}`
  const amount = (name: string, path: string) => [
    text(`${name}_value`, `${path}.value`),
    text(`${name}_asset_code`, `${path}.assetCode`),
    at(`${name}_asset_scale`, `${path}.assetScale`),
  ]
  const first = [
    'substr(id, 1, 8) AS server',
    `${listed.paymentId} AS payment_id`,
    `${listed.account} AS account`,
    text('client', '$.client'),
  ]
  const times = [`${listed.createdAt} AS created_at`, at('updated_at', '$.updatedAt')]
  const incoming = [
    ...first,
    `CASE WHEN ${isTrue(read('$.completed'))} THEN 'completed'
    WHEN ${isTrue(read('$.expiryRecorded'))} THEN 'expired' ELSE 'open' END AS state`,
    text('incoming_value', '$.incomingAmount.value'),
    text('received_value', '$.received'),
    text('asset_code', '$.asset.assetCode'),
    at('asset_scale', '$.asset.assetScale'),
    ...times,
    at('expires_at', '$.expiresAt'),
    text('cancellation_reason', '$.cancellation.reason'),
  ]
  const outgoing = [
    ...first,
    text('grant_id', '$.grantId'),
    text('item_id', '$.itemId'),
    text('quote_id', '$.quoteId'),
    `${listed.receiver} AS receiver`,
    text('state', '$.state'),
    ...amount('debit', '$.debitAmount'),
    ...amount('receive', '$.receiveAmount'),
    text('sent_value', '$.sent'),
    text('delivered_value', '$.delivered'),
    ...times,
    at('hold_until', '$.holdUntil'),
    at('ended_at', '$.endedAt'),
    text('failure', '$.failure'),
  ]
  const view = (name: string, columns: readonly string[], where: string) =>
    `${createView} ${name} AS SELECT\n  ${columns.join(',\n  ')}\nFROM ${recordsTable}\nWHERE ${where}`
  return [
    view('open_payments_incoming_payments', incoming, `kind = 'incoming-payment'`),
    view(
      'open_payments_outgoing_payments',
      outgoing,
      // The rest is not created yet, or never was.
      `kind = 'outgoing-payment' AND ${read('$.state')} NOT IN ('reserved', 'declined')`,
    ),
  ]
}
