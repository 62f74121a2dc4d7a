import * as v from 'valibot'
import { assetMembers, objectOf, readHostObject, refusing, uriProblem } from './schema.js'
import { isSecure, parseUrl } from './url.js'

// The values to which the ports of the host must resolve. Hosts may return more members.

/** The longest reason that a host publishes to clients, in characters. */
export const publicReasonLengthMax = 256

export const publicReasonSchema = v.optional(
  v.pipe(
    v.string(),
    v.check(
      ({ length }) => length > 0 && length <= publicReasonLengthMax,
      `must have 1 to ${publicReasonLengthMax} characters`,
    ),
  ),
)

/** The answer that the owner must confirm a payment. */
export const confirmationSchema = objectOf(
  v.object({
    url: v.pipe(
      v.string(),
      v.check((text) => {
        const url = parseUrl(text)
        return url !== undefined && isSecure(url)
      }, 'must be an https URL without userinfo'),
    ),
    until: v.pipe(v.number(), v.integer('must be an integer')),
  }),
)

/** The answer that an arrival waits for a review. */
export const reviewSchema = objectOf(
  v.object({
    retryAt: v.pipe(v.number(), v.safeInteger('must be an integer')),
    reason: v.optional(v.string()),
  }),
)

export const keySchema = objectOf(v.object({ kid: v.string(), x: v.string() }))

export const accountSchema = objectOf(
  v.object({
    url: v.string(),
    ...assetMembers,
    publicName: v.optional(v.string()),
    active: v.optional(v.boolean()),
    keys: v.optional(v.array(keySchema)),
    publicProperties: v.optional(v.pipe(v.unknown(), refusing(publicPropertiesProblem))),
  }),
)

/** The members of a wallet address document that the server itself writes. */
const standardMembers = [
  'id',
  'publicName',
  'assetCode',
  'assetScale',
  'authServer',
  'resourceServer',
]

function publicPropertiesProblem(value: unknown): string | undefined {
  const read = readHostObject(value)
  if (!read.ok) return read.problem
  const name = standardMembers.find((each) => Object.hasOwn(read.value, each))
  return name && `must not contain ${name}`
}

export const ilpAddress = /^(?:g|private|example|peer|self|test[1-3]?|local)(?:\.[a-zA-Z0-9_~-]+)+$/
const ilpAddressLengthMax = 1_023
const base64url = /^(?:[\w-]{4})*[\w-]{2,4}$/

/** @see Open Payments OpenAPI, schema `ilp-payment-method` */
export const methodsSchema = v.array(
  objectOf(
    v.object({
      type: v.literal('ilp'),
      ilpAddress: v.pipe(
        v.string(),
        v.regex(ilpAddress, 'must be an ILP address'),
        v.maxLength(ilpAddressLengthMax, `must have at most ${ilpAddressLengthMax} characters`),
      ),
      sharedSecret: v.pipe(v.string(), v.regex(base64url, 'must be base64url without padding')),
    }),
  ),
)

export const subjectSchema = objectOf(
  v.object({
    id: v.pipe(v.string(), refusing(uriProblem)),
    format: v.literal('uri'),
  }),
)
