import { type Refused, refused } from '../core/decision.js'
import {
  type CreateRefusal,
  createIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentPolicy,
  retainTransferUntil,
} from '../core/incoming-payment.js'
import type { Stored } from '../core/stored.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { newId } from '../protocol/credential.js'
import type { IncomingPaymentRequest } from '../protocol/incoming-payment.js'
import { canonicalJson } from '../protocol/json.js'
import { hashText } from '../util/hash.js'
import { type AccountRefusal, activeAccount } from './account.js'
import { changeOf } from './mechanism/changes.js'
import { type Call, newCall, type ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import { listsOf, openListName } from './mechanism/pages.js'
import { loadOwn } from './mechanism/records.js'
import { type Attempt, transact } from './mechanism/transact.js'

export type PaymentRefusal = CreateRefusal | AccountRefusal

/** What decides and commits a new incoming payment. */
export interface CreationPorts {
  readonly context: ServiceContext
  readonly walletAddresses: WalletAddresses
  readonly policy: IncomingPaymentPolicy
}

/** The result of a creation by the host. */
export type CreatedOnce =
  | { readonly ok: true; readonly payment: IncomingPayment; readonly changed: boolean }
  | Refused<PaymentRefusal | 'request_differs' | 'payment_unknown'>

/** Decides a creation. Without a client instance, the host creates the payment. */
export async function decideCreation(
  { context, walletAddresses, policy }: CreationPorts,
  request: IncomingPaymentRequest,
  { now, commandId }: Call,
  client?: string,
) {
  const { walletAddress } = request
  const found = await activeAccount(walletAddresses, walletAddress)
  if (!found.ok) return found
  const { assetCode, assetScale } = found.value
  const namespace = await context.namespace()
  const command = {
    ...request,
    commandId,
    id: newId(namespace, context.random),
    asset: { assetCode, assetScale },
    lists: listsOf(namespace, walletAddress, client, now),
    ...(client !== undefined && {
      client,
      openList: openListName(namespace, { walletAddress, client }),
    }),
  }
  return createIncomingPayment(command, now, policy)
}

/**
 * The record of an idempotency key of the host, which leads to its payment. The id of the payment is not derived from
 * the key: any client that knows the URL of a payment may read it, so the URL must be unguessable.
 */
interface UsedKey extends Stored {
  readonly paymentId: string
  readonly requestHash: string
}

interface Loaded {
  readonly used?: UsedKey | undefined
  readonly payment?: IncomingPayment | undefined
}

/** Creates a payment for the host, or resolves to the one that an equal call with the same key created. */
export async function createOnce(
  deps: CreationPorts,
  request: IncomingPaymentRequest,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const { context } = deps
  const call = newCall(context)
  const keyId = await recordIdOf(await context.namespace(), idempotencyKey)
  const requestHash = await hashText(canonicalJson({ ...request }))
  const reload = () => loadUsed(context, keyId)
  const loaded = await reload()
  if (loaded.used !== undefined) return earlier(loaded, requestHash, call)
  const decision = await decideCreation(deps, request, call)
  if (!decision.ok) return decision
  const { record, events } = decision
  // Kept as long as the transfers of the payment: a repeat must not create a second payment.
  const retainUntil = retainTransferUntil(record)
  const { id: paymentId, commandId } = record
  const times = { dueAt: retainUntil, retainUntil }
  const used: UsedKey = { id: keyId, version: 1, commandId, ...times, paymentId, requestHash }
  return transact<Loaded, CreatedOnce>(context, {
    loaded,
    reload,
    decide(found): Attempt<CreatedOnce> {
      if (found.used !== undefined) {
        return { changes: [], result: earlier(found, requestHash, call), refused: false }
      }
      const changes = [
        ...changesOf(context, 'incoming-payment', undefined, record, events),
        changeOf('nonce', undefined, used),
      ]
      return { changes, result: { ok: true, payment: record, changed: true }, refused: false }
    },
  })
}

async function loadUsed(context: ServiceContext, keyId: string): Promise<Loaded> {
  const used = (await context.store.load('nonce', keyId)) as UsedKey | undefined
  if (used === undefined) return {}
  return { used, payment: await loadOwn(context, 'incoming-payment', used.paymentId) }
}

function earlier({ used, payment }: Loaded, requestHash: string, { commandId }: Call): CreatedOnce {
  if (used?.requestHash !== requestHash) {
    return refused('request_differs', 'this idempotency key was used for another payment')
  }
  return payment === undefined
    ? unknownPayment
    : { ok: true, payment, changed: used.commandId === commandId }
}

export const unknownPayment = refused('payment_unknown', 'the incoming payment does not exist')

/** The ids of nonces are hashes of texts that begin with a key thumbprint, and so never with `host` and a space. */
async function recordIdOf(namespace: string, idempotencyKey: string): Promise<string> {
  // As JSON, because UTF-8 does not distinguish lone surrogates.
  return namespace + (await hashText(`host ${JSON.stringify(idempotencyKey)}`))
}
