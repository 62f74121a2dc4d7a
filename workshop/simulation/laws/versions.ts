import type { Stored } from '../../../src/entry-adapter.js'
import type { OutgoingPayment } from '../../../src/entry-core.js'
import { namespaceLength } from '../database.js'
import type { Law } from './law.js'

/** Every write is the next version of its record, and names the command that wrote it. */
export const everyWriteIsTheNextVersion: Law = ({ written }) =>
  written.flatMap(({ kind, before, after }) => {
    if (after === undefined) return []
    const expected = (before?.version ?? 0) + 1
    if (after.version !== expected) {
      return [`${kind} ${after.id} went from version ${expected - 1} to ${after.version}`]
    }
    return after.commandId === before?.commandId
      ? [`${kind} ${after.id} was written twice by the command ${after.commandId}`]
      : []
  })

const told = ['incoming-payment', 'outgoing-payment', 'quote']

/**
 * Every change of a payment or quote has its events in the same commit, except one of its doubt alone, which the host
 * itself makes; and no event is about anything else.
 */
export const everyChangeHasItsEvents: Law = ({ written, commit }) => {
  if (commit === undefined) return []
  const created = written.flatMap(({ kind, before, after }) =>
    kind === 'event' && before === undefined && after !== undefined && 'event' in after
      ? [after.id.slice(namespaceLength)]
      : [],
  )
  const changed = written.flatMap(({ kind, after }) =>
    after === undefined ? [] : [eventsOf(kind, after)],
  )
  const silent = written.filter(
    ({ kind, before, after }) =>
      told.includes(kind) &&
      !isOfDoubtAlone(before, after) &&
      // Nobody sees a reserved payment.
      (after as { readonly state?: string } | undefined)?.state !== 'reserved' &&
      !(after && created.includes(`${eventsOf(kind, after)}.${after.lastEvent}`)),
  )
  const groundless = created.filter((id) => !changed.some((each) => id.startsWith(`${each}.`)))
  return [
    ...silent.map(({ kind, after }) => `${kind} ${after?.id} changed without an event`),
    ...groundless.map((id) => `the event ${id} belongs to no change of its commit`),
  ]
}

/** Whether a change reports what is in doubt of a payment, or decides it, and neither sends anything nor ends it. */
function isOfDoubtAlone(before: Stored | undefined, after: Stored | undefined): boolean {
  const [was, is] = [before, after] as (Partial<OutgoingPayment> | undefined)[]
  if (was?.state === undefined || was.state !== is?.state) return false
  const isDecided = was.inDoubt !== undefined && is.decided !== undefined
  return isDecided || (was.sent === is.sent && was.delivered === is.delivered)
}

/** Returns what the ids of the events about a record begin with, without their namespace and slice. */
function eventsOf(kind: string, { id }: Stored): string {
  return `${told.includes(kind) ? id : id.slice(namespaceLength)}.${kind}`
}

/** What must not be removed before its retention ends, by any clock in the world. */
export const nothingIsRemovedEarly: Law = ({ written, at, skewMaxMs }) =>
  written.flatMap(({ kind, before, after }) => {
    const { retainUntil = 0 } = before ?? {}
    const isEarly = after === undefined && retainUntil > at + skewMaxMs
    return isEarly ? [`${kind} ${before?.id} was removed before its retention ended`] : []
  })
