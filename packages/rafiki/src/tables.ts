import type { WalletAddress } from 'open-payments-server'
import type { AccessItem, Amount } from 'open-payments-server/core'

/** The part of a `pg` client or pool that is used here. Rafiki's two services have a database each. */
export interface RafikiDatabase {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Row[] }>
}

/** An issued grant that an owner consented to, with its current token. */
export interface RafikiGrant {
  readonly id: string
  /** The wallet address of the client. */
  readonly client: string
  readonly createdAt: Date
  readonly access: readonly AccessItem[]
  readonly token: string
  /** The last segment of the management URI. */
  readonly managementId: string
}

/** A payment that was created under a grant. */
export interface RafikiPayment {
  readonly createdAt: Date
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
}

/** Reads the grants that clients can still use, oldest first. */
export async function openGrants(auth: RafikiDatabase): Promise<readonly RafikiGrant[]> {
  const { rows } = await auth.query<RafikiGrant>(`
    SELECT g.id, g.client, g."createdAt", t.value AS token, t."managementId",
      (SELECT coalesce(json_agg(json_strip_nulls(json_build_object('type', a.type, 'actions', a.actions,
         'identifier', a.identifier, 'limits', a.limits)) ORDER BY a."createdAt", a.id), '[]')
       FROM accesses a WHERE a."grantId" = g.id) AS access
    FROM grants g
    CROSS JOIN LATERAL (
      SELECT value, "managementId" FROM "accessTokens"
      WHERE "grantId" = g.id AND "revokedAt" IS NULL ORDER BY "createdAt" DESC LIMIT 1) t
    WHERE g.client IS NOT NULL
      AND g.state = 'FINALIZED' AND g."finalizationReason" = 'ISSUED'
      AND EXISTS (SELECT FROM interactions i WHERE i."grantId" = g.id)
    ORDER BY g."createdAt", g.id`)
  return rows
}

/**
 * Reads the payments under a grant that count. A failed payment is among them, because the table does not say what was
 * sent before it failed.
 */
export async function paymentsUnder(
  backend: RafikiDatabase,
  grantId: string,
): Promise<readonly RafikiPayment[]> {
  const { rows } = await backend.query<RafikiPayment>(
    `SELECT p."createdAt", q.receiver,
      json_build_object('value', q."debitAmountValue"::text, 'assetCode', a.code, 'assetScale', a.scale) AS "debitAmount",
      json_build_object('value', q."receiveAmountValue"::text, 'assetCode', q."receiveAmountAssetCode",
        'assetScale', q."receiveAmountAssetScale") AS "receiveAmount"
    FROM "outgoingPayments" p
    JOIN quotes q ON q.id = p.id
    JOIN assets a ON a.id = q."assetId"
    WHERE p."grantId" = $1 AND p.state <> 'CANCELLED'
    ORDER BY p."createdAt", p.id`,
    [grantId],
  )
  return rows
}

/** A wallet address of Rafiki. */
export interface RafikiWalletAddress extends WalletAddress {
  /** Its id in Rafiki, which webhooks name. */
  readonly id: string
}

/**
 * Reads the wallet addresses with their keys, for a table of yours that `walletAddresses` reads.
 *
 * @param backend the database of Rafiki's `backend`.
 *
 * @example
 * ```ts
 * import { rafikiWalletAddresses } from 'open-payments-rafiki'
 *
 * for (const { id, url, keys } of await rafikiWalletAddresses(pool)) console.log(id, url, keys)
 * ```
 */
export async function rafikiWalletAddresses(
  backend: RafikiDatabase,
): Promise<readonly RafikiWalletAddress[]> {
  const { rows } = await backend.query<RafikiWalletAddress>(`
    SELECT w.id, w.address AS url, coalesce(w."publicName", '') AS "publicName",
      a.code AS "assetCode", a.scale AS "assetScale",
      w."deactivatedAt" IS NULL OR w."deactivatedAt" > now() AS active,
      (SELECT coalesce(json_agg(json_build_object('kid', k.kid, 'x', k.x) ORDER BY k."createdAt"), '[]')
       FROM "walletAddressKeys" k WHERE k."walletAddressId" = w.id AND NOT k.revoked) AS keys
    FROM "walletAddresses" w
    JOIN assets a ON a.id = w."assetId"
    ORDER BY w.address`)
  return rows
}
