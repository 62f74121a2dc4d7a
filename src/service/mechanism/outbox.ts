import { storeBounds } from '../../ports/store.js'
import { ArgumentError } from '../../util/argument-error.js'
import { boolean, callback, exactly, optional, text } from '../../util/arguments.js'
import { attemptDelivery } from './attempt.js'
import { changeOf } from './changes.js'
import { newCall, type ServiceContext } from './context.js'
import {
  type DrainResult,
  drainDefaults,
  drainSettings,
  type EventHandler,
  type EventOutbox,
  type ServerEvents,
  type Settings,
} from './delivery.js'
import { type EventRecord, queueNamespace } from './events.js'
import { inParallel } from './parallel.js'
import { discardSetAside, iterateSetAside, listSetAside, retrySetAside } from './set-aside.js'

/** The number of events of one record that are read at a time. */
const pageLimit = 20

/** The minimum number of due events to look up, because some may have to wait for others. */
const batchMin = 100

export function createOutbox(context: ServiceContext): EventOutbox {
  return {
    drain: async (handler, options = {}) => drain(context, handler, drainSettings(options)),
    listSetAside: (limit = drainDefaults.limit) => listSetAside(context, limit),
    iterateSetAside: () => iterateSetAside(context),
    retry: (eventId) => retrySetAside(context, eventId),
    discard: (eventId) => discardSetAside(context, eventId),
  }
}

/** Creates the outboxes of a server: that of the consumer without a name, and those of named consumers. */
export function createServerEvents(context: ServiceContext): ServerEvents {
  const { eventConsumers = [] } = context
  return {
    ...createOutbox(context),
    consumer(name, options = {}) {
      text('name', name)
      isConsumerOptions('options', options)
      if (options.removed !== true && !eventConsumers.includes(name)) {
        throw new ArgumentError('name', 'must be listed in the option eventConsumers')
      }
      const namespace = async () => queueNamespace(await context.namespace(), name)
      return createOutbox({ ...context, namespace })
    },
  }
}

const isConsumerOptions = exactly<{ removed?: boolean }>({ removed: optional(boolean) })

/** A call of `drain`, and what it has done so far. */
interface Progress {
  readonly handler: EventHandler
  readonly settings: Settings
  readonly total: { delivered: number; failed: number }
  /** The deliveries that count towards the limit, including those in progress. */
  begun: number
}

async function drain(
  context: ServiceContext,
  handler: EventHandler,
  settings: Settings,
): Promise<DrainResult> {
  callback('handler', handler)
  const { store, clock } = context
  const lookedUp = Math.min(Math.max(settings.limit, batchMin), storeBounds.dueLimit)
  const due = await store.due('event', await context.namespace(), clock.now(), lookedUp)
  const progress = { handler, settings, total: { delivered: 0, failed: 0 }, begun: 0 }
  const streams = streamsOf(due as readonly EventRecord[])
  await inParallel([...streams], settings.concurrency, async (stream) => {
    for (let more = true; more && !isOver(progress); ) {
      more = await deliverPage(context, progress, stream)
    }
  })
  return progress.total
}

function isOver({ settings: { limit, signal }, begun }: Progress): boolean {
  return signal?.aborted === true || begun >= limit
}

/**
 * Delivers the oldest events of a record in order, until one fails or another consumer has leased the next.
 *
 * @returns whether there may be more events to deliver.
 */
async function deliverPage(
  context: ServiceContext,
  progress: Progress,
  [list, found]: Stream,
): Promise<boolean> {
  const query = { kind: 'event', list, forward: true, limit: pageLimit } as const
  const { records, more } = await context.store.list(query)
  let delivered = 0
  for (const record of records as readonly EventRecord[]) {
    if (isOver(progress)) return false
    const outcome = await deliver(context, progress, record)
    if (outcome === 'held') await standBehind(context, record, found)
    // After successful deliveries, a lost event may merely have been rescheduled by `standBehind`.
    if (outcome !== 'delivered') return delivered > 0 && outcome === 'lost'
    delivered += 1
  }
  return delivered > 0 && more
}

async function deliver(context: ServiceContext, progress: Progress, record: EventRecord) {
  const { handler, settings, total } = progress
  progress.begun += 1
  const outcome = await attemptDelivery(context, record, handler, settings)
  if (outcome === 'held' || outcome === 'lost') progress.begun -= 1
  else total[outcome === 'failed' ? 'failed' : 'delivered'] += 1
  return outcome
}

/**
 * Reschedules the events behind a failing one to its `dueAt`. Otherwise they would fill every batch and delay
 * the events of other records. The consumer that delivers the first event continues with them.
 */
async function standBehind(
  context: ServiceContext,
  head: EventRecord,
  found: readonly EventRecord[],
): Promise<void> {
  const { dueAt } = head
  if (dueAt === undefined || (head.failedAt === undefined && head.attempts === 1)) return
  const { commandId } = newCall(context)
  const changes = found
    .filter((record) => record.id !== head.id && (record.dueAt ?? dueAt) < dueAt)
    .map((record) =>
      changeOf('event', record, { ...record, dueAt, version: record.version + 1, commandId }),
    )
  const { commitSize } = storeBounds
  for (let first = 0; first < changes.length; first += commitSize) {
    const some = changes.slice(first, first + commitSize)
    await context.store.commit({ changes: some, guards: [] })
  }
}

/** The list of a record's events, and those of them that are due. */
type Stream = readonly [list: string, found: readonly EventRecord[]]

function streamsOf(records: readonly EventRecord[]): ReadonlyMap<string, readonly EventRecord[]> {
  const streams = new Map<string, EventRecord[]>()
  for (const record of records) {
    const { list: wanted } = record.lists[0]
    const found = streams.get(wanted)
    if (found === undefined) streams.set(wanted, [record])
    else found.push(record)
  }
  return streams
}
