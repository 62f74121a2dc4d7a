import { isUnderGrant } from '../../src/core/outgoing-payment/authority.js'
import type { PaymentRecord } from '../../src/core/outgoing-payment/record.js'
import type { DeliveredEvent, MayPay, RequestedPayment } from '../../src/index.js'
import type { Climate } from './connection.js'
import type { Database } from './database.js'
import { count, type Journal } from './journal.js'
import { isLarge, lifetimes } from './rules.js'
import type { Scheduler } from './scheduler.js'
import type { ServerProcess } from './servers.js'
import { windowOfPayment } from './windows.js'

export type Holds = ReturnType<typeof createHolds>

const isOver = ({ state }: PaymentRecord) => ['completed', 'failed', 'declined'].includes(state)

const confirmMs = 5 * 60_000

const ends = ['outgoing-payment.completed', 'outgoing-payment.failed', 'outgoing-payment.declined']

/**
 * The ledger of the host, which holds what payments debit, by their ids. A call may fail before or after its hold takes
 * effect, never answer, or take effect long after its process has stopped to wait or has died.
 */
export function createHolds(
  scheduler: Scheduler,
  climate: Climate,
  journal: Journal,
  database: Database,
  /** A server without faults, by which the owner changes a grant while the host is asked. */
  auditor: () => ServerProcess,
) {
  const { draw } = scheduler
  /** What each call asked to hold, by the id of the payment: every call asks for the same. */
  const asked = new Map<string, string>()
  const holds = new Set<string>()
  const released = new Set<string>()
  /** The payments that their owner has to confirm, in the order in which the host found out. */
  const large = new Set<string>()
  /** When the payment with an id was created, and when it ended. */
  const lives = new Map<string, { readonly createdAt: number; endedAt?: number }>()

  /** An id may be used again once its payment has been removed. To the host this is another payment. */
  function begin(id: string): void {
    const { createdAt } = database.peek('outgoing-payment', id) as PaymentRecord
    const before = lives.get(id)
    if (before?.createdAt === createdAt) return
    lives.set(id, { createdAt })
    if (before === undefined) return
    const { skewMaxMs } = climate.weather
    // Absent if the event of its end still waits after the whole retention: the wallet has slept for weeks.
    const { endedAt = Number.NEGATIVE_INFINITY } = before
    if (createdAt - endedAt < lifetimes.retentionMs - 2 * skewMaxMs) {
      journal.breaches.push(`the id ${id} was used again too early`)
    }
    for (const known of [asked, holds, released]) known.delete(id)
  }

  function hold(payment: RequestedPayment): void {
    const { outgoingPaymentId: id } = payment
    if (released.has(id)) journal.breaches.push(`a hold took effect after the end of ${id}`)
    if (database.peek('outgoing-payment', id) === undefined) {
      journal.breaches.push(`funds are held for ${id}, which was never reserved`)
    }
    holds.add(id)
    journal.breaches.push(...overheld(id))
  }

  /** What is held for the payments of a window that have not ended is within the limits of the window. */
  function overheld(outgoingPaymentId: string): readonly string[] {
    const open = [...holds].flatMap((id) => {
      const record = database.peek('outgoing-payment', id) as PaymentRecord | undefined
      // No window counts what the owner orders.
      if (record === undefined || isOver(record) || !isUnderGrant(record)) return []
      return [{ record, place: windowOfPayment(database, record) }]
    })
    const own = open.find(({ record }) => record.id === outgoingPaymentId)
    if (own === undefined) return []
    const { group, item } = own.place
    const together = open.filter(({ place }) => place.group === group)
    return (['debitAmount', 'receiveAmount'] as const).flatMap((counts) => {
      const sum = together.reduce((sum, { record }) => sum + BigInt(record[counts].value), 0n)
      const maximum = item?.limits?.[counts]?.value
      return maximum !== undefined && sum > BigInt(maximum)
        ? [`${group}: ${sum} of ${counts} is held, and ${maximum} is allowed`]
        : []
    })
  }

  const mayPay: MayPay = async (payment) => {
    const { outgoingPaymentId: id, grantId } = payment
    count(journal, 'asked')
    begin(id)
    const { conditions: _conditions, isConfirmed, ...same } = payment
    const [text, before] = [JSON.stringify(same), asked.get(id)]
    if (before !== undefined) count(journal, 'asked again')
    if (before !== undefined && before !== text) {
      journal.breaches.push(`the host was asked about another payment ${id}`)
    }
    asked.set(id, text)
    if (grantId !== undefined && draw.chance(10)) {
      const conditions = { pausedUntil: Math.ceil(scheduler.now()) + 60_000 }
      await auditor().auth.grants.amend(grantId, { conditions })
    }
    const fault = (text: string) => {
      climate.faults += 1
      return new Error(text)
    }
    const isFaulty = draw.chance(climate.weather.portFailsPercent * 2)
    const fate = isFaulty ? draw.one('before', 'after', 'never', 'late') : 'works'
    if (fate === 'before') throw await scheduler.turn('mayPay fails', () => fault('no ledger'))
    if (isLarge(payment) && !isConfirmed) {
      large.add(id)
      return scheduler.turn('mayPay asks for the owner', () => {
        const url = `https://wallet.example/confirm/${id}`
        const until = Math.ceil(scheduler.now()) + confirmMs
        return { ok: false, refusal: 'confirmation_required', url, until }
      })
    }
    if (fate === 'late') {
      scheduler.land(`hold ${id}`, () => hold(payment))
      if (draw.chance(50)) throw fault('the connection to the ledger was lost')
      return new Promise(() => void fault('no answer'))
    }
    if (!holds.has(id) && draw.chance(10)) {
      return scheduler.turn('mayPay refuses', () => ({ ok: false, refusal: 'funds_insufficient' }))
    }
    await (climate.isPeaceful
      ? hold(payment)
      : scheduler.turn(`hold ${id}`, () => hold(payment), true))
    if (fate === 'after') throw fault('the answer of the ledger was lost')
    if (fate === 'never') return new Promise(() => void fault('no answer'))
    return { ok: true }
  }

  return {
    mayPay,
    asked: () => asked.keys(),
    held: holds as ReadonlySet<string>,
    large: large as ReadonlySet<string>,
    /** Releases what is held for a payment that has ended. */
    handle(event: DeliveredEvent): void {
      if (!('outgoingPaymentId' in event) || !ends.includes(event.type)) return
      const life = lives.get(event.outgoingPaymentId)
      if (life !== undefined) {
        if (event.at < life.createdAt - 2 * climate.weather.skewMaxMs) return
        life.endedAt = event.at
      }
      holds.delete(event.outgoingPaymentId)
      released.add(event.outgoingPaymentId)
    },
    released: released as ReadonlySet<string>,
  }
}
