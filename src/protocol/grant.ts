import * as v from 'valibot'
import {
  type AccessItem,
  accessActions,
  allowsSame,
  publicItem,
  type TokenItem,
} from '../core/access.js'
import { ok, type Refused, type Result } from '../core/decision.js'
import type { FinishMethod, SubjectId } from '../core/grant/record.js'
import { parseInterval, shortestWindowMs } from '../core/interval.js'
import { refusedPublicly, resourceUrlForm } from '../core/public-reasons.js'
import type { Json } from '../core/stored.js'
import type { PublicJwk } from '../ports/host.js'
import { finishUriProblem } from './finish.js'
import { screenJwk } from './http-signature/jwk.js'
import { isObject } from './json.js'
import {
  amountSchema,
  type Parsed,
  parseWith,
  printableText,
  receiverSchema,
  refusing,
  requestObjectOf,
  uriProblem,
  urlSchema,
} from './schema.js'
import { canonicalUrl } from './url.js'

/** The client of a grant request, the only member that is read before the signature is verified. */
export type RequestingClient = { readonly walletAddress: string } | { readonly jwk: PublicJwk }

/** A grant request without its `client`. */
export interface GrantRequest {
  /** The access of all tokens. Empty if only a subject is requested. */
  readonly access: readonly TokenItem[]
  readonly subject?: SubjectId
  readonly interact?: { readonly finish?: FinishMethod }
}

const accessItemsMax = 3
const tokensMax = 4
const labelLengthMax = 64
const nonceLengthMax = 256

type ReadClient = Result<RequestingClient, Refused<'body_invalid' | 'client_invalid'>>

/**
 * Reads `client`: a wallet address as a string or in an object, or a key by value.
 *
 * @see RFC 9635 section 2.3; Open Payments OpenAPI, schema `client`
 */
export function readClient(body: Json): ReadClient {
  const client = isObject(body) ? body['client'] : undefined
  if (typeof client === 'string') return readWalletAddress(client)
  if (!isObject(client)) return refusedPublicly('body_invalid', 'client', 'is missing')
  const { walletAddress, jwk } = client
  const [member, ...others] = Object.keys(client).filter((name) => client[name] !== null)
  if (others.length === 0 && member === 'walletAddress' && typeof walletAddress === 'string') {
    return readWalletAddress(walletAddress)
  }
  if (others.length === 0 && member === 'jwk') {
    const screened = screenJwk(jwk)
    return screened.ok
      ? ok({ jwk: screened.value })
      : refusedPublicly('client_invalid', 'client.jwk', screened.problem)
  }
  return refusedPublicly('body_invalid', 'client', 'must have either walletAddress or jwk')
}

function readWalletAddress(text: string): ReadClient {
  const walletAddress = canonicalUrl(text)
  if (walletAddress !== undefined) return ok({ walletAddress })
  return refusedPublicly('client_invalid', 'client', resourceUrlForm)
}

const uniqueActions = <Action extends string>(actions: readonly Action[]) =>
  v.pipe(
    v.array(v.picklist(actions)),
    v.minLength(1, 'is empty'),
    v.check((given) => new Set(given).size === given.length, 'contains duplicate actions'),
  )

const limitsSchema = v.pipe(
  requestObjectOf(
    v.strictObject({
      receiver: v.optional(receiverSchema),
      interval: v.optional(v.pipe(v.string(), refusing(intervalProblem))),
      debitAmount: v.optional(amountSchema),
      receiveAmount: v.optional(amountSchema),
    }),
  ),
  v.check(
    ({ debitAmount, receiveAmount }) => !(debitAmount && receiveAmount),
    'must not contain both debitAmount and receiveAmount',
  ),
)

function intervalProblem(text: string): string | undefined {
  const parsed = parseInterval(text)
  return parsed.ok ? undefined : parsed.problem
}

/** @see Open Payments OpenAPI, schema `access-item` */
const accessItemSchema = requestObjectOf(
  v.variant('type', [
    v.strictObject({
      type: v.literal('incoming-payment'),
      actions: uniqueActions(accessActions['incoming-payment']),
      identifier: v.optional(urlSchema),
    }),
    v.strictObject({
      type: v.literal('outgoing-payment'),
      actions: uniqueActions(accessActions['outgoing-payment']),
      identifier: v.optional(urlSchema),
      limits: v.optional(limitsSchema),
    }),
    v.strictObject({
      type: v.literal('quote'),
      actions: uniqueActions(accessActions.quote),
    }),
  ]),
)

/** @see Open Payments OpenAPI, schema `subject` */
const subjectSchema = requestObjectOf(
  v.object({
    sub_ids: v.pipe(
      v.array(
        requestObjectOf(
          v.object({
            id: v.pipe(v.string(), refusing(uriProblem)),
            format: v.literal('uri'),
          }),
        ),
      ),
      v.length(1, 'must contain exactly one item'),
    ),
  }),
)

const finishSchema = requestObjectOf(
  v.object({
    method: v.literal('redirect'),
    uri: v.pipe(v.string(), refusing(finishUriProblem)),
    nonce: printableText(nonceLengthMax),
    hash_method: v.optional(v.picklist(['sha-256', 'sha-512'] as const), 'sha-256'),
  }),
)

const accessSchema = v.pipe(
  v.array(accessItemSchema),
  v.minLength(1, 'is empty'),
  v.maxLength(accessItemsMax, `must contain at most ${accessItemsMax} items`),
)

/** The only flag that a client may send is `bearer`, and every token is bound to a key. */
const flagsSchema = v.optional(v.pipe(v.array(v.unknown()), v.maxLength(0, 'must be empty')))

/** @see RFC 9635 section 2.1.1 */
const singleTokenSchema = requestObjectOf(
  v.object({
    access: accessSchema,
    label: v.optional(v.never()),
    flags: v.optional(v.never()),
  }),
)

/** @see RFC 9635 section 2.1.2 */
const tokensSchema = v.pipe(
  v.array(
    requestObjectOf(
      v.object({
        label: printableText(labelLengthMax),
        access: accessSchema,
        flags: flagsSchema,
      }),
    ),
  ),
  v.minLength(1, 'is empty'),
  v.maxLength(tokensMax, `must contain at most ${tokensMax} tokens`),
  v.check(
    (tokens) => new Set(tokens.map(({ label }) => label)).size === tokens.length,
    'contains duplicate labels',
  ),
)

/** A union would report neither the path nor the problem of a member. */
const accessTokenSchema = v.lazy((input) =>
  Array.isArray(input) ? tokensSchema : singleTokenSchema,
)

type RequestedToken =
  | v.InferOutput<typeof singleTokenSchema>
  | v.InferOutput<typeof tokensSchema>[number]

/** Unknown members are ignored unless they would change the response. */
const grantRequestSchema = requestObjectOf(
  v.object({
    access_token: v.optional(accessTokenSchema),
    subject: v.optional(subjectSchema),
    interact: v.optional(
      requestObjectOf(
        v.object({
          start: v.pipe(
            v.array(v.union([v.string(), v.object({ mode: v.string() })])),
            v.includes('redirect', 'must include redirect'),
          ),
          finish: v.optional(finishSchema),
        }),
      ),
    ),
  }),
)

/**
 * Reads a grant request except its `client`: access, a subject, or both.
 *
 * @param intervalMinMs the shortest window that an interval may have.
 */
export function readGrantRequest(body: Json, intervalMinMs: number): Parsed<GrantRequest> {
  const parsed = parseWith(grantRequestSchema, body)
  if (!parsed.ok) return parsed
  const { access_token, subject, interact } = parsed.value
  if (access_token === undefined && subject === undefined) {
    return { ok: false, path: 'access_token', problem: 'is missing' }
  }
  const tokens = access_token === undefined ? [] : [access_token].flat()
  for (const [index, token] of tokens.entries()) {
    const path = Array.isArray(access_token)
      ? `access_token.${index}.access`
      : 'access_token.access'
    if (hasDuplicates(token)) {
      return { ok: false, path, problem: 'contains duplicate access items' }
    }
    const short = token.access.findIndex((item) => hasShortWindows(item, intervalMinMs))
    if (short !== -1) {
      const problem = `must have windows of at least ${intervalMinMs} ms`
      return { ok: false, path: `${path}.${short}.limits.interval`, problem }
    }
  }
  const access = tokens.flatMap(requestedItems)
  const [asked] = subject?.sub_ids ?? []
  const request = asked === undefined ? { access } : { access, subject: asked }
  if (interact === undefined) return ok(request)
  if (interact.finish === undefined) return ok({ ...request, interact: {} })
  const { uri, nonce, hash_method: hashMethod } = interact.finish
  return ok({ ...request, interact: { finish: { uri, nonce, hashMethod } } })
}

/**
 * Two equal items would each have a budget of their own, so that the token could spend twice the limit. The owner may
 * choose the account that one item names for another that names none.
 */
function hasDuplicates(token: RequestedToken): boolean {
  const access = token.access as readonly AccessItem[]
  const at = (item: AccessItem, { identifier }: AccessItem) =>
    item.type === 'outgoing-payment' && identifier !== undefined ? { identifier, ...item } : item
  return access.some((item, index) =>
    access.slice(0, index).some((each) => allowsSame(at(each, item), at(item, each))),
  )
}

/** An amount for each window of a millisecond would be no limit. */
function hasShortWindows(item: RequestedToken['access'][number], intervalMinMs: number): boolean {
  if (!('limits' in item) || item.limits?.interval === undefined) return false
  const interval = parseInterval(item.limits.interval)
  return interval.ok && shortestWindowMs(interval.value) < intervalMinMs
}

function requestedItems({ label, access }: RequestedToken): readonly TokenItem[] {
  const items = (access as readonly AccessItem[]).map(publicItem)
  return label === undefined ? items : items.map((item) => ({ label, ...item }))
}

const continuationSchema = requestObjectOf(
  v.object({
    interact_ref: v.optional(v.pipe(v.string(), v.maxLength(256, 'is too long'))),
  }),
)

/**
 * Reads the body of a continuation request. A request without a body, or with an empty object, is a poll.
 *
 * @see RFC 9635 sections 5.1 and 5.2
 */
export function readContinuation(body: Json | undefined): Parsed<{ interactRef?: string }> {
  if (body === undefined) return ok({})
  const parsed = parseWith(continuationSchema, body)
  if (!parsed.ok) return parsed
  const interactRef = parsed.value.interact_ref
  if (interactRef !== undefined) return ok({ interactRef })
  return isObject(body) && Object.values(body).some((value) => value !== null)
    ? { ok: false, path: 'interact_ref', problem: 'is missing' }
    : ok({})
}

/** An access token on the wire (Open Payments OpenAPI, schema `access_token`). */
export interface AccessTokenBody {
  /** The label of one of several tokens (RFC 9635 section 3.2.2). */
  readonly label?: string
  readonly value: string
  readonly manage: string
  readonly expires_in: number
  readonly access: readonly AccessItem[]
}

/** The subject on the wire (Open Payments OpenAPI, schema `subject`). */
export interface SubjectBody {
  readonly sub_ids: readonly [SubjectId]
}

/** The continuation on the wire (Open Payments OpenAPI, schema `continue`). */
export interface ContinueBody {
  readonly access_token: { readonly value: string }
  readonly uri: string
  readonly wait?: number
}
