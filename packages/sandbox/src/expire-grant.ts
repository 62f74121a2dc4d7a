import type { Store } from 'open-payments-server'
import type { Grant } from 'open-payments-server/core'
import { parseCredential } from '../../../src/protocol/credential.js'

/**
 * Ends the grant to which an access token or continuation token belongs: it expires at this time.
 *
 * @param claim is called if there is such a grant that has not ended. If it returns false, the grant stays.
 */
export async function expireGrant(
  store: Store,
  token: string,
  expiresAt: number,
  claim: () => boolean,
): Promise<void> {
  const { grantId } = parseCredential('opa_', token) ?? parseCredential('opc_', token) ?? {}
  if (grantId === undefined) return
  const [found] = await store.load([{ kind: 'grant', id: grantId }])
  const grant = found as Grant | undefined
  if (grant === undefined || grant.finalized !== undefined) return
  const { version: expectedVersion, lists, dueAt, interaction } = grant
  const isPending = grant.granted === undefined && interaction !== undefined
  const endsAt = isPending ? interaction.expiresAt : grant.expiresAt
  if ((endsAt !== undefined && endsAt <= expiresAt) || !claim()) return
  const over = isPending ? { interaction: { ...interaction, expiresAt } } : { expiresAt }
  const next = { ...grant, version: expectedVersion + 1, ...over }
  const previous = { ...(lists !== undefined && { lists }), ...(dueAt !== undefined && { dueAt }) }
  await store.commit({ changes: [{ kind: 'grant', next, expectedVersion, previous }], guards: [] })
}
