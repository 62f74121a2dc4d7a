import type { ReservedPayment } from '../core/outgoing-payment/record.js'
import type { Store } from '../ports/store.js'
import type { ServiceContext } from './context.js'
import { loadOne } from './load.js'

/** The looks at one version of a payment that requests of this process wait for. */
interface Looks {
  waiting: number
  pauseMs: number
  /** The look that comes next; absent until a request waits for it. */
  next?: Promise<boolean> | undefined
}

const firstPauseMs = 50
/** A decision is found at most this much later. */
const pauseMaxMs = 400

const looksOf = new WeakMap<Store, Map<string, Looks>>()

const nameOf = ({ id, version }: ReservedPayment) => `${id} ${version}`

/** Begins to wait for the decision about a payment. Call the result once the request waits no longer. */
export function beginLooking({ store }: ServiceContext, payment: ReservedPayment): () => void {
  const all = looksOf.get(store) ?? new Map<string, Looks>()
  looksOf.set(store, all)
  const name = nameOf(payment)
  const looks = all.get(name) ?? { waiting: 0, pauseMs: firstPauseMs }
  all.set(name, looks)
  looks.waiting += 1
  return () => {
    looks.waiting -= 1
    if (looks.waiting === 0) all.delete(name)
  }
}

/**
 * Resolves to whether the payment has changed since, after a pause that doubles. However many requests of this process
 * wait for it, they share one look at the store.
 */
export async function nextLook(
  context: ServiceContext,
  payment: ReservedPayment,
): Promise<boolean> {
  const looks = looksOf.get(context.store)?.get(nameOf(payment))
  if (looks === undefined) throw new Error('the request has not begun to look')
  // A look that another request began may fail because the store has been slow since before this one came.
  if (looks.next !== undefined) return looks.next.catch(() => false)
  looks.next = look(context, payment, looks).finally(() => {
    looks.next = undefined
  })
  return looks.next
}

async function look(
  { store, random, pacing }: ServiceContext,
  { id, version }: ReservedPayment,
  looks: Looks,
): Promise<boolean> {
  const [byte = 0] = random.getRandomValues(new Uint8Array(1))
  const pauseMs = looks.pauseMs * (0.5 + byte / 510)
  looks.pauseMs = Math.min(2 * looks.pauseMs, pauseMaxMs)
  await pacing.sleep(pauseMs)
  const found = await loadOne(store, { kind: 'outgoing-payment', id })
  return found?.version !== version
}
