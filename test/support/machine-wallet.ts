import { type Budget, budgetId, release } from '../../src/core/budget.js'
import {
  allow,
  createOutgoingPayment,
  decideOutgoingPayment,
  heldBy,
  type OutgoingPaymentCommand,
  permits,
} from '../../src/entry-core.js'
import type { GrantedItem, OutgoingPayment } from '../../src/index.js'
import type {
  PaymentAnswer,
  SpendingAnswer,
  SpendingScene,
  SpendingWallet,
  WalletRequest,
} from '../../src/testing/index.js'

const namespace = 'machines'
const day = 86_400_000
const policy = { holdMs: day, retentionMs: 366 * day }

/** The decisions of the core without the services: one payment after the other, in memory. */
export function machineWallet({ receivers }: SpendingScene): SpendingWallet {
  const grants = new Map<string, { items: readonly GrantedItem[]; revoked: boolean }>()
  const budgets = new Map<string, Budget>()
  const payments = new Map<string, OutgoingPayment>()
  let now = 0
  let commands = 0

  function pay({ grant: grantId, ...request }: WalletRequest): PaymentAnswer {
    const { key: id, walletAddress, receiver, debitAmount } = request
    const { items = [], revoked = true } = grants.get(grantId) ?? {}
    const earlier = payments.get(id)
    if (earlier !== undefined) return answer(earlier)
    if (revoked) return { accepted: false, reason: 'revoked' }
    const found = receivers.find(({ url }) => url === receiver) ?? receivers[0]
    const value = String(BigInt(debitAmount.value) / (found.unitPrice ?? 1n))
    const spending = { receiver, debitAmount, receiveAmount: { value, ...found.asset } }
    const commandId = `command-${++commands}`
    const charge = { commandId, namespace, grantId }
    const candidates = items
      .filter((item) => permits([item], 'outgoing-payment', 'create', walletAddress))
      .map((item) => {
        const allowed = allow(item, spending, now)
        const budget = allowed.ok ? budgets.get(budgetId(charge, item, allowed.value)) : undefined
        return budget === undefined ? { item } : { item, budget }
      })
    const identity = { id, walletAddress, client: 'shop', requestHash: id, lists: [] }
    const command = { ...charge, ...identity, ...spending, candidates }
    const created = createOutgoingPayment(command, now, policy)
    if (created.outcome === 'refused') return { accepted: false, reason: created.reason }
    budgets.set(created.budget.id, created.budget)
    payments.set(id, created.record)
    return answer(created.record)
  }

  function answer({ id, budgetId }: OutgoingPayment): PaymentAnswer {
    const { debitAmount, receiveAmount } = budgets.get(budgetId)?.spent ?? {}
    return {
      accepted: true,
      id,
      ...(debitAmount && { spentDebitAmount: debitAmount }),
      ...(receiveAmount && { spentReceiveAmount: receiveAmount }),
    }
  }

  function report(
    id: string,
    command: (commandId: string) => OutgoingPaymentCommand,
  ): Promise<SpendingAnswer> {
    const payment = payments.get(id)
    if (payment === undefined) return Promise.resolve({ accepted: false, reason: 'unknown' })
    const commandId = `command-${++commands}`
    const decision = decideOutgoingPayment(payment, command(commandId), now, policy)
    if (decision.outcome === 'refused') {
      return Promise.resolve({ accepted: false, reason: decision.reason })
    }
    payments.set(id, decision.record)
    const budget = budgets.get(payment.budgetId)
    const next = budget && release(budget, heldBy(payment), heldBy(decision.record), commandId)
    if (next !== undefined) budgets.set(next.id, next)
    return Promise.resolve({ accepted: true })
  }

  return {
    async grant(_, granted) {
      const id = `grant-${grants.size + 1}`
      const items = granted.map((item, index) => ({ ...item, itemId: String(index + 1) }))
      grants.set(id, { items, revoked: false })
      return id
    },
    pay: async (request) => pay(request),
    begin: (id) => report(id, (commandId) => ({ type: 'begin', commandId })),
    settle: (id, totals) => report(id, (commandId) => ({ type: 'settle', commandId, ...totals })),
    fail: (id, totals) => report(id, (commandId) => ({ type: 'fail', commandId, ...totals })),
    cancel: (id) => report(id, (commandId) => ({ type: 'cancel', commandId })),
    async lapse() {
      for (const id of payments.keys())
        await report(id, (commandId) => ({ type: 'lapse', commandId }))
    },
    rotate: async () => ({ accepted: true }),
    async revoke(grant) {
      const found = grants.get(grant)
      if (found !== undefined) found.revoked = true
    },
    setClock(instant) {
      now = instant
    },
  }
}
