import { type Item, isInnerList, type Parameters, serializeItem } from 'structured-headers'
import { ok, type Problem, type Result } from '../../core/decision.js'
import type { Instant } from '../../core/instant.js'
import type { PublicJwk } from '../../ports/host.js'
import {
  type ComponentReader,
  combinedValue,
  componentReader,
  coveredLengthMax,
  type DictionaryReader,
  dictionaryReader,
  identityOf,
  type SignedMessage,
} from './components.js'
import { contentDigestProblem } from './content-digest.js'
import { readDialect, type SignatureFields } from './dialects.js'
import {
  byteSequence,
  type DictionaryMember,
  dictionaryLengthMax,
  memberText,
} from './dictionary.js'
import { verifierOf } from './ed25519.js'

/** The maximum age and clock skew of a signature, in milliseconds. */
export interface Freshness {
  readonly ageMaxMs: number
  readonly skewMaxMs: number
}

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
  /** Builds the possible signature bases: two for an empty path, which clients sign with or without its slash. */
  readonly bases: () => readonly string[]
}

export type Inspection = Result<readonly SignatureCandidate[], Problem>

/**
 * The published TypeScript client repeats GET and DELETE, after answers such as 429 and 503, with the text `undefined`
 * in both fields. Its caller sees only the answer to the repeat.
 */
const signatureLost = 'repeated without a signature: the first answer was another one'

const labelsMax = 4
const signatureLength = 64

/**
 * Performs all checks of the signatures of a message that need no key: syntax, coverage, parameters, freshness and
 * digest, in this order. Invalid requests therefore cause no key lookup and no curve arithmetic. One acceptable
 * signature is enough, even next to a malformed one.
 *
 * @see RFC 9421 section 3.2; RFC 9635 section 7.3.1
 */
export async function inspectSignatures(
  message: SignedMessage,
  now: Instant,
  rules: SignatureRules,
): Promise<Inspection> {
  const dictionaryOf = dictionaryReader(message)
  const read = signatureFields(message, dictionaryOf, rules)
  if (!read.ok) return read
  const readComponent = componentReader(message, dictionaryOf)
  const request = { message, fields: read.value, readComponent, now, freshness: rules }
  const candidates: SignatureCandidate[] = []
  let problem = 'there is no signature'
  for (const [label, input] of read.value.inputs) {
    const result = inspectOne(label, input, request)
    if (result.ok) candidates.push(result.value)
    else problem = result.problem
  }
  if (candidates.length === 0) return { ok: false, problem }
  if (message.fields.has('content-digest')) {
    const wrong = await contentDigestProblem(dictionaryOf('content-digest'), message.body)
    if (wrong !== undefined) return { ok: false, problem: wrong }
  }
  return ok(candidates)
}

function signatureFields(
  { fields }: SignedMessage,
  dictionaryOf: DictionaryReader,
  { strict = false }: SignatureRules,
): Result<SignatureFields, Problem> {
  const inputLines = fields.get('signature-input')
  const signatureLines = fields.get('signature')
  if (inputLines === undefined) return { ok: false, problem: 'Signature-Input is missing' }
  if (signatureLines === undefined) return { ok: false, problem: 'Signature is missing' }
  const input = combinedValue(inputLines)
  const signature = combinedValue(signatureLines)
  if (input === 'undefined') return { ok: false, problem: signatureLost }
  if (Math.max(input.length, signature.length) > dictionaryLengthMax) {
    const problem = `Signature-Input or Signature has more than ${dictionaryLengthMax} characters`
    return { ok: false, problem }
  }
  const inputs = dictionaryOf('signature-input')
  const signatures = inputs === undefined ? undefined : dictionaryOf('signature')
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
  const labels = [...inputs.keys()]
  if (labels.length > labelsMax)
    return { ok: false, problem: `there are more than ${labelsMax} signatures` }
  const alone = [
    ...(labels.every((label) => signatures.has(label)) ? [] : ['Signature-Input']),
    ...([...signatures.keys()].every((label) => inputs.has(label)) ? [] : ['Signature']),
  ]
  // RFC 9421 section 4: each label must be in both fields.
  return alone.length === 0
    ? undefined
    : { ok: false, problem: `a label is in ${alone.join(' alone, another in ')} alone` }
}

interface InspectedRequest {
  readonly message: SignedMessage
  readonly fields: SignatureFields
  readonly readComponent: ComponentReader
  readonly now: Instant
  readonly freshness: Freshness
}

function inspectOne(
  label: string,
  input: DictionaryMember,
  { message, fields: { signatures }, readComponent, now, freshness }: InspectedRequest,
): Result<SignatureCandidate, Problem> {
  const { value: list } = input
  if (!isInnerList(list))
    return { ok: false, problem: 'Signature-Input is not a list of components' }
  const signature = byteSequence(signatures.get(label))
  if (signature?.length !== signatureLength) {
    return { ok: false, problem: `Signature is not a byte sequence of ${signatureLength} bytes` }
  }
  const identities = readCoverage(list[0], message)
  if (!identities.ok) return identities
  if (input.decimals?.some((name) => name === 'created' || name === 'expires'))
    return { ok: false, problem: 'created or expires is a Decimal' }
  const parameters = readParameters(list[1], now, freshness)
  if (!parameters.ok) return parameters
  const values = coveredValues(list[0], identities.value, readComponent)
  if (!values.ok) return values
  const bases = () => signatureBases(list[0], memberText(input), values.value, message)
  return ok({ signature, bases, ...parameters.value })
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
  if (keyid === undefined) return { ok: false, problem: 'keyid is missing' }
  if (typeof keyid !== 'string') return { ok: false, problem: 'keyid is not a String' }
  if (nonce !== undefined && typeof nonce !== 'string')
    return { ok: false, problem: 'nonce is not a String' }
  if (created === undefined) return { ok: false, problem: 'created is missing' }
  if (typeof created !== 'number') return { ok: false, problem: 'created is not an Integer' }
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

const componentsMax = 16

/**
 * Checks that no component is covered twice, and that all required ones are covered (RFC 9635 section 7.3.1).
 * `Idempotency-Key` must be covered, because the same request with another key asks for another payment.
 *
 * @returns the identity of each component.
 */
export function readCoverage(
  components: readonly Item[],
  { fields, body }: SignedMessage,
): Result<readonly string[], Problem> {
  if (components.length > componentsMax)
    return { ok: false, problem: `more than ${componentsMax} components are covered` }
  const identities: string[] = []
  for (const component of components) {
    const identity = identityOf(component)
    if (identities.includes(identity)) return { ok: false, problem: `${identity} is covered twice` }
    identities.push(identity)
  }
  if (!identities.includes('@method')) return uncovered('@method')
  if (!identities.includes('@target-uri')) return uncovered('@target-uri')
  if (fields.has('authorization') && !coversField(identities, 'authorization')) {
    return uncovered('authorization')
  }
  if (fields.has('idempotency-key') && !coversField(identities, 'idempotency-key')) {
    return uncovered('idempotency-key')
  }
  if (body.length > 0 && !coversField(identities, 'content-digest')) {
    return fields.has('content-digest')
      ? uncovered('content-digest')
      : { ok: false, problem: 'Content-Digest is missing' }
  }
  return ok(identities)
}

/**
 * Whether a whole field is covered: as it is, as its lines in bytes (`;bs`), or as a dictionary (`;sf`; RFC 9421
 * section 2.1). A member of it (`;key`) is not enough.
 */
function coversField(identities: readonly string[], name: string): boolean {
  return [name, `"${name}";bs`, `"${name}";sf`].some((each) => identities.includes(each))
}

function uncovered(name: string): Problem {
  return { ok: false, problem: `${name} is not covered` }
}

/** Reads the values of the covered components (RFC 9421 section 2.5). */
export function coveredValues(
  components: readonly Item[],
  identities: readonly string[],
  readComponent: ComponentReader,
): Result<readonly string[], Problem> {
  const values: string[] = []
  let length = 0
  for (const component of components) {
    const result = readComponent(component, identities[values.length] ?? '')
    if (!result.ok) return result
    length += result.value.length
    if (length > coveredLengthMax)
      return { ok: false, problem: `more than ${coveredLengthMax} characters are covered` }
    values.push(result.value)
  }
  return ok(values)
}

/** Builds the possible signature bases from the values of the covered components (RFC 9421 section 2.5). */
function signatureBases(
  components: readonly Item[],
  parameters: string,
  values: readonly string[],
  { origin, target }: SignedMessage,
): readonly string[] {
  // An origin is equivalent with and without the slash (RFC 9110 section 4.2.3), but the signature bases differ.
  const atOrigin = target === '/'
  let base = ''
  let slashless = ''
  components.forEach((component, index) => {
    const identifier = identifierOf(component)
    const value = values[index]
    base += `${identifier}: ${value}\n`
    if (!atOrigin) return
    slashless += `${identifier}: ${component[0] === '@target-uri' ? origin : value}\n`
  })
  const end = `"@signature-params": ${parameters}`
  return atOrigin ? [base + end, slashless + end] : [base + end]
}

function identifierOf(component: Item): string {
  const [name, parameters] = component
  return parameters.size === 0 ? `"${name}"` : serializeItem(component)
}

/** How many signature bases are verified with one key, in the order of `Signature-Input`. */
const attemptsMax = 2

/**
 * Finds a signature by the given key among the candidates that passed inspection. Ignores signatures of other keys,
 * even if they are valid, and builds no signature base for them.
 */
export async function verifyCandidates(
  candidates: readonly SignatureCandidate[],
  key: PublicJwk,
): Promise<SignatureCandidate | undefined> {
  const verify = verifierOf(key.x)
  if (verify === undefined) return undefined
  let attempts = 0
  for (const candidate of candidates) {
    if (candidate.keyid !== key.kid) continue
    for (const base of candidate.bases()) {
      if (attempts === attemptsMax) return undefined
      attempts += 1
      if (await verify(candidate.signature, base)) return candidate
    }
  }
  return undefined
}
