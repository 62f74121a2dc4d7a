import type { Instant } from '../../core/decision.js'
import { ok, type Problem, type Result } from '../../core/result.js'
import { combinedValue, componentValue, type SignedMessage } from './components.js'
import { contentDigestProblem } from './content-digest.js'
import { readDialect, type SignatureFields } from './dialects.js'
import {
  byteSequence,
  type DictionaryMember,
  type InnerList,
  type Item,
  isInnerList,
  isText,
  type Parameters,
  parseStrictDictionary,
  serializeInnerList,
  serializeItem,
} from './structured-fields.js'

/** The maximum age and clock skew of a signature, in milliseconds. */
export interface Freshness {
  readonly ageMaxMs: number
  readonly skewMaxMs: number
}

/** Which signatures are accepted. */
export interface SignatureRules extends Freshness {
  /** Whether to reject the dialects of SDKs, which are not Structured Fields. Default: false. */
  readonly strict?: boolean
}

/** A signature that passed all checks that need no key. */
export interface SignatureCandidate {
  readonly keyid: string
  readonly createdAt: Instant
  readonly nonce?: string
  readonly signature: Uint8Array
  /** The possible signature bases: two for an empty path, which clients sign with or without its slash. */
  readonly bases: readonly string[]
}

export type Inspection = Result<readonly SignatureCandidate[], Problem>

const labelsMax = 4
const componentsMax = 16
const signatureLength = 64

/**
 * Performs all checks of the signatures of a message that need no key: syntax, coverage, parameters, freshness and
 * digest, in this order. Invalid requests therefore cause no key lookup and no curve arithmetic. One acceptable
 * signature is enough, even beside a malformed one.
 *
 * @see RFC 9421 section 3.2; RFC 9635 section 7.3.1
 */
export async function inspectSignatures(
  message: SignedMessage,
  now: Instant,
  rules: SignatureRules,
): Promise<Inspection> {
  const fields = signatureFields(message, rules)
  if (!fields.ok) return fields
  const candidates: SignatureCandidate[] = []
  let problem = 'there is no signature'
  for (const [label, input] of fields.value.inputs.members) {
    const result = inspectOne(label, input, fields.value, message, now, rules)
    if (result.ok) candidates.push(result.value)
    else problem = result.problem
  }
  if (candidates.length === 0) return { ok: false, problem }
  const digest = message.fields.get('content-digest')
  if (digest !== undefined) {
    const wrong = await contentDigestProblem(combinedValue(digest), message.body)
    if (wrong !== undefined) return { ok: false, problem: wrong }
  }
  return ok(candidates)
}

function signatureFields(
  { fields }: SignedMessage,
  { strict = false }: SignatureRules,
): Result<SignatureFields, Problem> {
  const inputLines = fields.get('signature-input')
  const signatureLines = fields.get('signature')
  if (inputLines === undefined) return { ok: false, problem: 'Signature-Input is missing' }
  if (signatureLines === undefined) return { ok: false, problem: 'Signature is missing' }
  const input = combinedValue(inputLines)
  const signature = combinedValue(signatureLines)
  const inputs = parseStrictDictionary(input)
  const signatures = inputs === undefined ? undefined : parseStrictDictionary(signature)
  const standard = inputs && signatures && { inputs, signatures }
  const read = standard ?? (strict ? undefined : readDialect(input, signature))
  if (read === undefined) {
    const name = inputs === undefined ? 'Signature-Input' : 'Signature'
    return {
      ok: false,
      problem: `${name} is not a Structured Fields dictionary, or contains a duplicate key`,
    }
  }
  return labelsProblem(read) ?? ok(read)
}

function labelsProblem({ inputs, signatures }: SignatureFields): Problem | undefined {
  const labels = [...inputs.members.keys()]
  if (labels.length > labelsMax)
    return { ok: false, problem: `there are more than ${labelsMax} signatures` }
  const matching =
    labels.length === signatures.members.size &&
    labels.every((label) => signatures.members.has(label))
  return matching
    ? undefined
    : { ok: false, problem: 'Signature-Input and Signature have different labels' }
}

function inspectOne(
  label: string,
  input: DictionaryMember,
  { inputs, signatures }: SignatureFields,
  message: SignedMessage,
  now: Instant,
  freshness: Freshness,
): Result<SignatureCandidate, Problem> {
  if (!isInnerList(input))
    return { ok: false, problem: 'Signature-Input is not a list of components' }
  const signature = byteSequence(signatures.members.get(label))
  if (signature?.length !== signatureLength) {
    return { ok: false, problem: `Signature is not a byte sequence of ${signatureLength} bytes` }
  }
  const coverage = coverageProblem(input[0], message)
  if (coverage !== undefined) return { ok: false, problem: coverage }
  if (inputs.decimals.has(`${label} created`)) return { ok: false, problem: 'created is a decimal' }
  if (inputs.decimals.has(`${label} expires`)) return { ok: false, problem: 'expires is a decimal' }
  const parameters = readParameters(input[1], now, freshness)
  if (!parameters.ok) return parameters
  const bases = signatureBases(input, inputs.canonicalList, message)
  return bases.ok ? ok({ ...parameters.value, signature, bases: bases.value }) : bases
}

/**
 * Checks that no component is covered twice, and all required ones are (RFC 9635 section 7.3.1). Without its
 * `Idempotency-Key`, a request for a payment would be a request for another payment.
 */
function coverageProblem(components: readonly Item[], message: SignedMessage): string | undefined {
  if (components.length > componentsMax) return `more than ${componentsMax} components are covered`
  const identities: string[] = []
  for (const component of components) {
    const identity = identityOf(component)
    if (identities.includes(identity)) return `${identity} is covered twice`
    identities.push(identity)
  }
  if (!identities.includes('@method')) return '@method is not covered'
  if (!identities.includes('@target-uri')) return '@target-uri is not covered'
  if (message.fields.has('authorization') && !identities.includes('authorization')) {
    return 'authorization is not covered'
  }
  if (message.fields.has('idempotency-key') && !identities.includes('idempotency-key')) {
    return 'idempotency-key is not covered'
  }
  if (message.body.length > 0 && !identities.includes('content-digest')) {
    return 'content-digest is not covered'
  }
  return undefined
}

function readParameters(
  parameters: Parameters,
  now: Instant,
  { ageMaxMs, skewMaxMs }: Freshness,
): Result<Omit<SignatureCandidate, 'signature' | 'bases'>, Problem> {
  const created = parameters.get('created')
  const expires = parameters.get('expires')
  const keyid = parameters.get('keyid')
  const nonce = parameters.get('nonce')
  const tag = parameters.get('tag')
  const alg = parameters.get('alg')
  if (tag !== undefined && tag !== 'gnap') return { ok: false, problem: 'tag is not gnap' }
  if (alg !== undefined && alg !== 'ed25519') return { ok: false, problem: 'alg is not ed25519' }
  if (!isText(keyid)) return { ok: false, problem: 'keyid is missing or not a String' }
  if (nonce !== undefined && !isText(nonce)) return { ok: false, problem: 'nonce is not a String' }
  if (typeof created !== 'number')
    return { ok: false, problem: 'created is missing or not an Integer' }
  if (expires !== undefined && typeof expires !== 'number') {
    return { ok: false, problem: 'expires is not an Integer' }
  }
  if (expires !== undefined && expires <= created)
    return { ok: false, problem: 'expires is not after created' }
  const createdAt = created * 1000
  if (now - createdAt > ageMaxMs) return { ok: false, problem: 'created is too long ago' }
  if (createdAt - now > skewMaxMs) return { ok: false, problem: 'created is in the future' }
  if (expires !== undefined && now > expires * 1000)
    return { ok: false, problem: 'expires has passed' }
  return ok(nonce === undefined ? { keyid, createdAt } : { keyid, createdAt, nonce })
}

/** Builds the signature bases from the received message (RFC 9421 section 2.5). */
function signatureBases(
  input: InnerList,
  canonical: string | undefined,
  message: SignedMessage,
): Result<readonly string[], Problem> {
  const [components] = input
  // An origin is equivalent with and without the slash (RFC 9110 section 4.2.3), but the signature bases differ.
  const atOrigin = message.target === '/'
  let base = ''
  let slashless = ''
  for (const component of components) {
    const result = componentValue(component, message)
    if (!result.ok) return result
    const identifier = identifierOf(component)
    base += `${identifier}: ${result.value}\n`
    if (!atOrigin) continue
    const value = component[0] === '@target-uri' ? message.origin : result.value
    slashless += `${identifier}: ${value}\n`
  }
  const end = `"@signature-params": ${canonical ?? serializeInnerList(input)}`
  return ok(atOrigin ? [base + end, slashless + end] : [base + end])
}

function identifierOf(component: Item): string {
  const [name, parameters] = component
  return parameters.size === 0 ? `"${name}"` : serializeItem(component)
}

/** Parameters identify a component regardless of their order (RFC 9421 section 2). */
function identityOf([name, parameters]: Item): string {
  if (parameters.size === 0 && typeof name === 'string') return name
  const sorted = new Map([...parameters].sort(([a], [b]) => (a < b ? -1 : 1)))
  return serializeItem([name, sorted])
}
