import type { PaymentRecord } from '../../src/core/outgoing-payment/record.js'
import type { Stored } from '../../src/entry-adapter.js'
import type { Grant, IncomingPayment } from '../../src/entry-core.js'
import { withoutSlice } from '../../test/support/outbox.js'
import { latestTokens } from './actors/grants.js'
import { consumeAll, sweep } from './actors/host.js'
import { activeTokens, auditTokens } from './audit.js'
import { calm } from './faults.js'
import { lifetimes } from './rules.js'
import type { World } from './world.js'

/** Ends all faults, lets everything in progress come to its end, and checks what must then be true. */
export async function makePeace(world: World): Promise<void> {
  const { climate, journal, scheduler, database, servers } = world
  climate.weather = { ...climate.weather, ...calm }
  climate.isPeaceful = true
  await scheduler.rest({ timers: true, between: () => auditTokens(world) })
  if (journal.breaches.length > 0) return
  await latestTokensAreLive(world)
  for (let round = 0; round < 12; round++) {
    scheduler.leap(lifetimes.retryMs + 1_000)
    for (const server of servers) {
      for (const action of [consumeAll, sweep]) {
        await scheduler.perform(server.process, action.name, () => void action(world, server))
        // A consumer finds out in some seconds that another one is dead.
        while (await isGoingOn(world));
      }
    }
    const isWaiting = database.records('outgoing-payment').some(isReserved)
    const isDelivered = database.records('event').every((record) => !('event' in record))
    if (isDelivered && !isWaiting && round > 1) break
  }
  acceptedTransfersAreThere(world)
  everyEventIsDelivered(world)
  everyHoldIsOfAnOpenPayment(world)
  eventsOfARecordAreInOrder(world)
  noSecretIsStored(world)
}

/** Lets the next thing happen, after the time until then. Resolves to false if nothing is in progress. */
async function isGoingOn({ scheduler }: World): Promise<boolean> {
  if (await scheduler.step()) return true
  if (!scheduler.hasTimers()) return false
  scheduler.awaitTimer()
  return true
}

/** A client instance whose requests have all been answered has a token that works. */
async function latestTokensAreLive(world: World): Promise<void> {
  const { journal, scheduler, database, climate } = world
  const margin = 2 * climate.weather.skewMaxMs
  const all = journal.grants.flatMap((grant) =>
    latestTokens(grant).map((latest) => ({ grant, latest })),
  )
  for (const { grant, latest } of all) {
    const record = database.peek('grant', grant.id) as Grant | undefined
    if (latest.dead !== undefined) continue
    if (grant.over || grant.unknown > 0 || grant.key !== grant.client.key) continue
    const token = record?.tokens?.find(({ label }) => label === latest.label)
    const tokenEndsAt = (token?.expiresAt ?? 0) - margin
    const grantEndsAt = (record?.expiresAt ?? Number.POSITIVE_INFINITY) - margin
    if (record !== undefined && scheduler.now() >= Math.min(tokenEndsAt, grantEndsAt)) continue
    const age = scheduler.now() - latest.receivedAt
    if (record === undefined && age >= lifetimes.tokenMs - margin) continue
    const active = await activeTokens(world, grant)
    if (active.includes(latest.value)) continue
    journal.breaches.push(`the latest token of ${grant.id} is not active, and nobody ended it`)
  }
}

function acceptedTransfersAreThere({ journal, database }: World): void {
  for (const { id } of journal.incoming) {
    const payment = database.peek('incoming-payment', id) as IncomingPayment | undefined
    if (payment === undefined) continue
    const accepted = [...journal.transfers.values()]
      .filter(({ paymentId, accepted }) => paymentId === id && accepted)
      .reduce((sum, { value }) => sum + value, 0n)
    if (BigInt(payment.received) < accepted) {
      journal.breaches.push(`${id} has received ${payment.received}, and accepted ${accepted}`)
    }
  }
}

function everyEventIsDelivered({ journal, ledger, database }: World): void {
  const delivered = new Set(journal.delivered.map(({ id }) => withoutSlice(id)))
  const left = new Set(database.records('event').map(({ id }) => withoutSlice(id)))
  for (const id of ledger.events) {
    if (delivered.has(id)) continue
    journal.breaches.push(`the event ${id} ${left.has(id) ? 'waits' : 'was lost'}`)
  }
  for (const id of delivered) {
    if (!ledger.events.has(id)) journal.breaches.push(`the event ${id} was never written`)
  }
}

const isReserved = (record: Stored) => (record as PaymentRecord).state === 'reserved'

/** Whoever was asked about has ended and is released, or exists and is held. */
function everyHoldIsOfAnOpenPayment({ journal, database, holds }: World): void {
  for (const id of holds.asked()) {
    const payment = database.peek('outgoing-payment', id) as PaymentRecord | undefined
    const isOpen = payment?.state === 'created' || payment?.state === 'begun'
    if (isOpen === holds.held.has(id) && isOpen !== holds.released.has(id)) continue
    const held = holds.held.has(id) ? 'held' : 'not held'
    const released = holds.released.has(id) ? 'released' : 'never released'
    journal.breaches.push(`${id} is ${payment?.state ?? 'gone'}, ${held} and ${released}`)
  }
}

/** An event may be repeated, but its first delivery never follows a later event of its record. */
function eventsOfARecordAreInOrder({ journal }: World): void {
  const last = new Map<string, number>()
  const seen = new Set<string>()
  for (const { id } of journal.delivered) {
    const [recordId = '', kind = '', number] = id.split('.')
    const place = Number(number)
    const before = last.get(`${recordId}.${kind}`) ?? 0
    if (seen.has(id)) continue
    seen.add(id)
    if (place < before) journal.breaches.push(`the event ${id} came after a later one`)
    last.set(`${recordId}.${kind}`, Math.max(before, place))
  }
}

/** The store contains no token and no interaction reference. */
function noSecretIsStored({ journal, database }: World): void {
  const texts = database.text().join('\n')
  for (const secret of journal.secrets) {
    if (texts.includes(secret)) journal.breaches.push('a secret is stored')
  }
}
