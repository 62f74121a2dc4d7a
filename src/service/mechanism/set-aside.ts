import { positiveInteger, text } from '../../util/arguments.js'
import { newCall, type ServiceContext } from './context.js'
import { deliveredEvent, type SetAsideEvent } from './delivery.js'
import { dueAtOnce, type EventRecord, placeOf, replaceEvent } from './events.js'
import { iterateList } from './pages.js'

/** Sets an event aside. Resolves to false if another writer changed it. */
export async function setAside(context: ServiceContext, record: EventRecord): Promise<boolean> {
  const call = newCall(context)
  const { dueAt: _dueAt, ...rest } = record
  const lists = [{ list: await setAsideList(context), at: call.now }] as const
  return replaceEvent(context, record, { ...rest, setAsideAt: call.now, lists }, call)
}

export async function listSetAside(
  context: ServiceContext,
  limit: number,
): Promise<readonly SetAsideEvent[]> {
  positiveInteger('limit', limit)
  const events: SetAsideEvent[] = []
  for await (const event of iterateSetAside(context)) {
    events.push(event)
    if (events.length === limit) break
  }
  return events
}

export function iterateSetAside(context: ServiceContext): AsyncIterable<SetAsideEvent> {
  const listed = async () => ({ kind: 'event', list: await setAsideList(context) }) as const
  return iterateList(context.store, listed, (record: EventRecord) => setAsideEvent(context, record))
}

function setAsideEvent(context: ServiceContext, record: EventRecord): SetAsideEvent {
  return {
    event: deliveredEvent(context, record),
    attempts: record.attempts,
    setAsideAt: record.setAsideAt ?? 0,
  }
}

export async function retrySetAside(context: ServiceContext, eventId: string): Promise<boolean> {
  const record = await loadSetAside(context, eventId)
  if (record === undefined) return false
  const call = newCall(context)
  const { setAsideAt: _setAsideAt, ...rest } = record
  const lists = [placeOf(eventId)] as const
  return replaceEvent(
    context,
    record,
    { ...rest, attempts: 0, dueAt: dueAtOnce(call.now), lists },
    call,
  )
}

export async function discardSetAside(context: ServiceContext, eventId: string): Promise<boolean> {
  const record = await loadSetAside(context, eventId)
  return record !== undefined && context.store.remove('event', eventId, record.version)
}

const idPattern = /^[A-Za-z0-9._-]{8,128}$/

async function loadSetAside(
  { store, namespace }: ServiceContext,
  eventId: string,
): Promise<EventRecord | undefined> {
  text('eventId', eventId)
  if (!eventId.startsWith(await namespace()) || !idPattern.test(eventId)) return undefined
  const record = (await store.load('event', eventId)) as EventRecord | undefined
  return record?.setAsideAt === undefined ? undefined : record
}

async function setAsideList({ namespace }: ServiceContext): Promise<string> {
  return `${await namespace()}.set-aside`
}
