import type { Item } from 'structured-headers'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { readFields } from '../../src/http/fields.js'
import {
  type ComponentValue,
  componentReader,
  dictionaryReader,
  type SignedMessage,
} from '../../src/protocol/http-signature/components.js'
import type { Freshness, Inspection } from '../../src/protocol/http-signature/inspect.js'
import { startOfTests } from './clock.js'
import { testKey } from './keys.js'
import { type SignOptions, signedRequest } from './sign.js'

export const messageOrigin = 'https://wallet.example'
export const messageKey = testKey('shop')
/** `created` of every message that does not override it, in seconds. */
export const messageCreated = startOfTests / 1000

export const profileFreshness: Freshness = { ageMaxMs: 300_000, skewMaxMs: 60_000 }

/** Converts a request to the form that the verifier reads, with sorted header lines. */
export function messageOf(request: HttpRequest, origin: string = messageOrigin): SignedMessage {
  const read = readFields(request)
  if (!read.ok) throw new Error(read.reason)
  const { method, url: target, headersMerged: fieldsMerged = false, body } = request
  return { method, origin, target, fields: read.value, fieldsMerged, body }
}

/** Builds a message signed by the shop's key, with the changes of the test. */
export function signedMessage(options: Partial<SignOptions> = {}): SignedMessage {
  return messageOf(signedRequest(signOptions(options)))
}

export function signOptions(options: Partial<SignOptions> = {}): SignOptions {
  const url = `${messageOrigin}/op/incoming-payments`
  return { method: 'POST', url, key: messageKey, created: messageCreated, ...options }
}

/** Returns the message with other lines for some fields; `undefined` removes a field. */
export function withFields(
  message: SignedMessage,
  changes: Readonly<Record<string, readonly string[] | undefined>>,
): SignedMessage {
  const fields = new Map(message.fields)
  for (const [name, lines] of Object.entries(changes)) {
    if (lines === undefined) fields.delete(name)
    else fields.set(name, lines)
  }
  return { ...message, fields }
}

export function lineOf(message: SignedMessage, name: string): string {
  return message.fields.get(name)?.join(', ') ?? ''
}

export function problemOf(inspection: Inspection): string | undefined {
  return inspection.ok ? undefined : inspection.problem
}

/** Reads one component of a message. */
export function componentIn(message: SignedMessage, component: Item): ComponentValue {
  return componentReader(message, dictionaryReader(message))(component, 'the only one')
}
