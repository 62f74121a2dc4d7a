import {
  boolean,
  integer,
  numeric,
  pgTable,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core'

export const accounts = pgTable('accounts', {
  url: text().primaryKey(), // the wallet address
  owner: text().notNull(),
  publicName: text('public_name').notNull(),
  assetCode: text('asset_code').notNull(),
  assetScale: integer('asset_scale').notNull(),
})

const amount = () => numeric({ precision: 20, scale: 0, mode: 'bigint' }).notNull()
const account = () =>
  text()
    .notNull()
    .references(() => accounts.url)

/** Double entry: the rows of a transfer sum to zero. */
export const entries = pgTable(
  'entries',
  { transferId: text('transfer_id').notNull(), account: account(), amount: amount() },
  (table) => [primaryKey({ columns: [table.transferId, table.account] })],
)

/** What a payment may still debit, or the mark that it has ended and holds nothing. */
export const holds = pgTable('holds', {
  paymentId: text('payment_id').primaryKey(),
  account: account(),
  amount: amount(),
  released: boolean().notNull().default(false),
})
