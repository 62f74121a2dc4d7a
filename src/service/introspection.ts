import { type GrantedItem, itemsOf } from '../core/access.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Grant, IssuedToken } from '../core/grant/record.js'
import { activeToken } from '../core/grant/status.js'
import type { Introspect, Introspection, IntrospectionQuery } from '../ports/host.js'
import { accessTokenClass, isIdOf, parseCredential } from '../protocol/credential.js'
import { isWrongAnswer } from '../util/errors.js'
import { hashText } from '../util/hash.js'
import type { ServiceContext } from './context.js'
import { loadOne } from './load.js'
import type { LoadedWithGrant } from './loaded-with-grant.js'
import { type KeyLookup, signingKey } from './signing-key.js'

/**
 * Introspects a token. An authorization server in the same process also loads, in the same call of the store, what the
 * resource server probably needs next. Other servers load nothing.
 */
export type IntrospectAndLoad = (
  query: IntrospectionQuery,
  loadedWithGrant?: LoadedWithGrant,
) => Promise<Introspection>

const inactive: Introspection = { active: false }

/**
 * Creates the introspection of access tokens (RFC 9767 section 3.3). A token of another class or server, a
 * replaced token, and a token without a key that signs for it are inactive.
 *
 * The answer contains the key that the resource server asks about, if it signs for the grant. Otherwise it contains the
 * recorded one, so that the resource server refuses the signature, and not the token. If that one is withdrawn too,
 * only a client that has it learns this: for all others, the token is inactive.
 */
export function createIntrospect(context: ServiceContext, keys: KeyLookup): IntrospectAndLoad {
  return async ({ accessToken, keyid }, loadedWithGrant) => {
    const credential = parseCredential(accessTokenClass, accessToken)
    const grant = credential && (await loadGrantAnd(context, credential.grantId, loadedWithGrant))
    if (credential === undefined || grant === undefined) return inactive
    const tokenHash = await hashText(credential.secret)
    const token = activeToken(grant, tokenHash, context.clock.now())
    if (token === undefined) return inactive

    const { walletAddress, kid, x } = grant.client
    const asked = keyid === undefined ? undefined : await signingKey(grant.client, keyid, keys)
    const key = asked?.ok || keyid === kid ? asked : await signingKey(grant.client, kid, keys)
    if (!key?.ok) return { active: false, withdrawnKey: { kid, x } }
    const { conditions } = grant
    return {
      active: true,
      grantId: grant.id,
      grantVersion: grant.version,
      access: accessOf(grant, token),
      ...(conditions !== undefined && { conditions }),
      key: key.value,
      ...(walletAddress !== undefined && { walletAddress }),
      expiresAt: token.expiresAt,
    }
  }
}

async function loadGrantAnd(
  { store, namespace }: ServiceContext,
  id: string,
  also: LoadedWithGrant | undefined,
): Promise<Grant | undefined> {
  if (!isIdOf(await namespace(), id)) return undefined
  return also === undefined ? loadOne<Grant>(store, { kind: 'grant', id }) : also.load(store, id)
}

/** Returns the granted items of one token, in the form that introspection over HTTP returns. */
function accessOf({ granted = [] }: Grant, { label }: IssuedToken): readonly GrantedItem[] {
  if (label === undefined) return granted
  return itemsOf(granted, label).map(({ label: _label, ...item }) => item)
}

/** Introspects a token, or refuses because that failed. */
export async function introspected(
  introspect: Introspect,
  query: IntrospectionQuery,
): Promise<Result<Introspection, Refused<'introspection_unavailable'>>> {
  try {
    return ok(await introspect(query))
  } catch (error) {
    if (isWrongAnswer(error)) throw error
    const reason = error instanceof Error ? error.message : 'introspection failed'
    return refused('introspection_unavailable', reason)
  }
}
