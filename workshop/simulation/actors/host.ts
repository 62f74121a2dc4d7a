import type { DeliveredEvent, ServerEvents } from '../../../src/index.js'
import { usd } from '../../../test/support/spending.js'
import { count, type SendingEntry, type TransferEntry } from '../journal.js'
import type { ServerProcess } from '../servers.js'
import type { World } from '../world.js'
import { attempt } from './owner.js'

/** Funds arrive for a payment, or the payer reports earlier ones again. */
export async function receive(world: World, server: ServerProcess): Promise<void> {
  const { journal, scheduler } = world
  const { draw } = scheduler
  const known = [...journal.transfers.values()]
  const repeated = draw.chance(45) ? draw.pick(known.slice(-6)) : undefined
  const payment = draw.pick(journal.incoming.slice(-6))
  if (payment === undefined) return
  const transfer = repeated ?? {
    transferId: `transfer-${known.length + 1}`,
    paymentId: payment.id,
    value: BigInt(1 + draw.below(300)),
    accepted: false,
    counted: 0,
  }
  journal.transfers.set(transfer.transferId, transfer)
  const times = draw.chance(25) ? 2 : 1
  await Promise.all(Array.from({ length: times }, () => report(world, server, transfer)))
}

async function report(
  world: World,
  { resources }: ServerProcess,
  transfer: TransferEntry,
): Promise<void> {
  const { journal, database } = world
  const { transferId, paymentId, value } = transfer
  const wasAccepted =
    transfer.accepted && database.peek('incoming-payment', paymentId) !== undefined
  const result = await attempt(world, 'receive', () =>
    resources.incomingPayments.receive(paymentId, { transferId, amount: usd(value) }),
  )
  if (result === undefined) return
  if (!result.ok) {
    const isGone = database.peek('incoming-payment', paymentId) === undefined
    if (wasAccepted && !isGone) {
      journal.breaches.push(`${transferId} was accepted, and then refused: ${result.refusal}`)
    }
    return
  }
  count(journal, 'transfers')
  transfer.accepted = true
  if (!result.changed) return
  transfer.counted += 1
  if (transfer.counted > 1) journal.breaches.push(`${transferId} was counted twice`)
}

/** The host completes or cancels an incoming payment. */
export async function complete(world: World, { resources }: ServerProcess): Promise<void> {
  const payment = world.scheduler.draw.pick(world.journal.incoming)
  if (payment === undefined) return
  const { complete, cancel } = resources.incomingPayments
  if (world.scheduler.draw.chance(20)) await attempt(world, 'cancel', () => cancel(payment.id))
  else await attempt(world, 'complete', () => complete(payment.id))
}

/** The operator sends a payment that an event has told of: claims it, and reports what was sent. */
export async function send(world: World, server: ServerProcess): Promise<void> {
  const { journal, scheduler } = world
  const { draw } = scheduler
  const payment = draw.pick([...journal.sending.values()])
  if (payment === undefined) return
  if (payment.inDoubt !== undefined && draw.chance(70)) return decideDoubt(world, server, payment)
  // Another process of the operator may try to begin a payment that has been begun.
  if (payment.begun > 0 && draw.chance(80)) return reportSent(world, server, payment)
  const { cancel } = server.resources.outgoingPayments
  if (draw.chance(15)) await attempt(world, 'cancel', () => cancel(payment.paymentId))
  else await begin(world, server, payment)
}

async function begin(
  world: World,
  { resources }: ServerProcess,
  payment: SendingEntry,
): Promise<void> {
  const { paymentId } = payment
  const result = await attempt(world, 'begin', () => resources.outgoingPayments.begin(paymentId))
  if (!result?.ok) return
  count(world.journal, 'begun')
  payment.begun += 1
  if (payment.begun > 1) world.journal.breaches.push(`${paymentId} was begun twice`)
}

async function reportSent(
  world: World,
  { resources }: ServerProcess,
  payment: SendingEntry,
): Promise<void> {
  const { draw } = world.scheduler
  const { paymentId, value } = payment
  if (draw.chance(60)) {
    const more = BigInt(draw.below(Number(value) + 1))
    payment.sent = payment.sent + more > value ? value : payment.sent + more
  }
  const amount = usd(payment.sent)
  const totals = { sentAmount: amount, deliveredAmount: amount }
  const { outgoingPayments } = resources
  const final = draw.chance(30)
  const fails = draw.chance(30)
  // A doubt of a payment that ends is a part of what was sent. Sometimes there is too much of it.
  const most = draw.chance(20) ? value : fails || final ? payment.sent : value - payment.sent
  const doubt = most > 0n && draw.chance(50) ? BigInt(1 + draw.below(Number(most))) : undefined
  const inDoubt = doubt && {
    amount: usd(doubt),
    since: Math.floor(world.scheduler.now()),
    reason: 'no reply',
  }
  const report = { ...totals, ...(inDoubt && { inDoubt }) }
  const result = fails
    ? await attempt(world, 'fail', () => outgoingPayments.fail(paymentId, report))
    : await attempt(world, 'report', () =>
        outgoingPayments.reportSent(paymentId, { ...report, ...(final && { final }) }),
      )
  if (!result?.ok || result.payment.status === 'begun') return
  const ended = result.payment.inDoubt
  if (ended !== undefined) payment.inDoubt ??= BigInt(ended.amount.value)
}

/** The operator finds out what became of the part in doubt, or decides again, in the same way or not. */
async function decideDoubt(
  world: World,
  { resources }: ServerProcess,
  payment: SendingEntry,
): Promise<void> {
  const { draw } = world.scheduler
  const { paymentId, inDoubt = 0n } = payment
  const refunded =
    payment.refunded !== undefined && draw.chance(70)
      ? payment.refunded
      : BigInt(draw.below(Number(inDoubt) + 1))
  const result = await attempt(world, 'decideDoubt', () =>
    resources.outgoingPayments.decideDoubt(paymentId, { refunded: usd(refunded) }),
  )
  if (!result?.ok || !result.changed) return
  count(world.journal, 'decided doubts')
  if (payment.refunded !== undefined) world.journal.breaches.push(`${paymentId} was refunded twice`)
  payment.refunded = refunded
}

export async function sweep(world: World, server: ServerProcess): Promise<void> {
  const { draw } = world.scheduler
  const { sweep } = draw.chance(50) ? server.auth : server.resources
  await attempt(world, 'sweep', () => sweep(draw.chance(30) ? { limit: 1 + draw.below(5) } : {}))
}

/** The delays after which an unfinished delivery is repeated. */
const delivery = { leaseMs: 60_000, backoffMs: 500, backoffMaxMs: 2_000, attemptsMax: 10_000 }

/** The consumer handles some of the due events of one server. */
export async function consume(world: World, server: ServerProcess): Promise<void> {
  const { draw } = world.scheduler
  const { events } = draw.chance(40) ? server.auth : server.resources
  await deliver(world, server, events, 1 + draw.below(20))
}

/** The consumer handles all due events of both servers. */
export async function consumeAll(world: World, server: ServerProcess): Promise<void> {
  for (const { events } of [server.auth, server.resources]) {
    await deliver(world, server, events, 1_000)
  }
}

/** A handler may fail, or be so slow that its lease ends. */
async function deliver(
  world: World,
  server: ServerProcess,
  events: ServerEvents,
  limit: number,
): Promise<void> {
  const { scheduler, climate, journal } = world
  const { draw } = scheduler
  async function handle(event: DeliveredEvent): Promise<void> {
    if (draw.chance(climate.weather.handlerFailsPercent)) throw new Error('the handler failed')
    if (!climate.isPeaceful && draw.chance(20)) await scheduler.turn('handle', () => undefined)
    journal.delivered.push(event)
    world.holds.handle(event)
    if (event.type !== 'outgoing-payment.created') return
    const { outgoingPaymentId: paymentId, debitAmount } = event
    const value = BigInt(debitAmount.value)
    const payment = journal.sending.get(paymentId) ?? { paymentId, value, begun: 0, sent: 0n }
    journal.sending.set(paymentId, payment)
    // A handler whose delivery is repeated begins the payment again, perhaps in another process.
    if (!climate.isPeaceful && draw.chance(50)) await begin(world, server, payment)
    if (draw.chance(climate.weather.handlerFailsPercent)) throw new Error('the handler failed late')
  }
  await attempt(world, 'drain', () => events.drain(handle, { ...delivery, limit }))
}
