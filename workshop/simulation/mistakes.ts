import type { Budget } from '../../src/core/budget/record.js'
import type { OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import type { Commit, RecordChange } from '../../src/entry-adapter.js'
import type { Introspection, ResourceServer, Store } from '../../src/index.js'
import type { Introspect } from '../../src/ports/host.js'
import type { EventRecord } from '../../src/service/event-record.js'
import { loadOne } from '../../test/support/one-record.js'
import type { Mistake } from './world.js'

/** Mistakes that a store or a wallet could make. The laws must find each of them. */
export const mistakes = {
  'a store that does not compare versions': { database: { checksVersions: false } },
  'a store that ignores guards': { database: { checksGuards: false } },
  'a store that writes a part of a commit': { database: { isAtomic: false } },
  'a store that reads from a replica': { database: { readsLatest: false } },
  'a server that forgets nonces and signatures': { store: withoutNonces },
  'a wallet that reads budgets without comparing them later': { store: withStaleBudgets },
  'a rotation that leaves the old token live': { introspect: remembered },
  'a wallet that counts each report of a transfer': { resources: countingEachReport },
  'a wallet that lets two processes begin a payment': { resources: beginningTwice },
  'a wallet that does not tell that it declined a payment': { store: withoutDeclines },
  'a wallet that keeps nothing of ended grants': { store: withoutEndedGrants },
  'a wallet whose owner pays twice with one key': { resources: payingAgain },
  'a wallet that counts orders in the budget of a grant': { store: chargingGrants },
  'a wallet that shows the owner’s payments to clients': { store: listingOrders },
} as const satisfies Readonly<Record<string, Mistake>>

export type MistakeName = keyof typeof mistakes

function withoutNonces(store: Store): Store {
  return {
    ...store,
    async load(keys) {
      const found = await store.load(keys)
      return found.map((each, i) => (keys[i]?.kind === 'replay' ? undefined : each))
    },
    async commit({ changes, guards }) {
      const others = changes.filter(({ kind }) => kind !== 'replay')
      return others.length === 0 || store.commit({ changes: others, guards })
    },
  }
}

function withoutDeclines(store: Store): Store {
  const isKept = ({ next }: RecordChange) =>
    (next as Partial<EventRecord>).event?.type !== 'outgoing-payment.declined'
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes: changes.filter(isKept), guards }),
  }
}

function withoutEndedGrants(store: Store): Store {
  const isKept = ({ kind }: RecordChange) => kind !== 'ended-grant'
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes: changes.filter(isKept), guards }),
  }
}

function payingAgain(resources: ResourceServer): ResourceServer {
  const { outgoingPayments } = resources
  let orders = 0
  return {
    ...resources,
    outgoingPayments: {
      ...outgoingPayments,
      create: (payment) =>
        outgoingPayments.create(
          'idempotencyKey' in payment
            ? { ...payment, idempotencyKey: `${payment.idempotencyKey}-${++orders}` }
            : payment,
        ),
    },
  }
}

/** Adds what the owner orders to the budget that was written last. */
function chargingGrants(store: Store): Store {
  let latest = ''
  return {
    ...store,
    async commit({ changes, guards }) {
      const ordered = changes.find(
        ({ kind, expectedVersion, next }) =>
          kind === 'outgoing-payment' && expectedVersion === 0 && !('grantId' in next),
      )
      const budget = ordered && (await loadOne<Budget>(store, 'budget', latest))
      for (const { kind, next } of changes) {
        if (kind === 'budget' && !next.id.includes('.owner.')) latest = next.id
      }
      if (ordered === undefined || budget?.spent.debitAmount == null)
        return store.commit({ changes, guards })
      const { debitAmount } = ordered.next as unknown as OutgoingPayment
      const { debitAmount: before } = budget.spent
      const value = `${BigInt(before.value) + BigInt(debitAmount.value)}`
      const spent = { ...budget.spent, debitAmount: { ...before, value } }
      const next = { ...budget, spent, version: budget.version + 1 }
      const charge: RecordChange = { kind: 'budget', next, expectedVersion: budget.version }
      return store.commit({ changes: [...changes, charge], guards })
    },
  }
}

/** Writes what the owner orders into the list of all clients. */
function listingOrders(store: Store): Store {
  return {
    ...store,
    commit({ changes, guards }) {
      const listed = changes.map((change): RecordChange => {
        const { lists = [] } = change.next
        if (change.kind !== 'outgoing-payment' || 'grantId' in change.next) return change
        const shared = lists.map((each) => ({ ...each, list: each.list.replace('!', ' ') }))
        return { ...change, next: { ...change.next, lists: shared } }
      })
      return store.commit({ changes: listed, guards })
    },
  }
}

/** The last writer of a budget wins, whatever it has read. */
function withStaleBudgets(store: Store): Store {
  async function current({ changes, guards }: Commit): Promise<Commit> {
    const rewritten = changes.map(async (change) => {
      if (change.kind !== 'budget') return change
      const version = (await loadOne(store, 'budget', change.next.id))?.version ?? 0
      const next = { ...change.next, version: version + 1 }
      return { ...change, next, expectedVersion: version }
    })
    return { changes: await Promise.all(rewritten), guards }
  }
  return { ...store, commit: async (commit) => store.commit(await current(commit)) }
}

const rememberedMs = 60_000

/** Introspects a token once a minute. */
function remembered(introspect: Introspect, now: () => number): Introspect {
  const known = new Map<string, { readonly at: number; readonly answer: Introspection }>()
  return async (query) => {
    const found = known.get(query.accessToken)
    if (found !== undefined && now() < found.at + rememberedMs) return found.answer
    const answer = await introspect(query)
    known.set(query.accessToken, { at: now(), answer })
    return answer
  }
}

function countingEachReport(resources: ResourceServer): ResourceServer {
  const { incomingPayments } = resources
  let reports = 0
  return {
    ...resources,
    incomingPayments: {
      ...incomingPayments,
      receive: (paymentId, { transferId, amount }) =>
        incomingPayments.receive(paymentId, { transferId: `${transferId}-${++reports}`, amount }),
    },
  }
}

function beginningTwice(resources: ResourceServer): ResourceServer {
  const { outgoingPayments } = resources
  return {
    ...resources,
    outgoingPayments: {
      ...outgoingPayments,
      async begin(paymentId) {
        const result = await outgoingPayments.begin(paymentId)
        if (result.ok || result.refusal !== 'payment_begun') return result
        const payment = await outgoingPayments.get(paymentId)
        return payment === undefined ? result : { ok: true, payment, changed: true }
      },
    },
  }
}
