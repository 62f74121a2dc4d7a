import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Grant } from '../core/grant/record.js'
import { confirmationDeclined } from '../core/outgoing-payment/confirmation.js'
import type { CreationPolicy } from '../core/outgoing-payment/create.js'
import { rightsOf } from '../core/outgoing-payment/granted-rights.js'
import {
  type ConfirmDecision,
  type ConfirmRefusal,
  confirmByOwner,
  type DeclineByOwnerRefusal,
  declinableByOwner,
  type ShownPayment,
  unknownConfirmation,
} from '../core/outgoing-payment/owner-decision.js'
import {
  type Confirmation,
  type DeclineRefusal,
  isCreated,
  type OutgoingPayment,
  type PaymentRecord,
  type ReservedPayment,
} from '../core/outgoing-payment/record.js'
import { declinedFor, reservedByOther } from '../core/outgoing-payment/reservation.js'
import type { MayPay } from '../ports/host.js'
import { newCall, type ServiceContext } from './context.js'
import { loadGrant, loadOwn } from './load.js'
import { decline, grantEnded, settleReserved, waitForDecision } from './reserved-payment.js'
import { ContentionError } from './store-errors.js'

interface Dependencies {
  readonly context: ServiceContext
  /** Whether the grants, and so their owners, are in the store of this server. */
  readonly hasGrants: boolean
  readonly mayPay: MayPay | undefined
  readonly policy: Pick<CreationPolicy, 'payments' | 'reservations'>
}

/** A payment whose confirmation can be given or repeated, and the owner who consented, if this server knows one. */
export interface ConfirmablePayment {
  readonly payment: ReservedPayment & { readonly confirmation: Confirmation }
  readonly resourceOwner?: string
}

type Confirmed =
  | { readonly ok: true; readonly payment: OutgoingPayment; readonly changed: boolean }
  | Refused<ConfirmRefusal | DeclineRefusal | 'not_the_owner'>

type Declined =
  | { readonly ok: true; readonly changed: boolean }
  | Refused<DeclineByOwnerRefusal | 'not_the_owner'>

/** The owner's decision about a payment. */
export type OwnerConfirmations = ReturnType<typeof createOwnerConfirmations>

export function createOwnerConfirmations(deps: Dependencies) {
  return {
    find: (id: string) => find(deps, id),
    confirm: (id: string, resourceOwner: string, shown: ShownPayment) =>
      confirm(deps, id, resourceOwner, shown),
    decline: (id: string, resourceOwner: string) => declineAsOwner(deps, id, resourceOwner),
  }
}

/** Resolves to `undefined` if the payment is decided, if the time to confirm it is over, or if its grant has ended. */
async function find(
  { context, hasGrants }: Dependencies,
  id: string,
): Promise<ConfirmablePayment | undefined> {
  const { now } = newCall(context)
  const payment = await loadOwn<PaymentRecord>(context, 'outgoing-payment', id)
  const { confirmation } = payment ?? {}
  if (payment?.state !== 'reserved' || confirmation === undefined) return undefined
  if (now >= payment.dueAt) return undefined
  const confirmable = { payment: { ...payment, confirmation } }
  if (!hasGrants) return confirmable
  const grant = await loadGrant(context, payment.grantId)
  if (grant === undefined || rightsOf(grant, now) === undefined) return undefined
  const { resourceOwner } = grant.consent ?? {}
  return { ...confirmable, ...(resourceOwner !== undefined && { resourceOwner }) }
}

/** Asks the host again about a payment that its owner confirms, and creates or declines the payment. */
async function confirm(
  deps: Dependencies,
  id: string,
  resourceOwner: string,
  shown: ShownPayment,
): Promise<Confirmed> {
  const { context, hasGrants, mayPay, policy } = deps
  const endsAt = context.pacing.elapsedMs() + context.storeTimeoutMs
  const { commandId } = newCall(context)
  const key = { kind: 'outgoing-payment', id } as const
  for (;;) {
    const owned = await loadOwned(deps, id, resourceOwner)
    if (!owned.ok) return owned
    const now = context.clock.now()
    const confirmed = await context.run<ConfirmDecision>({
      reads: [key],
      decide(read) {
        const command = { commandId, resourceOwner, shown }
        const result = confirmByOwner(read<PaymentRecord>(key), command, now, policy.reservations)
        return result.ok && result.outcome === 'changed'
          ? { changes: [{ ...key, next: result.record }], result }
          : { result }
      },
    })
    if (!confirmed.ok) return confirmed
    const { record } = confirmed
    if (isCreated(record)) return { ok: true, payment: record, changed: false }
    if (record.state === 'declined') return declinedFor(record)
    const reserved = reservedByOther(record, commandId)
    if (reserved !== undefined) {
      if (await waitForDecision(deps, reserved, endsAt)) continue
      throw new ContentionError('another request is asking the host about the payment')
    }

    const rights = owned.value.grant && rightsOf(owned.value.grant, now)
    const { conditions } = rights ?? record.confirmation ?? {}
    const settled =
      hasGrants && rights === undefined
        ? await decline(deps, record, grantEnded)
        : await settleReserved(deps, mayPay, record, { conditions })
    if (settled.ok) return { ...settled, changed: true }
    const { refusal } = settled
    if (refusal !== 'outdated' && refusal !== 'confirmation_required') {
      return { ...settled, refusal }
    }
    if (context.pacing.elapsedMs() >= endsAt) throw new ContentionError()
  }
}

async function declineAsOwner(
  deps: Dependencies,
  id: string,
  resourceOwner: string,
): Promise<Declined> {
  const { clock, pacing, storeTimeoutMs } = deps.context
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  for (;;) {
    const owned = await loadOwned(deps, id, resourceOwner)
    if (!owned.ok) return owned
    const { payment } = owned.value
    const waiting = declinableByOwner(payment, clock.now())
    if (!waiting.ok) {
      return waiting.refusal === 'confirmation_declined' ? { ok: true, changed: false } : waiting
    }
    const settled = await decline(deps, waiting.value, confirmationDeclined)
    if (!settled.ok && settled.refusal === 'confirmation_declined') {
      return { ok: true, changed: true }
    }
    if (pacing.elapsedMs() >= endsAt) throw new ContentionError()
  }
}

interface OwnedPayment {
  readonly payment: PaymentRecord
  /** Absent if it is not in this store, or no longer exists. */
  readonly grant?: Grant | undefined
}

/**
 * Loads a payment whose confirmation the host has required, and refuses anybody but the owner who consented to its
 * grant. The host vouches for the owner if this server knows none: the grant is remote, or needed no consent.
 */
async function loadOwned(
  { context, hasGrants }: Dependencies,
  id: string,
  resourceOwner: string,
): Promise<Result<OwnedPayment, Refused<'payment_unknown' | 'not_the_owner'>>> {
  const payment = await loadOwn<PaymentRecord>(context, 'outgoing-payment', id)
  if (payment?.confirmation === undefined) return unknownConfirmation
  const grant = hasGrants ? await loadGrant(context, payment.grantId) : undefined
  const owner = grant?.consent?.resourceOwner
  return owner === undefined || owner === resourceOwner
    ? ok({ payment, grant })
    : refused('not_the_owner', 'another owner consented to the grant')
}
