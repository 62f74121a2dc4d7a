import { readFields } from '../../src/http/fields.js'
import type { HttpRequest } from '../../src/index.js'
import type { SignedMessage } from '../../src/protocol/http-signature/components.js'
import type { Freshness, Inspection } from '../../src/protocol/http-signature/inspect.js'
import { startOfTests } from './clock.js'
import { testKey } from './keys.js'
import { type SignOptions, signedRequest } from './sign.js'

export const messageOrigin = 'https://wallet.example'
export const messageKey = testKey('shop')
/** `created` of every message that does not say otherwise, in seconds. */
export const messageCreated = startOfTests / 1000

export const profileFreshness: Freshness = { ageMaxMs: 300_000, skewMaxMs: 60_000 }

/** A request as a verifier sees it, once its header lines have been sorted. */
export function messageOf(request: HttpRequest, origin: string = messageOrigin): SignedMessage {
  const read = readFields(request)
  if (!('fields' in read)) throw new Error(read.reason)
  const { method, url: target, headersMerged: fieldsMerged = false, body } = request
  return { method, origin, target, fields: read.fields, fieldsMerged, body }
}

/** A message signed by the shop's key, unless a test bends something. */
export function signedMessage(options: Partial<SignOptions> = {}): SignedMessage {
  return messageOf(signedRequest(signOptions(options)))
}

export function signOptions(options: Partial<SignOptions> = {}): SignOptions {
  const url = `${messageOrigin}/op/incoming-payments`
  return { method: 'POST', url, key: messageKey, created: messageCreated, ...options }
}

/** The same message with other field lines under some names; `undefined` takes a field away. */
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
  return 'problem' in inspection ? inspection.problem : undefined
}
