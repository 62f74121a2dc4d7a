import { randomBytes } from 'node:crypto'
import type { Store } from 'open-payments-server'
import {
  type AccessItem,
  clientId,
  decideGrant,
  type Grant,
  type GrantPolicy,
  grantStatus,
  ok,
  parseInterval,
  type Result,
  requestGrant,
} from 'open-payments-server/core'
import { type ExchangeKey, hash } from './exchange-key.js'
import { budgetOf } from './import-budget.js'
import {
  openGrants,
  paymentsUnder,
  type RafikiDatabase,
  type RafikiGrant,
  type RafikiPayment,
} from './tables.js'

const day = 86_400_000

/**
 * The defaults of the library. `Rn` of an interval is n + 1 windows, as in Rafiki; each grant stores that.
 *
 * @example
 * ```ts
 * import { importPolicy } from 'open-payments-rafiki'
 *
 * const policy = { ...importPolicy, accessTokenLifetimeMs: 3_600_000 }
 * ```
 */
export const importPolicy: GrantPolicy = {
  accessTokenLifetimeMs: 600_000,
  interactionLifetimeMs: 600_000,
  waitMs: 5_000,
  retryMs: 60_000,
  unusedLifetimeMs: 30 * day,
  retentionMs: 30 * day,
  intervalCounting: 'repetitions',
}

/** The owner whose consent a grant has, as you pass it to `interactions.approve`. Rafiki does not store who it was. */
export interface GrantOwner {
  readonly resourceOwner: string
  readonly walletAddresses: readonly string[]
}

/** Where grants are imported to, and whose they are. */
export interface GrantImport {
  readonly store: Store
  readonly key: ExchangeKey
  /** Resolves to the owner of wallet addresses, or to `undefined` if they do not belong to one owner. */
  readonly ownerOf: (walletAddresses: readonly string[]) => Promise<GrantOwner | undefined>
  readonly policy?: GrantPolicy
}

/** The id of the grant in the library, or why it was not imported. */
export type ImportedGrant = Result<string, NotImported>

/** The client has to request this grant again, for the reason given, or it was imported before. */
export interface NotImported {
  readonly ok: false
  readonly reason: string
}

/**
 * Imports all grants that clients can still use. Resolves to the result of each, by its id in Rafiki.
 *
 * @param rafiki the databases of its two services, which must not change any more.
 * @param now the time of the import: the open window of each limit is the one at this time.
 *
 * @example
 * ```ts
 * import { exchangeKey, importGrants } from 'open-payments-rafiki'
 *
 * const key = exchangeKey(new Uint8Array(32), 'https://auth.wallet.example/cf5fd7d3')
 * const ownerOf = async (walletAddresses: readonly string[]) => ({
 *   resourceOwner: 'alice',
 *   walletAddresses,
 * })
 * const rafiki = { auth: pool, backend: pool }
 * for (const [id, result] of await importGrants(rafiki, Date.now(), { store, key, ownerOf })) {
 *   if (!result.ok) console.warn(id, result.reason) // its client requests it again
 * }
 * ```
 */
export async function importGrants(
  rafiki: { readonly auth: RafikiDatabase; readonly backend: RafikiDatabase },
  now: number,
  options: GrantImport,
): Promise<ReadonlyMap<string, ImportedGrant>> {
  const results = new Map<string, ImportedGrant>()
  for (const grant of await openGrants(rafiki.auth)) {
    const payments = await paymentsUnder(rafiki.backend, grant.id)
    results.set(grant.id, await importGrant(grant, payments, now, options))
  }
  return results
}

/**
 * Imports one grant, and what has been spent of its limits. It writes nothing if the grant was imported before, so it
 * can run again after a failure.
 *
 * @param payments all payments under the grant; Rafiki must create no more of them.
 * @param now the time of the import: the open window of each limit is the one at this time.
 */
async function importGrant(
  old: RafikiGrant,
  payments: readonly RafikiPayment[],
  now: number,
  { store, key, ownerOf, policy = importPolicy }: GrantImport,
): Promise<ImportedGrant> {
  const problem = problemOf(old.access)
  if (problem !== undefined) return notImported(problem)
  const owner = await ownerOf(old.access.flatMap(({ identifier }) => identifier ?? []))
  if (owner === undefined) return notImported('no owner of its wallet addresses')
  const commandId = randomBytes(16).toString('base64url')
  const approved = approvedGrant(old, owner, commandId, key, policy)
  if (!approved.ok) return approved
  const grant = approved.value
  const status = grantStatus(grant, now)
  if (status !== 'approved') return notImported(`it is ${status}`)

  const charge = { grantId: grant.id, commandId, namespace: key.namespace }
  const budgets = (grant.granted ?? []).flatMap(
    (item) => budgetOf(item, payments, now, charge, policy) ?? [],
  )
  const changes = [
    { kind: 'grant', next: grant, expectedVersion: 0 } as const,
    ...budgets.map((next) => ({ kind: 'budget', next, expectedVersion: 0 }) as const),
  ]
  const isNew = await store.commit({ changes, guards: [] })
  return isNew ? ok(grant.id) : notImported('it was imported before')
}

function notImported(reason: string): NotImported {
  return { ok: false, reason }
}

/** Finds what the library would not have granted, or would count in another way. */
function problemOf(access: readonly AccessItem[]): string | undefined {
  const outgoing = access.filter(({ type }) => type === 'outgoing-payment')
  if (access.length === 0) return 'it has no access'
  if (outgoing.some(({ identifier }) => identifier === undefined)) {
    return 'an item for outgoing payments names no wallet address'
  }
  // The library counts each item on its own, so that together they could spend more than before.
  if (outgoing.length > 1) return 'it has several items for outgoing payments'
  const interval = outgoing[0]?.limits?.interval
  return interval === undefined || parseInterval(interval).ok
    ? undefined
    : 'its interval is invalid'
}

/** Makes the decisions of the library, at the time of the old grant: a request, and the consent of its owner. */
function approvedGrant(
  old: RafikiGrant,
  { resourceOwner, walletAddresses }: GrantOwner,
  commandId: string,
  key: ExchangeKey,
  policy: GrantPolicy,
): Result<Grant, NotImported> {
  const at = old.createdAt.getTime()
  // The key of the client is known when it presents its old token.
  const client = { walletAddress: old.client, kid: '', x: '', thumbprint: '' }
  const unique = () => randomBytes(16).toString('base64url')
  const requested = requestGrant(
    {
      commandId,
      id: key.grantId(old.managementId),
      client,
      access: old.access,
      needsConsent: true,
      needsFinish: false,
      interact: {},
      interaction: { pathHash: hash(unique()), nonce: unique() },
      continuation: { path: unique(), tokenHash: hash(key.proof(old)) },
      tokens: [],
      listName: `${key.namespace} client ${clientId(client)}`,
    },
    at,
    policy,
  )
  if (!requested.ok) return notImported(requested.reason)
  const approved = decideGrant<'approve'>(
    requested.record,
    {
      type: 'approve',
      commandId: unique(),
      resourceOwner,
      walletAddresses,
      listName: `${key.namespace} owner ${hash(resourceOwner)}`,
      // The client polls, so that no redirect contains a reference.
      refHash: '',
      refSalt: '',
    },
    at,
    policy,
  )
  if (!approved.ok) return notImported(approved.reason)
  return ok({ ...approved.record, version: 1, commandId })
}
