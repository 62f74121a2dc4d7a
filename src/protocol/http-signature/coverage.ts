import { ok, type Problem, type Result } from '../../core/result.js'
import {
  type ComponentReader,
  coveredLengthMax,
  identityOf,
  type SignedMessage,
} from './components.js'
import { type InnerList, type Item, serializeMember } from './structured-fields.js'

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
  if (fields.has('authorization') && !identities.includes('authorization')) {
    return uncovered('authorization')
  }
  if (fields.has('idempotency-key') && !identities.includes('idempotency-key')) {
    return uncovered('idempotency-key')
  }
  if (body.length > 0 && !identities.includes('content-digest')) return uncovered('content-digest')
  return ok(identities)
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
export function signatureBases(
  input: InnerList,
  values: readonly string[],
  { origin, target }: SignedMessage,
): readonly string[] {
  // An origin is equivalent with and without the slash (RFC 9110 section 4.2.3), but the signature bases differ.
  const atOrigin = target === '/'
  let base = ''
  let slashless = ''
  input[0].forEach((component, index) => {
    const identifier = identifierOf(component)
    const value = values[index]
    base += `${identifier}: ${value}\n`
    if (!atOrigin) return
    slashless += `${identifier}: ${component[0] === '@target-uri' ? origin : value}\n`
  })
  const end = `"@signature-params": ${serializeMember(input)}`
  return atOrigin ? [base + end, slashless + end] : [base + end]
}

function identifierOf(component: Item): string {
  const [name, parameters] = component
  return parameters.size === 0 ? `"${name}"` : serializeMember(component)
}
