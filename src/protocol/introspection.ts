import * as v from 'valibot'
import {
  type AccessAction,
  type AccessType,
  accessActions,
  type GrantedItem,
  isWellFormed,
  publicItem,
} from '../core/access.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import { lastInstant } from '../core/instant.js'
import type { GrantConditions } from '../core/limits.js'
import type { Json, JsonObject } from '../core/stored.js'
import type { ActiveToken, Introspection, IntrospectionQuery, PublicJwk } from '../ports/host.js'
import { publishedJwk, screenJwk } from './http-signature/jwk.js'
import { isObject } from './json.js'
import { amountSchema, objectOf, type Parsed, parseWith, urlSchema } from './schema.js'
import { spendingLimitsSchema } from './spending-limits.js'

/** The only supported key proof method (RFC 9635 section 7.3.1). */
const proof = 'httpsig'

/** The resource server that sent the request, identified by its id or its key. */
export type AskingResourceServer = { readonly id: string } | { readonly jwk: PublicJwk }

/**
 * Reads `resource_server`, the only member of the request that is read before the signature is verified.
 *
 * @see RFC 9767 section 3.2
 */
export function readResourceServer(
  body: Json,
): Result<AskingResourceServer, Refused<'body_invalid' | 'resource_server_invalid'>> {
  const named = isObject(body) ? body['resource_server'] : undefined
  if (typeof named === 'string') return ok({ id: named })
  const key = isObject(named) ? named['key'] : undefined
  if (!isObject(key) || key['proof'] !== proof) {
    return refused('body_invalid', 'resource_server must be an id or a key')
  }
  const screened = screenJwk(key['jwk'])
  return screened.ok
    ? ok({ jwk: screened.value })
    : refused('resource_server_invalid', `the key ${screened.problem}`)
}

/** Access that a token must include for the resource server to accept it. */
interface NeededAccess {
  readonly type: AccessType
  readonly actions: readonly AccessAction[]
  readonly identifier?: string
}

/** An introspection request without its `resource_server`. */
export interface IntrospectionRequest {
  readonly accessToken: string
  /** The `keyid` of the signature that the resource server received with the token, and has not verified. */
  readonly keyid?: string
  /**
   * False if no token of this server can meet the request, because it requires another proof method or unknown
   * access.
   */
  readonly answerable: boolean
  readonly needed: readonly NeededAccess[]
}

const requestSchema = objectOf(
  v.object({
    access_token: v.string(),
    keyid: v.exactOptional(v.string()),
    proof: v.exactOptional(v.string()),
    access: v.exactOptional(v.array(v.unknown())),
  }),
)

const accessTypes = Object.keys(accessActions) as AccessType[]
const actionSchema = v.picklist(accessTypes.flatMap((type) => accessActions[type]))

const neededSchema = v.array(
  objectOf(
    v.strictObject({
      type: v.picklist(accessTypes),
      actions: v.array(actionSchema),
      identifier: v.exactOptional(urlSchema),
    }),
  ),
)

/**
 * Reads an introspection request except its `resource_server`.
 *
 * @see RFC 9767 section 3.3
 */
export function readIntrospectionRequest(body: Json): Parsed<IntrospectionRequest> {
  const parsed = parseWith(requestSchema, body)
  if (!parsed.ok) return parsed
  const { access_token: accessToken, keyid, proof: wanted = proof, access = [] } = parsed.value
  const query = { accessToken, ...(keyid !== undefined && { keyid }) }
  const needed = parseWith(neededSchema, access)
  return ok(
    needed.ok
      ? { ...query, answerable: wanted === proof, needed: needed.value }
      : { ...query, answerable: false, needed: [] },
  )
}

/** Returns the body of an introspection request. `keyid` is an extension. */
export function introspectionRequestBody(
  { accessToken, keyid }: IntrospectionQuery,
  resourceServer: string,
) {
  return {
    access_token: accessToken,
    ...(keyid !== undefined && { keyid }),
    proof,
    resource_server: resourceServer,
  }
}

/**
 * Returns the response for a token. `grant`, `client`, `conditions` and, in items of `access`, `itemId` and
 * `intervalCounting` are extensions, which the resource server needs to count spending per grant and item. A resource
 * server without access to outgoing payments does not receive the conditions. `withdrawnKey` is an extension, by which
 * the resource server refuses a request for its signature instead of its token.
 *
 * @see RFC 9767 section 3.3
 */
export function introspectionBody(token: Introspection, issuer: string) {
  if (!token.active) {
    const { active, withdrawnKey } = token
    return { active, ...(withdrawnKey !== undefined && { withdrawnKey: keyBody(withdrawnKey) }) }
  }
  const { grantId, access, conditions, key, walletAddress, expiresAt } = token
  const isPaying = access.some(({ type }) => type === 'outgoing-payment')
  return {
    active: true,
    iss: issuer,
    exp: Math.floor(expiresAt / 1000),
    access: access.map(grantedItemBody),
    key: keyBody(key),
    grant: grantId,
    ...(walletAddress !== undefined && { client: { walletAddress } }),
    ...(conditions !== undefined && isPaying && { conditions }),
  }
}

function keyBody(key: PublicJwk) {
  return { proof, jwk: publishedJwk(key) }
}

function grantedItemBody(item: GrantedItem): GrantedItem {
  const { itemId, intervalCounting } = item
  return {
    ...publicItem(item),
    itemId,
    ...(intervalCounting !== undefined && { intervalCounting }),
  }
}

const shortText = v.pipe(v.string(), v.maxLength(2048, 'is too long'))

/** Does not canonicalize text, so that the granted access is not changed in transit. */
const grantedItemSchema = v.pipe(
  objectOf(
    v.strictObject({
      type: v.picklist(accessTypes),
      actions: v.array(actionSchema),
      identifier: v.exactOptional(shortText),
      limits: v.exactOptional(
        objectOf(
          v.strictObject({
            receiver: v.exactOptional(shortText),
            interval: v.exactOptional(shortText),
            debitAmount: v.exactOptional(amountSchema),
            receiveAmount: v.exactOptional(amountSchema),
          }),
        ),
      ),
      itemId: v.pipe(
        v.string(),
        v.regex(/^[1-9][0-9]{0,3}$/, 'must be the index of an access item'),
      ),
      intervalCounting: v.exactOptional(v.picklist(['occurrences', 'repetitions'])),
    }),
  ),
  v.check((item) => isWellFormed(item), 'is not an access item that can be granted'),
)

/** @see GrantConditions. Rejects unknown members, because each would restrict the token. */
const conditionsSchema = objectOf(
  v.strictObject({
    paymentMax: v.exactOptional(amountSchema),
    receivers: v.exactOptional(v.array(shortText)),
    pausedUntil: v.exactOptional(
      v.pipe(v.number(), v.integer('must be an integer'), v.minValue(0), v.maxValue(lastInstant)),
    ),
    limits: v.exactOptional(spendingLimitsSchema),
    data: v.exactOptional(v.custom<JsonObject>(isObject)),
  } satisfies Record<keyof GrantConditions, unknown>),
)

const lastSecond = Date.UTC(10_000, 0) / 1000 - 1

const givenKeySchema = objectOf(v.object({ proof: v.literal(proof), jwk: v.unknown() }))

const inactiveSchema = objectOf(v.object({ withdrawnKey: v.exactOptional(givenKeySchema) }))

const activeSchema = objectOf(
  v.object({
    iss: v.string(),
    exp: v.pipe(v.number(), v.integer('must be an integer'), v.minValue(0), v.maxValue(lastSecond)),
    access: v.pipe(
      v.array(grantedItemSchema),
      v.check(
        (items) => new Set(items.map(({ itemId }) => itemId)).size === items.length,
        'contains a duplicate itemId',
      ),
    ),
    key: givenKeySchema,
    grant: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be a grant id')),
    client: v.exactOptional(objectOf(v.object({ walletAddress: urlSchema }))),
    conditions: v.exactOptional(conditionsSchema),
    // The library never sends these, and must not ignore them, because each would restrict the token.
    aud: v.optional(v.never()),
    nbf: v.optional(v.never()),
    flags: v.optional(v.never()),
  }),
)

/** An introspection response, which contains neither a version nor a thumbprint. */
type IntrospectionAnswer =
  | Extract<Introspection, { readonly active: false }>
  | (Omit<ActiveToken, 'grantVersion' | 'key'> & { readonly key: PublicJwk })

/** Reads an introspection response of the authorization server whose grant endpoint is `issuer`. */
export function readIntrospectionAnswer(
  body: Json | undefined,
  issuer: string,
): Parsed<IntrospectionAnswer> {
  const active = isObject(body) ? body['active'] : undefined
  if (active === false) return readInactive(body)
  if (active !== true) return { ok: false, path: 'active', problem: 'must be true or false' }
  const parsed = parseWith(activeSchema, body)
  if (!parsed.ok) return parsed
  const { iss, exp, access, key, grant: grantId, client, conditions } = parsed.value
  if (iss !== issuer)
    return { ok: false, path: 'iss', problem: 'must be the grant endpoint that was queried' }
  const screened = screenJwk(key.jwk)
  if (!screened.ok) return { ok: false, path: 'key.jwk', problem: screened.problem }
  return ok({
    active,
    grantId,
    access,
    ...(conditions !== undefined && { conditions }),
    key: screened.value,
    ...client,
    expiresAt: exp * 1000,
  })
}

function readInactive(body: Json | undefined): Parsed<IntrospectionAnswer> {
  const parsed = parseWith(inactiveSchema, body)
  if (!parsed.ok) return parsed
  const { withdrawnKey } = parsed.value
  if (withdrawnKey === undefined) return ok({ active: false })
  const screened = screenJwk(withdrawnKey.jwk)
  if (!screened.ok) return { ok: false, path: 'withdrawnKey.jwk', problem: screened.problem }
  return ok({ active: false, withdrawnKey: screened.value })
}
