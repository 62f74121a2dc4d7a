import { randomUUID } from 'node:crypto'
import type { RafikiDatabase } from '../src/index.js'

/** The tables as the published migrations of Rafiki's two services leave them, with the columns that matter here. */
const tables = `
  CREATE TABLE grants (
    id uuid PRIMARY KEY, state varchar(255), "finalizationReason" varchar(255), "startMethod" text[],
    "continueToken" varchar(255) NOT NULL UNIQUE, "continueId" varchar(255) NOT NULL UNIQUE,
    "finishMethod" varchar(255), "finishUri" varchar(255), "clientNonce" varchar(255),
    client varchar(255), jwk jsonb, "createdAt" timestamptz DEFAULT now(),
    "lastContinuedAt" timestamptz DEFAULT now());
  CREATE TABLE interactions (
    id uuid PRIMARY KEY, ref varchar(255) NOT NULL UNIQUE, nonce varchar(255) NOT NULL,
    state varchar(255) NOT NULL, "grantId" uuid NOT NULL REFERENCES grants, "expiresIn" integer NOT NULL,
    "createdAt" timestamptz DEFAULT now());
  CREATE TABLE accesses (
    id uuid PRIMARY KEY, type varchar(255) NOT NULL, actions text[] NOT NULL, identifier varchar(255),
    limits jsonb, "grantId" uuid NOT NULL REFERENCES grants, "createdAt" timestamptz DEFAULT now());
  CREATE TABLE "accessTokens" (
    id uuid PRIMARY KEY, value varchar(255) NOT NULL UNIQUE, "managementId" uuid NOT NULL UNIQUE,
    "expiresIn" integer NOT NULL, "revokedAt" timestamptz, "grantId" uuid NOT NULL REFERENCES grants,
    "createdAt" timestamptz DEFAULT now());
  CREATE TABLE assets (id uuid PRIMARY KEY, code varchar(255) NOT NULL, scale smallint NOT NULL);
  CREATE TABLE "walletAddresses" (
    id uuid PRIMARY KEY, address varchar(255) NOT NULL, "publicName" varchar(255),
    "assetId" uuid NOT NULL REFERENCES assets, "deactivatedAt" timestamptz);
  CREATE TABLE "walletAddressKeys" (
    id uuid PRIMARY KEY, "walletAddressId" uuid NOT NULL REFERENCES "walletAddresses",
    kid varchar(255) NOT NULL, x varchar(255) NOT NULL, revoked boolean NOT NULL DEFAULT false,
    "createdAt" timestamptz DEFAULT now());
  CREATE TABLE quotes (
    id uuid PRIMARY KEY, receiver varchar(255) NOT NULL, "debitAmountValue" bigint NOT NULL,
    "receiveAmountValue" bigint NOT NULL, "receiveAmountAssetCode" varchar(255) NOT NULL,
    "receiveAmountAssetScale" integer NOT NULL, "assetId" uuid NOT NULL REFERENCES assets);
  CREATE TABLE "outgoingPaymentGrants" (id varchar(255) PRIMARY KEY);
  CREATE TABLE "outgoingPayments" (
    id uuid PRIMARY KEY REFERENCES quotes, state varchar(255) NOT NULL,
    "grantId" varchar(255) REFERENCES "outgoingPaymentGrants", "createdAt" timestamptz DEFAULT now());`

export type RafikiTables = Awaited<ReturnType<typeof rafikiTables>>

/** A grant in Rafiki. By default it is issued, with consent. */
export interface OldGrant {
  readonly client: string
  readonly createdAt: Date
  readonly access: readonly {
    readonly type: string
    readonly actions: readonly string[]
    readonly identifier?: string
    readonly limits?: object
  }[]
  readonly state?: string
  readonly finalizationReason?: string | null
  readonly interactive?: boolean
  readonly revoked?: boolean
}

/** Creates the tables of Rafiki, and functions that fill them. */
export async function rafikiTables(database: RafikiDatabase) {
  for (const statement of tables.split(';')) await database.query(statement)
  const insert = async (table: string, row: Readonly<Record<string, unknown>>) => {
    const names = Object.keys(row)
    const columns = names.map((name) => `"${name}"`).join(', ')
    const places = names.map((_, index) => `$${index + 1}`).join(', ')
    const text = `INSERT INTO "${table}" (${columns}) VALUES (${places})`
    await database.query(text, Object.values(row))
    return row
  }
  const assets = { USD: randomUUID(), EUR: randomUUID() }
  for (const [code, id] of Object.entries(assets)) await insert('assets', { id, code, scale: 2 })

  return {
    insert,
    assets,
    /** Creates a grant, and returns what its client holds. */
    async grant(given: OldGrant) {
      const { client, createdAt, access, state = 'FINALIZED', interactive = true } = given
      const { finalizationReason = 'ISSUED', revoked = false } = given
      const id = randomUUID()
      const [continueToken, continueId] = [randomUUID(), randomUUID()]
      const row = { id, client, createdAt, state, finalizationReason, continueToken, continueId }
      await insert('grants', row)
      for (const { limits, ...item } of access) {
        const json = limits === undefined ? {} : { limits: JSON.stringify(limits) }
        await insert('accesses', { id: randomUUID(), grantId: id, createdAt, ...item, ...json })
      }
      const [ref, nonce] = [randomUUID(), randomUUID()]
      const interaction = { id: randomUUID(), ref, nonce, state: 'APPROVED', expiresIn: 600 }
      if (interactive) await insert('interactions', { ...interaction, grantId: id })
      const token = randomUUID().replaceAll('-', '').slice(0, 20).toUpperCase()
      const managementId = randomUUID()
      const revokedAt = revoked ? createdAt : null
      const issued = { value: token, managementId, expiresIn: 600, revokedAt, createdAt }
      await insert('accessTokens', { id: randomUUID(), grantId: id, ...issued })
      return { id, token, managementId }
    },
    async payment(grantId: string, given: OldPayment) {
      const { value, createdAt, state = 'COMPLETED', receiver, receivedIn = 'USD' } = given
      const id = randomUUID()
      await insert('quotes', {
        id,
        receiver,
        debitAmountValue: value,
        receiveAmountValue: value,
        receiveAmountAssetCode: receivedIn,
        receiveAmountAssetScale: 2,
        assetId: assets.USD,
      })
      const known = 'INSERT INTO "outgoingPaymentGrants" VALUES ($1) ON CONFLICT DO NOTHING'
      await database.query(known, [grantId])
      await insert('outgoingPayments', { id, state, grantId, createdAt })
    },
  }
}

export interface OldPayment {
  readonly value: number
  readonly createdAt: Date
  readonly receiver: string
  readonly state?: string
  readonly receivedIn?: 'USD' | 'EUR'
}
