import type { Stored } from '../core/stored.js'
import { shortHashText } from '../util/hash.js'
import type { ServiceContext } from './context.js'
import { loadOne } from './load.js'
import { ifRetired, postpone, type SweptKind } from './sweep.js'

/**
 * The record of an idempotency key, which names the payment that was created with it. The id of the payment is not
 * derived from the key: any client that knows the URL of a payment may read it, so the URL must be unguessable.
 */
export interface UsedKey extends Stored {
  readonly resultId: string
}

/**
 * Returns the id of the record of a key.
 *
 * @param owner who chose the key: a client, or nobody for the host. The ids of other replay records are hashes of texts
 *   that begin with a thumbprint.
 */
export async function usedKeyId(
  namespace: string,
  idempotencyKey: string,
  owner?: string,
): Promise<string> {
  const text = owner === undefined ? `host ${idempotencyKey}` : `client ${owner} ${idempotencyKey}`
  return namespace + (await shortHashText(text))
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
 * Sweeps replay records: those of signatures and of the host's keys when their retention ends. The key of a client is
 * kept as long as its payment, so each time it is due, a sweep looks whether the payment is gone.
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
