import type { GrantEvent } from '../../core/grant/event.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { OutgoingPaymentEvent } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import { unknownName } from '../../util/known-options.js'
import { invalidOption } from '../../util/option-error.js'

/** A change of a record, for the host. No event contains a token, interaction reference, key or secret. */
export type DomainEvent = GrantEvent | IncomingPaymentEvent | OutgoingPaymentEvent | QuoteEvent

/** The type of an event, such as `outgoing-payment.created`. */
export type EventType = DomainEvent['type']

/** Whether a type of event is recorded. */
export type RecordedEvents = (type: EventType) => boolean

/**
 * Every type, and whether it is recorded by default: those of consent, revocation and money, on which a host acts.
 * The others only repeat what the host did itself, or what a client did without an effect on money or rights.
 */
export const eventTypes: Readonly<Record<EventType, boolean>> = {
  'grant.requested': false,
  'grant.approved': true,
  'grant.denied': true,
  'grant.issued': false,
  'grant.rotated': false,
  'grant.token-revoked': true,
  'grant.cancelled': true,
  'grant.revoked': true,
  'incoming-payment.created': false,
  'incoming-payment.received': true,
  'incoming-payment.completed': true,
  'incoming-payment.expired': true,
  'quote.created': false,
  'outgoing-payment.created': true,
  'outgoing-payment.begun': false,
  'outgoing-payment.sent': true,
  'outgoing-payment.completed': true,
  'outgoing-payment.failed': true,
}

const consumersMax = 8

/**
 * Reads the option `eventConsumers`: a list of names.
 *
 * @throws {OptionError} for anything else.
 */
export function eventConsumers(
  option: readonly string[] | undefined,
): readonly string[] | undefined {
  if (option === undefined) return undefined
  const isName = (each: unknown) => typeof each === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(each)
  const isList =
    Array.isArray(option) &&
    option.length > 0 &&
    option.length <= consumersMax &&
    new Set(option).size === option.length &&
    option.every(isName)
  if (isList) return [...option]
  const problem = 'of 1 to 64 letters, digits, hyphens and underscores, without duplicates'
  throw invalidOption('eventConsumers', `must be a list of 1 to ${consumersMax} names ${problem}`)
}

/**
 * Reads the option `recordsEvents`: true for all types, false for none, a list of types, or the default.
 *
 * @throws {OptionError} for an unknown type, with the nearest known one.
 */
export function recordedEvents(option: boolean | readonly EventType[] | undefined): RecordedEvents {
  if (option === undefined) return (type) => eventTypes[type]
  if (typeof option === 'boolean') return () => option
  const isList = Array.isArray(option) && option.every((each) => typeof each === 'string')
  if (!isList) throw invalidOption('recordsEvents', 'must be a boolean or a list of event types')
  const unknown = unknownName(Object.fromEntries(option.map((type) => [type, true])), eventTypes)
  if (unknown !== undefined) {
    const { name, hint } = unknown
    throw invalidOption('recordsEvents', `contains ${name}, which is not an event type${hint}`)
  }
  const types = new Set(option)
  return (type) => types.has(type)
}
