import { createHash } from 'node:crypto'
import type { Stored } from '../../src/entry-adapter.js'
import type { DeliveredEvent } from '../../src/index.js'
import { deliveredId, subjectOf } from '../../src/service/event-record.js'
import { grantEndpoint, resourceServer } from '../../test/support/world.js'
import type { Evidence } from './evidence.js'
import { type GrantEntry, type Journal, sumOf } from './journal.js'

/** Returns a description of every violation that it finds. */
export type Law = (journal: Journal, evidence: Evidence) => readonly string[]

/** Laws that hold at every instant without requests in progress, whatever went wrong before. */
export const laws: readonly Law[] = [
  nobodyGotAnAnswerThatNobodyShouldGet,
  everyAcknowledgedPaymentIsThere,
  everyPaymentHasReceivedExactlyWhatWasCounted,
  everyTransferIsCountedOnce,
  aPaymentIsCompleteOnceItsLimitIsReached,
  everyAcknowledgedGrantIsThere,
  noGrantHasTwoLiveTokens,
  theLatestTokenIsLiveUnlessRevoked,
  everyVersionOfAPaymentHasItsEvent,
  everyStepOfAGrantHasItsEvent,
  everyEventTellsOfARecordThatIsThere,
  anEventIdTellsOneThing,
  eventsOfARecordAreDeliveredInOrder,
]

/** Laws that also hold after the event consumer has had enough time. */
export const lawsOfPeace: readonly Law[] = [nothingWaitsToBeDelivered]

export function breaches(all: readonly Law[], journal: Journal, evidence: Evidence): string[] {
  return all.flatMap((law) => law(journal, evidence).map((breach) => `${law.name}: ${breach}`))
}

export function nobodyGotAnAnswerThatNobodyShouldGet({ surprises }: Journal): readonly string[] {
  return surprises
}

export function everyAcknowledgedPaymentIsThere(
  journal: Journal,
  { payments }: Evidence,
): readonly string[] {
  return journal.payments.filter(({ id }) => !payments.has(id)).map(({ id }) => `${id} is missing`)
}

/** A transfer without a response may count or not; every other transfer has a known outcome. */
export function everyPaymentHasReceivedExactlyWhatWasCounted(
  journal: Journal,
  { payments }: Evidence,
): readonly string[] {
  return journal.payments.flatMap((payment) => {
    const received = BigInt(payments.get(payment.id)?.received ?? -1)
    const least = sumOf(payment, 'counted')
    const most = least + sumOf(payment, 'unknown')
    return received >= least && received <= most
      ? []
      : [`${payment.id} has received ${received}, not ${least} to ${most}`]
  })
}

/** Also for transfers without a response: a payment and its transfers are written together or not at all. */
export function everyTransferIsCountedOnce(
  _: Journal,
  { payments, transfers }: Evidence,
): readonly string[] {
  const sums = new Map([...payments.keys()].map((id) => [id, 0n]))
  for (const { paymentId, amount } of transfers) {
    sums.set(paymentId, (sums.get(paymentId) ?? 0n) + BigInt(amount.value))
  }
  return [...sums].flatMap(([id, sum]) => {
    const received = payments.get(id)?.received
    return received === `${sum}`
      ? []
      : [`${id} has received ${received} by transfers of ${sum} in all`]
  })
}

export function aPaymentIsCompleteOnceItsLimitIsReached(
  _: Journal,
  { payments }: Evidence,
): readonly string[] {
  return [...payments.values()].flatMap(({ id, completed, received, incomingAmount }) => {
    const due = incomingAmount !== undefined && BigInt(received) >= BigInt(incomingAmount.value)
    return completed === due ? [] : [`${id} has received ${received}, and completed: ${completed}`]
  })
}

export function everyAcknowledgedGrantIsThere(
  journal: Journal,
  { grants }: Evidence,
): readonly string[] {
  return journal.grants.filter(({ id }) => !grants.has(id)).map(({ id }) => `${id} is missing`)
}

/** Checks every value that was ever issued. */
export function noGrantHasTwoLiveTokens(journal: Journal, evidence: Evidence): readonly string[] {
  return journal.grants.flatMap(({ id, tokens }) => {
    const live = tokens.filter((token) => evidence.active.has(token))
    return live.length <= 1 ? [] : [`${id} has ${live.length} live tokens`]
  })
}

export function theLatestTokenIsLiveUnlessRevoked(
  journal: Journal,
  { active }: Evidence,
): readonly string[] {
  return journal.grants.flatMap(({ id, tokens, revoked, inFlight }) => {
    const latest = tokens.at(-1)
    if (latest === undefined) return []
    if (revoked)
      return active.has(latest) ? [`${id} was revoked, and its token is still active`] : []
    if (inFlight !== undefined || active.has(latest)) return []
    return [`the latest token of ${id}, the ${tokens.length}th, is not active`]
  })
}

/**
 * Every version of a payment is from its creation, from receipts or from its expiry, so it has an event, and each event
 * up to the last one that the payment names is told.
 */
export function everyVersionOfAPaymentHasItsEvent(
  _: Journal,
  evidence: Evidence,
): readonly string[] {
  const told = new Set(
    Array.from(toldIds(evidence), placeOf).map(
      ({ recordId, kind, place }) => `${recordId}.${kind}.${place}`,
    ),
  )
  return [...evidence.payments.values()].flatMap((payment) => {
    const { id, version } = payment
    const last = lastPlace(payment)
    const lost = Array.from(
      { length: last },
      (_each, index) => `${id}.incoming-payment.${index + 1}`,
    )
      .filter((eventId) => !told.has(eventId))
      .map((eventId) => `${eventId} is lost`)
    return last < version ? [`${id} has ${last} events at version ${version}`, ...lost] : lost
  })
}

/** A grant has one event for each acknowledged step, and at most one more while a step has no response. */
export function everyStepOfAGrantHasItsEvent(
  journal: Journal,
  evidence: Evidence,
): readonly string[] {
  const told = new Map<string, Set<string>>()
  for (const event of [...evidence.pending.map(eventOf), ...evidence.delivered]) {
    if (!('grantId' in event)) continue
    const key = `${event.grantId} ${event.type}`
    told.set(key, (told.get(key) ?? new Set()).add(event.id))
  }
  return journal.grants.flatMap((grant) =>
    Object.entries(stepsOf(grant)).flatMap(([type, { acknowledged, open }]) => {
      const events = told.get(`${grant.id} ${type}`)?.size ?? 0
      const most = acknowledged + (open ? 1 : 0)
      return events >= acknowledged && events <= most
        ? []
        : [`${grant.id} has ${events} events ${type}, not ${acknowledged} to ${most}`]
    }),
  )
}

function stepsOf({ needsConsent, tokens, approved, revoked, inFlight }: GrantEntry) {
  const issued = needsConsent ? Math.min(1, tokens.length) : 1
  return {
    'grant.requested': { acknowledged: 1, open: false },
    'grant.approved': { acknowledged: approved ? 1 : 0, open: inFlight === 'approve' },
    'grant.issued': { acknowledged: issued, open: inFlight === 'continue' },
    'grant.rotated': {
      acknowledged: Math.max(0, tokens.length - 1),
      open: inFlight === 'rotate',
    },
    'grant.revoked': { acknowledged: revoked ? 1 : 0, open: inFlight === 'revoke' },
  }
}

/** No event reports a change that did not happen or was rolled back. */
export function everyEventTellsOfARecordThatIsThere(
  _: Journal,
  evidence: Evidence,
): readonly string[] {
  return [...toldIds(evidence)].flatMap((eventId) => {
    const { recordId, kind, place } = placeOf(eventId)
    const record = kind === 'grant' ? evidence.grants : evidence.payments
    const last = lastPlace(record.get(recordId))
    return place <= last ? [] : [`${eventId} is newer than its record, which has ${last} events`]
  })
}

/** A host that handles each event id once must not miss another event with the same id. */
export function anEventIdTellsOneThing(
  _: Journal,
  { pending, delivered }: Evidence,
): readonly string[] {
  const told = new Map<string, string>()
  return [...delivered, ...pending.map(eventOf)].flatMap((event) => {
    const text = JSON.stringify(Object.entries(event).sort())
    const before = told.get(event.id) ?? text
    told.set(event.id, before)
    return before === text ? [] : [`${event.id} tells ${before}, and later ${text}`]
  })
}

/** An event may be repeated, but its first delivery never follows a later event of its record. */
export function eventsOfARecordAreDeliveredInOrder(
  _: Journal,
  { delivered }: Evidence,
): readonly string[] {
  const seen = new Set<string>()
  const last = new Map<string, DeliveredEvent>()
  return delivered.flatMap((event) => {
    const { recordId, place } = placeOf(event.id)
    if (seen.has(event.id)) return []
    seen.add(event.id)
    const before = last.get(recordId)
    last.set(recordId, event)
    if (before === undefined) return []
    return placeOf(before.id).place < place ? [] : [`${event.id} came after ${before.id}`]
  })
}

export function nothingWaitsToBeDelivered(_: Journal, { pending }: Evidence): readonly string[] {
  return pending.map(({ id }) => `${id} has not been delivered`)
}

function eventOf({ id, event }: Evidence['pending'][number]): DeliveredEvent {
  const isOfGrant = placeOf(id).kind === 'grant'
  const server = isOfGrant ? grantEndpoint : resourceServer
  const namespace = createHash('sha256').update(server).digest('base64url').slice(0, 8)
  return { ...event, id: deliveredId(namespace, { id }), subject: subjectOf(event), server }
}

function toldIds({ pending, delivered }: Evidence): ReadonlySet<string> {
  return new Set([...pending.map(eventOf), ...delivered].map(({ id }) => id))
}

/** An event's id begins with the id and kind of its record, and its number among the events of the record. */
function placeOf(eventId: string) {
  const [recordId = '', kind = '', place] = eventId.split('.')
  return { recordId, kind, place: Number(place) }
}

function lastPlace(record: Stored | undefined): number {
  return record?.lastEvent === undefined ? 0 : Number(record.lastEvent.split('.')[0])
}
