import { permits } from '../core/access.js'
import {
  type Budget,
  itemStatus,
  type PayingItem,
  payingItems,
  type SpentAmounts,
  totalSpent,
} from '../core/budget.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { Quote } from '../core/quote.js'
import type { Stored } from '../core/stored.js'
import type { ActiveToken } from '../ports/introspect.js'
import type { RecordKey, RecordKind, Store } from '../ports/store.js'
import { isIdOf } from '../protocol/credential.js'
import { loadAll } from './mechanism/load-all.js'
import type { Read, Requested } from './outgoing-payment-request.js'

/** What to read besides the quote and the budgets. */
export interface AlsoRead {
  /** The id of the payment. */
  readonly payment?: string | undefined
  /** Whether the nonce or signature of the request has been consumed. */
  readonly nonce?: boolean
  /** The grant whose version the commit guards. */
  readonly grant?: RecordKey | undefined
}

/** The keys of what a creation reads, and how to find it among loaded records. */
interface Plan {
  readonly keys: readonly RecordKey[]
  readonly read: (look: (key: RecordKey | undefined) => Stored | undefined) => Read
}

/** Reads what a creation depends on, with one call of `loadAll`. Without a token there are no budgets. */
export async function readFor(
  store: Store,
  requested: Requested,
  token: ActiveToken | undefined,
  also: AlsoRead,
): Promise<Read> {
  const plan = planOf(requested, token, also)
  const [read = { items: [], candidates: [] }] = await readPlans(store, [plan])
  return read
}

/** Reads what several creations under one grant depend on, with one call of `loadAll`. */
export function readForAll(
  store: Store,
  all: readonly { readonly requested: Requested; readonly also: AlsoRead }[],
): Promise<readonly Read[]> {
  const plans = all.map(({ requested, also }) => planOf(requested, requested.spender.token, also))
  return readPlans(store, plans)
}

async function readPlans(store: Store, plans: readonly Plan[]): Promise<readonly Read[]> {
  const keys = new Map(plans.flatMap((plan) => plan.keys.map((key) => [nameOf(key), key] as const)))
  const found = await loadAll(store, [...keys.values()])
  const records = new Map([...keys.keys()].map((name, index) => [name, found[index]] as const))
  return plans.map(({ read }) => read((key) => key && records.get(nameOf(key))))
}

function planOf(requested: Requested, token: ActiveToken | undefined, also: AlsoRead): Plan {
  const { input, namespace, grantNamespace, call } = requested
  const own = (kind: RecordKind, id: string) => (isIdOf(namespace, id) ? { kind, id } : undefined)
  const quote = 'quoteId' in input ? own('quote', input.quoteId) : undefined
  const payment = also.payment === undefined ? undefined : own('outgoing-payment', also.payment)
  const guard = also.nonce ? call.replay.guard?.change : undefined
  const nonce = guard && { kind: guard.kind, id: guard.next.id }
  const charge = { namespace: grantNamespace, grantId: token?.grantId ?? '' }
  const paying = payingItems(token?.access ?? [], charge, call.now)
  const { grant } = also
  const budgetKey = ({ open }: PayingItem) =>
    open && ({ kind: 'budget', id: open.budgetId } as const)
  const budgets = paying.map(budgetKey)
  return {
    keys: [quote, ...budgets, payment, nonce, grant].filter((key) => key !== undefined),
    read(look) {
      const consumed = look(nonce)
      const items = paying.map((each) => {
        const budget = look(budgetKey(each)) as Budget | undefined
        return { ...each, ...(budget && { budget }) }
      })
      return {
        quote: look(quote) as Quote | undefined,
        items,
        candidates: items.filter(({ item }) =>
          permits([item], 'outgoing-payment', 'create', input.walletAddress),
        ),
        payment: look(payment) as OutgoingPayment | undefined,
        consumed: consumed && (consumed.commandId === call.commandId ? 'us' : 'another'),
        grant: look(grant),
      }
    },
  }
}

/**
 * Returns what `spentUnder` resolves to after a commit with these budgets, by their ids. Another commit can have charged
 * other items of the grant in the meantime.
 */
export function spentWith({ items }: Read, charged: ReadonlyMap<string, Budget>): SpentAmounts {
  const parts = items.map(({ budget, ...each }) => {
    const next = each.open && charged.get(each.open.budgetId)
    return itemStatus(each, next ?? budget).spent
  })
  return totalSpent(parts)
}

function nameOf({ kind, id }: RecordKey): string {
  return `${kind} ${id}`
}
