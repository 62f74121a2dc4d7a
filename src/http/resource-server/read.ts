import { type AccessType, foreignIdentifier, insufficient } from '../../core/access.js'
import { ok } from '../../core/decision.js'
import type { Instant } from '../../core/instant.js'
import { resourceUrlForm } from '../../core/public-reasons.js'
import type { Stored } from '../../core/stored.js'
import type { SignedMessage } from '../../protocol/http-signature/components.js'
import type { Parsed } from '../../protocol/schema.js'
import { canonicalUrl } from '../../protocol/url.js'
import {
  type AddressScope,
  type ClientScope,
  type ListPage,
  type PageRequest,
  readPageQuery,
} from '../../service/lists.js'
import { json, refuseProblem } from '../body.js'
import type { Serve } from '../exchange.js'
import { refuse } from '../refusals.js'
import { authorized, type ResourceDependencies } from './authorized.js'

/** A resource type with an operation that reads a single resource. */
interface Readable<Resource> {
  readonly type: AccessType
  load(id: string): Promise<Resource | undefined>
  toBody(resource: Resource, now: Instant): object | Promise<object>
}

/**
 * Serves a resource to the client that created it, and to others whose token allows `read-all`. No client reads what
 * the owner of an account ordered.
 */
export function getResource<Resource extends { walletAddress: string; client?: string }>(
  deps: ResourceDependencies,
  { type, load, toBody }: Readable<Resource>,
): Serve {
  return authorized(deps, async ({ id, call }, { permitted, readable }) => {
    if (permitted(type, 'read') === undefined) return insufficient(type, 'read')
    const resource = await load(id)
    if (resource === undefined || !readable(type, resource)) {
      const reason = `the token can read no ${type} with this id`
      return refuse('resource_unknown', reason)
    }
    return json(200, await toBody(resource, call.now))
  })
}

interface ListRequest {
  readonly walletAddress: string
  readonly page: PageRequest
}

/** A resource type with a list operation. */
interface Listing<Resource> {
  readonly type: AccessType
  readonly lists: {
    /** Resolves to what a client created. */
    listOfClient(scope: ClientScope, page: PageRequest): Promise<ListPage<Resource>>
    /** Resolves to what all clients may see with `list-all`. */
    listShared(scope: AddressScope, page: PageRequest): Promise<ListPage<Resource>>
  }
  toBody(resource: Resource): object
}

/**
 * Serves a list of a wallet address: the resources that the requesting client created, or with `list-all` the resources
 * of all clients. What its owner paid without a client is in neither.
 *
 * @see Open Payments OpenAPI, `list-incoming-payments`, `list-outgoing-payments`
 */
export function listResources<Resource extends Stored>(
  deps: ResourceDependencies,
  { type, lists, toBody }: Listing<Resource>,
): Serve {
  return authorized(deps, async (exchange, { permitted, client }) => {
    if (permitted(type, 'list') === undefined) return insufficient(type, 'list')
    const request = readListRequest(exchange.message)
    if (!request.ok) return refuseProblem('query_invalid', request)
    const { walletAddress, page } = request.value
    if (permitted(type, 'list', walletAddress) === undefined) {
      return foreignIdentifier('wallet-address')
    }
    const seesAll = permitted(type, 'list-all', walletAddress) !== undefined
    const { pagination, result } = seesAll
      ? await lists.listShared({ walletAddress }, page)
      : await lists.listOfClient({ walletAddress, client }, page)
    return json(200, { pagination, result: result.map(toBody) })
  })
}

const parameters = ['wallet-address', 'first', 'last', 'cursor'] as const

type Parameters = { readonly [Name in (typeof parameters)[number]]?: string }

/**
 * Reads the query of a list operation.
 *
 * @see Open Payments OpenAPI, parameters `wallet-address`, `first`, `last` and `cursor`
 */
export function readListRequest({ target }: Pick<SignedMessage, 'target'>): Parsed<ListRequest> {
  const query = readQuery(target)
  if (!query.ok) return query
  const { 'wallet-address': text, first, last, cursor } = query.value
  if (text === undefined) return { ok: false, path: 'wallet-address', problem: 'is missing' }
  const walletAddress = canonicalUrl(text)
  if (walletAddress === undefined) {
    return { ok: false, path: 'wallet-address', problem: resourceUrlForm }
  }
  const page = readPageQuery({
    ...(first !== undefined && { first: wholeNumber(first) }),
    ...(last !== undefined && { last: wholeNumber(last) }),
    ...(cursor !== undefined && { cursor }),
  })
  return page.ok ? ok({ walletAddress, page: page.value }) : page
}

/** A published client sends this name instead of the one in the OpenAPI document. */
const aliases: Readonly<Record<string, string>> = { walletAddress: 'wallet-address' }

/** Reads each known parameter at most once. Unknown ones are ignored, because published clients send some. */
function readQuery(target: string): Parsed<Parameters> {
  const start = target.indexOf('?')
  const given = [...new URLSearchParams(start === -1 ? '' : target.slice(start))].map(
    ([name, value]) => [Object.hasOwn(aliases, name) ? aliases[name] : name, value] as const,
  )
  const known = parameters.map((name) => given.filter(([each]) => each === name))
  const repeated = parameters.find((_, index) => (known[index]?.length ?? 0) > 1)
  if (repeated !== undefined) return { ok: false, path: repeated, problem: 'must not be repeated' }
  // Some clients send every parameter that they know, with an empty value if it is not set.
  const present = known.flat().filter(([name, value]) => value !== '' || name === 'wallet-address')
  return ok(Object.fromEntries(present))
}

/** Returns NaN for any form other than plain decimal digits, such as `1e1`, `+5` or `007`. */
function wholeNumber(text: string): number {
  return /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
}
