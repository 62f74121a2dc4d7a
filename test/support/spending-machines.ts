import { permits } from '../../src/core/access.js'
import { type Budget, budgetId, release, totalSpent } from '../../src/core/budget.js'
import { allowanceAt } from '../../src/core/limits.js'
import { createOutgoingPayment, repeated } from '../../src/core/outgoing-payment/create.js'
import { heldBy, type OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import {
  decideOutgoingPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentRefusals,
} from '../../src/core/outgoing-payment.js'
import { createQuote, type Price, type Quote, usableQuote } from '../../src/core/quote.js'
import { ok, type Result } from '../../src/core/result.js'
import { manualClock } from './clock.js'
import {
  commandId,
  due,
  type Granted,
  get,
  granted,
  isGood,
  lives,
  type Machines,
  put,
  remove,
} from './machine-records.js'
import type {
  Asked,
  ClientName,
  Declined,
  HostAnswer,
  PayAnswer,
  PayRequest,
  PlayedWallet,
  QuoteAnswer,
  SpentAnswer,
} from './played-wallet.js'
import { listPrice } from './spending.js'
import { spendingPolicy, tokenLifetimeMs } from './spending-services.js'

const namespace = 'namespac'
const declined = (refusal: string): Declined => ({ ok: false, refusal })
const limits = { ...spendingPolicy.payments, ...spendingPolicy.budgets }

/**
 * A wallet built from the state machines and a few maps, as in a host that embeds them. Every record is frozen, so that
 * a machine that modifies its input fails.
 */
export function machineWallet(): PlayedWallet {
  const machines: Machines = {
    clock: manualClock(),
    records: new Map(),
    grants: [],
    commands: 0,
    writes: 0,
  }
  const { clock, records, grants } = machines
  const of = (grant: number) => grants[grant] as Granted
  const nextId = () => ({ commandId: commandId(machines) })
  return {
    clock,
    written: { count: () => machines.writes, get: (kind, id) => records.get(`${kind} ${id}`) },
    async grant(client, access) {
      grants.push(granted(client, access, grants.length, clock.now()))
    },
    async rotate(grant) {
      if (!lives(machines, of(grant))) return false
      of(grant).expiresAt = clock.now() + tokenLifetimeMs
      return true
    },
    async revoke(grant) {
      of(grant).revoked = true
    },
    quote: async (client, asked) => quote(machines, client, asked),
    pay: async (grant, request, key) => pay(machines, of(grant), request, key),
    spent: async (grant) => spent(machines, of(grant)),
    begin: async (id) => run<'begin'>(machines, id, { type: 'begin', ...nextId() }),
    reportSent: async (id, totals) =>
      run<'report-sent'>(machines, id, { type: 'report-sent', ...nextId(), ...totals }),
    fail: async (id, totals) => run<'fail'>(machines, id, { type: 'fail', ...nextId(), ...totals }),
    cancel: async (id) => run<'cancel'>(machines, id, { type: 'cancel', ...nextId() }),
    async sweep() {
      const lapsed = lapseDue(machines)
      for (const kind of ['quote', 'budget'] as const) remove(machines, kind)
      return lapsed
    },
  }
}

function price(asked: Parameters<typeof listPrice>[0]): Result<Price, Declined> {
  if ((asked.debitAmount ?? asked.receiveAmount)?.value === '0') return declined('amount_invalid')
  const answer = listPrice(asked)
  if (!answer.ok) return declined(answer.refusal)
  const { ok: _ok, ...price } = answer
  return ok(price)
}

function quote(
  machines: Machines,
  client: ClientName,
  { walletAddress, ...asked }: Asked,
): QuoteAnswer {
  const answer = price(asked)
  if (!answer.ok) return answer
  const id = `quote-${commandId(machines)}`
  const command = {
    ...answer.value,
    commandId: commandId(machines),
    id,
    walletAddress,
    client: `https://${client}.example`,
    receiver: asked.receiver,
  }
  const decision = createQuote(command, machines.clock.now(), spendingPolicy.quotes)
  if (decision.outcome === 'refused') return declined(decision.refusal)
  put(machines, 'quote', decision.record)
  return ok(id)
}

function pay(machines: Machines, grant: Granted, request: PayRequest, key?: string): PayAnswer {
  if (!isGood(machines, grant)) return declined('token_unknown')
  const { walletAddress, ...rest } = request
  if (!permits(grant.items, 'outgoing-payment', 'create', walletAddress)) {
    return declined('identifier_foreign')
  }
  const { id = `payment-${commandId(machines)}`, earlier } = earlierOf(
    machines,
    grant,
    request,
    key,
  )
  if (earlier !== undefined) {
    return earlier.ok ? answer(machines, grant, earlier.value) : declined('request_differs')
  }
  const terms = termsOf(machines, grant, request)
  if (!terms.ok) return declined(terms.refusal)
  const { receiver, debitAmount, receiveAmount } = terms.value
  const command = {
    commandId: commandId(machines),
    id,
    namespace,
    grantId: grant.id,
    walletAddress,
    client: grant.client,
    ...('quoteId' in rest && { quoteId: rest.quoteId }),
    requestHash: JSON.stringify(request),
    receiver,
    debitAmount,
    receiveAmount,
    lists: [],
    candidates: candidates(machines, grant, request),
  } as const
  const decision = createOutgoingPayment(command, machines.clock.now(), limits)
  if (decision.outcome === 'refused') return declined(decision.refusal)
  put(machines, 'outgoing-payment', decision.record)
  put(machines, 'budget', decision.budget)
  return answer(machines, grant, decision.record)
}

function earlierOf(
  machines: Machines,
  { client }: Granted,
  request: PayRequest,
  key: string | undefined,
) {
  const id = 'quoteId' in request ? request.quoteId : key && `${client}-${key}`
  const payment =
    id === undefined ? undefined : get<OutgoingPayment>(machines, 'outgoing-payment', id)
  return { id, earlier: repeated(payment, { client, requestHash: JSON.stringify(request) }) }
}

function termsOf(machines: Machines, { client }: Granted, request: PayRequest) {
  if ('quoteId' in request) {
    const use = { walletAddress: request.walletAddress, client }
    const quote = get<Quote>(machines, 'quote', request.quoteId)
    return usableQuote(quote, use, machines.clock.now())
  }
  const receiver = request.incomingPayment
  const answer = price({ receiver, debitAmount: request.debitAmount })
  return answer.ok ? ok({ receiver, ...answer.value }) : answer
}

function candidates(
  machines: Machines,
  { id: grantId, items }: Granted,
  { walletAddress }: PayRequest,
) {
  return items
    .filter((item) => permits([item], 'outgoing-payment', 'create', walletAddress))
    .map((item) => {
      const allowance = allowanceAt(item, machines.clock.now())
      if (!allowance.ok) return { item }
      const id = budgetId({ namespace, grantId }, item, allowance.value)
      const budget = get<Budget>(machines, 'budget', id)
      return budget === undefined ? { item } : { item, budget }
    })
}

function answer(machines: Machines, grant: Granted, { id }: OutgoingPayment): PayAnswer {
  const totals = spent(machines, grant)
  return ok(totals.ok ? { id, spent: totals.value } : { id })
}

function spent(machines: Machines, grant: Granted): SpentAnswer {
  if (!isGood(machines, grant)) return declined('token_unknown')
  const parts = grant.items.map((item) => {
    const allowance = allowanceAt(item, machines.clock.now())
    if (!allowance.ok) return {}
    const { limit } = allowance.value
    const nothing = limit ? { [limit.counts]: { ...limit.maximum, value: '0' } } : {}
    const id = budgetId({ namespace, grantId: grant.id }, item, allowance.value)
    return get<Budget>(machines, 'budget', id)?.spent ?? nothing
  })
  return ok(totalSpent(parts))
}

function run<Type extends keyof OutgoingPaymentRefusals>(
  machines: Machines,
  id: string,
  command: Extract<OutgoingPaymentCommand, { readonly type: Type }>,
): HostAnswer {
  const payment = get<OutgoingPayment>(machines, 'outgoing-payment', id)
  if (payment === undefined) return declined('payment_unknown')
  const now = machines.clock.now()
  const decision = decideOutgoingPayment<Type>(payment, command, now, spendingPolicy.payments)
  if (decision.outcome === 'refused') return declined(decision.refusal)
  if (decision.outcome === 'unchanged') return { ok: true }
  put(machines, 'outgoing-payment', decision.record)
  const budget = get<Budget>(machines, 'budget', payment.budgetId)
  const next =
    budget && release(budget, heldBy(payment), heldBy(decision.record), command.commandId)
  if (next !== undefined) put(machines, 'budget', next)
  return { ok: true }
}

function lapseDue(machines: Machines): number {
  remove(machines, 'outgoing-payment')
  const lapsed = due(machines, 'outgoing-payment').filter(({ id }) => {
    return run<'lapse'>(machines, id, { type: 'lapse', commandId: commandId(machines) }).ok
  })
  return lapsed.length
}
