import { type Refused, refused } from '../core/decision.js'
import type { Stored } from '../core/stored.js'
import { shortHashText } from '../util/hash.js'
import type { ServiceContext } from './context.js'
import { loadOne } from './load.js'
import { ifRetired, postpone, type SweptKind } from './sweep.js'
import { replayMarginMs } from './time.js'

/**
 * The record of an idempotency key, which names the payment that was created with it. The id of the payment is not
 * derived from the key: any client that knows the URL of a payment may read it, so the URL must be unguessable.
 */
export interface UsedKey extends Stored {
  readonly resultId: string
}

/**
 * The record of a key of the host. It outlives its payment, so it contains the hash of the request itself: the key
 * never pays for another one.
 */
export interface HostKey extends UsedKey {
  readonly requestHash: string
}

/** Returns the refusal of a request with a key of the host that was used for another one. */
export function otherThan(
  { requestHash }: HostKey,
  request: Pick<HostKey, 'requestHash'>,
): Refused<'request_differs'> | undefined {
  return requestHash === request.requestHash
    ? undefined
    : refused('request_differs', 'this idempotency key was used for another payment')
}

/**
 * How long the key of a payment that an owner ordered is kept at least, in milliseconds: 400 days, also if the clock
 * that removes it is ahead of the one that created it.
 */
export const orderKeyMs = 400 * 86_400_000 + replayMarginMs

/** Who chose a key: the host for incoming payments, a client, or the owner of an account through the host. */
type KeyOwner = 'host' | `client ${string}` | `owner ${string}`

/**
 * Returns the id of the record of a key. The ids of other replay records are hashes of texts that begin with a
 * thumbprint. Neither a client nor a wallet address contains a space.
 */
export async function usedKeyId(
  namespace: string,
  idempotencyKey: string,
  owner: KeyOwner,
): Promise<string> {
  return namespace + (await shortHashText(`${owner} ${idempotencyKey}`))
}

/** Returns the record of a key that names a payment: the first, or the next after a payment that was removed. */
export function nextUsedKey(
  id: string,
  before: UsedKey | undefined,
  { resultId, commandId }: Pick<UsedKey, 'resultId' | 'commandId'>,
): UsedKey {
  return { id, version: (before?.version ?? 0) + 1, commandId, resultId }
}

/**
 * Sweeps replay records: those of signatures, and of the host's keys for incoming payments, when their retention ends.
 * The key of an outgoing payment is kept as long as its payment, so each time it is due, a sweep looks whether the
 * payment is gone.
 */
export function sweptReplays(
  context: ServiceContext,
  { retentionMs }: { readonly retentionMs: number },
): SweptKind {
  return {
    kind: 'replay',
    async sweep(record, now) {
      if (record.retainUntil !== undefined) return ifRetired(record, now)
      const id = (record as UsedKey).resultId
      const payment = await loadOne(context.store, { kind: 'outgoing-payment', id })
      if (payment === undefined) return 'retired'
      return postpone(context, 'replay', record, (commandId) => {
        const dueAt = Math.max(payment.retainUntil ?? 0, now) + retentionMs
        return { ...record, version: record.version + 1, commandId, dueAt }
      })
    },
  }
}
