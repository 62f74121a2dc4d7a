import { isUnderGrant } from '../../../src/core/outgoing-payment/authority.js'
import type { PaymentRecord } from '../../../src/core/outgoing-payment/record.js'
import type { Stored } from '../../../src/entry-adapter.js'
import type { Grant, OutgoingPayment } from '../../../src/entry-core.js'
import { type EventRecord, paymentEnds } from '../../../src/service/event-record.js'
import { birth } from '../birth.js'
import type { Holds } from '../holds.js'
import { hourlyCap, isLarge } from '../rules.js'
import { windowOfPayment } from '../windows.js'
import { differsIn, type Law, writesOf } from './law.js'

interface Budget extends Stored {
  readonly spent: Readonly<Record<'debitAmount' | 'receiveAmount', { value: string } | null>>
  readonly payments?: number
}

const steps: Readonly<Record<PaymentRecord['state'], readonly string[]>> = {
  reserved: ['reserved', 'created', 'declined'],
  declined: [],
  created: ['begun', 'failed'],
  begun: ['begun', 'completed', 'failed'],
  // Only what was in doubt can still be decided.
  completed: ['completed'],
  failed: ['failed'],
}

const mutable = [
  'version',
  'lastEvent',
  'updatedAt',
  'commandId',
  'state',
  'sent',
  'delivered',
  'endedAt',
  'failure',
  'inDoubt',
  'decided',
  'dueAt',
  'retainUntil',
]

/** What changes while nobody has decided about a payment, and when somebody does. */
const undecided = [
  'lists',
  'limitBudgetIds',
  'holdUntil',
  'askUntil',
  'lateHoldsUntil',
  'refusal',
  'confirmation',
]

/**
 * A payment is begun before it is sent; what was sent never falls nor exceeds it; an ended payment never changes,
 * except that its doubt is decided once: then what was sent falls by what is refunded of the doubt.
 */
export const sendingOnlyGoesForward: Law = (change) =>
  writesOf<PaymentRecord>(change, 'outgoing-payment').flatMap(({ before, after }) => {
    if (before === undefined) return []
    const { id, sent, delivered, debitAmount, receiveAmount } = after
    if (!steps[before.state].includes(after.state)) {
      return [`the payment ${id} went from ${before.state} to ${after.state}`]
    }
    const isDecided = before.state !== 'reserved'
    const changed = differsIn(before, after, isDecided ? mutable : [...mutable, ...undecided])
    if (changed !== undefined) return [`${changed} of the payment ${id} changed`]
    if (before.state === 'completed' || before.state === 'failed') {
      const [inDoubt, refunded] = [before.inDoubt?.amount, after.decided?.refunded]
      const isDecided =
        inDoubt !== undefined &&
        refunded !== undefined &&
        after.inDoubt === undefined &&
        BigInt(refunded) <= BigInt(inDoubt) &&
        BigInt(sent) === BigInt(before.sent) - BigInt(refunded) &&
        BigInt(delivered) <= BigInt(before.delivered)
      return isDecided ? [] : [`the payment ${id}, which has ended, changed`]
    }
    const fell = BigInt(sent) < BigInt(before.sent) || BigInt(delivered) < BigInt(before.delivered)
    const tooMuch =
      BigInt(sent) > BigInt(debitAmount.value) || BigInt(delivered) > BigInt(receiveAmount.value)
    return fell || tooMuch ? [`the payment ${id} has sent ${sent} and delivered ${delivered}`] : []
  })

/**
 * What the payments of a grant spend under one item in one window never exceeds its maximum, and is what the budget
 * says. The windows are computed from the times of the payments.
 */
export function noWindowIsOverspent(): Law {
  const groups = new Map<string, Map<string, OutgoingPayment>>()
  const held = (group: string, counts: 'debitAmount' | 'receiveAmount') =>
    [...(groups.get(group)?.values() ?? [])].reduce(
      (sum, payment) => sum + holds(payment, counts),
      0n,
    )
  return (change) => {
    // One commit may create several payments: all of them count before the first is compared with the budget.
    const written = paymentsUnderGrants(change).map(({ after }) => {
      const { group, item, window, grant } = windowOfPayment(change.database, after)
      groups.set(
        group,
        (groups.get(group) ?? new Map()).set(`${after.id} ${after.createdAt}`, after),
      )
      return { after, budgetId: after.budgetId, grant, item, window, group }
    })
    return written.flatMap(({ after, budgetId, grant, item, window, group }) => {
      if (grant === undefined || item === undefined) return []
      if (window === undefined) return [`${after.id} was created outside all windows of its item`]
      const budget = change.database.peek('budget', budgetId) as Budget | undefined
      return (['debitAmount', 'receiveAmount'] as const).flatMap((counts) => {
        const total = held(group, counts)
        const maximum = item.limits?.[counts]?.value
        if (maximum !== undefined && total > BigInt(maximum)) {
          return [`${group}: ${total} of ${counts} is spent, and ${maximum} is allowed`]
        }
        const counted = budget?.spent[counts]?.value ?? '0'
        return budget !== undefined && BigInt(counted) !== total
          ? [`${group}: ${total} of ${counts} is spent, and the budget has ${counted}`]
          : []
      })
    })
  }
}

/**
 * The payments of the account debit no more in an hour than its owner allows, computed from the times of the payments:
 * one that waits for its owner debits nothing yet, and counts in the hour of its confirmation. Each budget of a limit
 * counts each of its payments once, and none is created above the number that the grant allows.
 *
 * @param isRemote whether the grant is at another server: then a payment may be created after it was amended.
 */
export function noOwnersLimitIsExceeded(isRemote: boolean): Law {
  const payments = new Map<string, OutgoingPayment>()
  return (change) => {
    const written = writesOf<OutgoingPayment>(change, 'outgoing-payment')
    for (const { after } of written) payments.set(`${after.id} ${after.createdAt}`, after)
    const sum = (some: readonly OutgoingPayment[]) =>
      some.reduce((total, payment) => total + holds(payment, 'debitAmount'), 0n)
    return written.flatMap(({ before, after }) => {
      const all = [...payments.values()]
      const hourOf = ({ createdAt, confirmation }: OutgoingPayment) =>
        Math.floor(((confirmation?.given?.at ?? createdAt) - birth) / 3_600_000)
      const charged = all
        .filter(countsForAccount)
        .filter((each) => !waits(each) && hourOf(each) === hourOf(after))
      const ofHour = waits(after) || !countsForAccount(after) ? 0n : sum(charged)
      const exceeded = ofHour > hourlyCap ? [`${ofHour} is spent in the hour of ${after.id}`] : []
      const { grantId } = after
      const isOfGrant = (each: OutgoingPayment) => isUnderGrant(each) && each.grantId === grantId
      const waiting = all.filter((each) => waits(each) && isOfGrant(each)).length
      const crowded = waiting > 10 ? [`${waiting} payments wait under ${after.grantId}`] : []
      const { limitBudgetIds = [] } = after
      const miscounted = limitBudgetIds.flatMap((id) => {
        const counted = all.filter((each) => each.limitBudgetIds?.includes(id))
        const count = counted.filter((each) => holds(each, 'debitAmount') > 0n).length
        const budget = change.database.peek('budget', id) as Budget | undefined
        if (budget === undefined) return []
        const is = `${budget.payments} ${budget.spent.debitAmount?.value}`
        return is === `${count} ${sum(counted)}`
          ? []
          : [`${id} has ${is}, not ${count} ${sum(counted)}`]
      })
      const grant = change.database.peek('grant', grantId ?? '') as Grant | undefined
      const ofOwner = limitBudgetIds.find((id) => id.includes('.owner.life'))
      const allowed = grant?.conditions?.limits?.[0]?.payments ?? Number.POSITIVE_INFINITY
      const made = ofOwner
        ? all.filter(
            (each) => each.limitBudgetIds?.includes(ofOwner) && holds(each, 'debitAmount') > 0n,
          )
        : []
      const isLate = !isRemote && isCreation({ before, after }) && made.length > allowed
      const tooMany = isLate ? [`${made.length} payments under the grant ${after.grantId}`] : []
      return [...exceeded, ...crowded, ...miscounted, ...tooMany]
    })
  }
}

/** The written payments that a client requested: no grant allows the others. */
function paymentsUnderGrants(change: Parameters<Law>[0]) {
  return writesOf<OutgoingPayment>(change, 'outgoing-payment').flatMap(({ before, after }) =>
    isUnderGrant(after) ? { before, after } : [],
  )
}

/** Whether the limits of the account count a payment: those of clients, and what the owner ordered to be counted. */
function countsForAccount(payment: OutgoingPayment): boolean {
  return isUnderGrant(payment) || (payment.limitBudgetIds ?? []).length > 0
}

/** Whether a payment waits for its owner. */
function waits({ state, confirmation }: PaymentRecord): boolean {
  return state === 'reserved' && confirmation !== undefined && confirmation.given === undefined
}

/** The whole amounts while the payment can still be sent, and then what was sent. */
function holds(payment: OutgoingPayment, counts: 'debitAmount' | 'receiveAmount'): bigint {
  const isOver = ['completed', 'failed', 'declined'].includes(payment.state)
  if (!isOver) return BigInt(payment[counts].value)
  return BigInt(counts === 'debitAmount' ? payment.sent : payment.delivered)
}

/** Whether a commit makes a payment visible. */
function isCreation({
  before,
  after,
}: {
  before: PaymentRecord | undefined
  after: PaymentRecord
}) {
  return after.state === 'created' && before?.state !== 'created'
}

/**
 * No payment is created under a grant that has ended.
 *
 * @param isRemote whether the grant is at another server: then a payment that was requested before may be created.
 */
export const noEndedGrantPays =
  (isRemote: boolean): Law =>
  (change) =>
    paymentsUnderGrants(change).flatMap(({ before, after }) => {
      if (!isCreation({ before, after })) return []
      const grant = change.database.peek('grant', after.grantId) as Grant | undefined
      if (grant?.granted && !grant.finalized) return []
      const endedAt = grant?.finalized?.at ?? 0
      if (isRemote && after.createdAt <= endedAt + 2 * change.skewMaxMs) return []
      return [`${after.id} was created under the grant ${after.grantId}, which is not approved`]
    })

/**
 * No payment is created in a pause of its grant, or above the maximum for one payment.
 *
 * @param isRemote whether the grant is at another server: then a payment that was requested before a change may be
 *   created.
 */
export function everyPaymentMeetsItsConditions(isRemote: boolean): Law {
  const changedAt = new Map<string, number>()
  return (change) => {
    for (const { after } of writesOf<Grant>(change, 'grant')) changedAt.set(after.id, change.at)
    return paymentsUnderGrants(change).flatMap(({ before, after }) => {
      if (!isCreation({ before, after })) return []
      const { id, grantId, createdAt, updatedAt, debitAmount } = after
      const latest = isRemote ? (changedAt.get(grantId) ?? 0) + change.skewMaxMs : 0
      if (isRemote && createdAt <= latest) return []
      const grant = change.database.peek('grant', grantId) as Grant | undefined
      // A remote grant is looked at when the payment is requested, and a pause may have begun since.
      const at = isRemote ? createdAt : updatedAt
      const { pausedUntil = at, paymentMax = debitAmount } = grant?.conditions ?? {}
      return at < pausedUntil || BigInt(debitAmount.value) > BigInt(paymentMax.value)
        ? [`${id} was created beyond the conditions of the grant ${grantId}`]
        : []
    })
  }
}

/** The host is asked about each payment; it has held its funds when it is created, and it ends once. */
export function everyPaymentIsHeld(holds: () => Holds): Law {
  const ended = new Set<string>()
  return (change) => [
    ...writesOf<PaymentRecord>(change, 'outgoing-payment').flatMap(({ before, after }) => {
      const isHidden = after.state === 'reserved' || after.state === 'declined'
      const isListed = after.lists?.some(({ list }) => !list.includes(' waiting '))
      if (isHidden && isListed) return [`${after.id} is undecided and in a list of payments`]
      if (!isCreation({ before, after }) || holds().held.has(after.id)) return []
      return [`${after.id} was created without a hold`]
    }),
    ...writesOf<EventRecord>(change, 'event').flatMap(({ before, after: { event } }) => {
      const isEnd = paymentEnds.some((type) => type === event.type)
      if (before !== undefined || !isEnd || !('outgoingPaymentId' in event)) return []
      const { outgoingPaymentId: id } = event
      if (ended.has(id)) return [`${id} has ended twice`]
      ended.add(id)
      return []
    }),
  ]
}

/** A large payment is created only if the owner has confirmed it. */
export const everyLargePaymentIsConfirmed: Law = (change) =>
  writesOf<PaymentRecord>(change, 'outgoing-payment').flatMap(({ before, after }) => {
    if (!isCreation({ before, after }) || !isLarge(after)) return []
    const { given } = after.confirmation ?? {}
    const isConfirmed = given !== undefined && change.journal.confirmed.has(after.id)
    return isConfirmed ? [] : [`${after.id} was created before its owner has confirmed it`]
  })

/** One intention, idempotency key, quote or signed message makes at most one payment while its record is kept. */
export function everyIntentionPaysOnce(): Law {
  const made = new Map<string, string>()
  return (change) => {
    for (const { kind, before, after } of change.written) {
      const name = before && after === undefined ? onceOf(kind, before) : undefined
      if (name !== undefined) made.delete(name)
    }
    return change.written.flatMap(({ kind, before, after }) => {
      const name = after && before === undefined ? onceOf(kind, after) : undefined
      if (name === undefined || after === undefined) return []
      const other = made.get(name)
      made.set(name, after.id)
      return other === undefined ? [] : [`${name} made two payments: ${other} and ${after.id}`]
    })
  }
}

/** Returns what may make only one payment, which client instances put into the metadata. */
function onceOf(kind: string, record: Stored): string | undefined {
  if (kind !== 'outgoing-payment' && kind !== 'incoming-payment') return undefined
  const { metadata } = record as { readonly metadata?: { readonly once?: string } }
  return metadata?.once
}
