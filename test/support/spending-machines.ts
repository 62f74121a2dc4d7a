import { endOfItems, type GrantedItem, grantedItems, permits } from '../../src/core/access.js'
import { type Budget, budgetId, release, totalSpent } from '../../src/core/budget.js'
import type { Instant, Stored } from '../../src/core/decision.js'
import { allowanceAt } from '../../src/core/limits.js'
import { createOutgoingPayment, repeated } from '../../src/core/outgoing-payment/create.js'
import { heldBy, type OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import {
  decideOutgoingPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentRefusals,
} from '../../src/core/outgoing-payment.js'
import { createQuote, type Price, type Quote, usableQuote } from '../../src/core/quote.js'
import { ok } from '../../src/core/result.js'
import { manualClock } from './clock.js'
import { deepFreeze } from './frozen.js'
import type { HostAnswer, PayAnswer, PayRequest, PlayedWallet, Spent } from './played-wallet.js'
import { listPrice } from './spending.js'
import { spendingPolicy, tokenLifetimeMs } from './spending-services.js'

interface Granted {
  readonly client: string
  readonly id: string
  readonly items: readonly GrantedItem[]
  readonly endsAt: Instant
  expiresAt: Instant
  revoked: boolean
}

type Kind = 'quote' | 'outgoing-payment' | 'budget'

/**
 * A wallet that is made of nothing but the machines and a few maps: whoever embeds them does no more. Every
 * record is frozen, so that a machine that writes to what it is given fails.
 */
export function machineWallet(): PlayedWallet {
  const clock = manualClock()
  const records = new Map<string, Stored>()
  const grants: Granted[] = []
  let commands = 0
  let writes = 0
  const limits = { ...spendingPolicy.payments, ...spendingPolicy.budgets }

  const commandId = () => `command-${++commands}`
  const get = <Type>(kind: Kind, id: string) => records.get(`${kind} ${id}`) as Type | undefined
  const of = (grant: number) => grants[grant] as Granted

  function put(kind: Kind, record: Stored): void {
    writes += 1
    records.set(`${kind} ${record.id}`, deepFreeze(record))
  }

  function lives({ revoked, endsAt }: Granted): boolean {
    return !revoked && clock.now() < endsAt
  }

  function price(asked: Parameters<typeof listPrice>[0]): Price | string {
    if ((asked.debitAmount ?? asked.receiveAmount)?.value === '0') return 'amount_invalid'
    const answer = listPrice(asked)
    return 'refusal' in answer ? answer.refusal : answer
  }

  function earlierOf({ client }: Granted, request: PayRequest, key: string | undefined) {
    const id = 'quoteId' in request ? request.quoteId : key && `${client}-${key}`
    const payment = id === undefined ? undefined : get<OutgoingPayment>('outgoing-payment', id)
    return { id, earlier: repeated(payment, { client, requestHash: JSON.stringify(request) }) }
  }

  function termsOf({ client }: Granted, request: PayRequest) {
    if ('quoteId' in request) {
      const { walletAddress } = request
      const use = { walletAddress, client }
      return usableQuote(get<Quote>('quote', request.quoteId), use, clock.now())
    }
    const receiver = request.incomingPayment
    const answer = price({ receiver, debitAmount: request.debitAmount })
    return typeof answer === 'string'
      ? ({ ok: false, refusal: answer } as const)
      : ok({ receiver, ...answer })
  }

  function candidates({ id: grantId, items }: Granted, { walletAddress }: PayRequest) {
    return items
      .filter((item) => permits([item], 'outgoing-payment', 'create', walletAddress))
      .map((item) => {
        const allowance = allowanceAt(item, clock.now())
        if (!allowance.ok) return { item }
        const id = budgetId({ namespace, grantId }, item, allowance.value)
        const budget = get<Budget>('budget', id)
        return budget === undefined ? { item } : { item, budget }
      })
  }

  async function pay(grant: number, request: PayRequest, key?: string): Promise<PayAnswer> {
    const granted = of(grant)
    if (!lives(granted) || clock.now() >= granted.expiresAt) return { refusal: 'token_unknown' }
    const { walletAddress, ...rest } = request
    if (!permits(granted.items, 'outgoing-payment', 'create', walletAddress)) {
      return { refusal: 'identifier_foreign' }
    }
    const { id = `payment-${commandId()}`, earlier } = earlierOf(granted, request, key)
    if (earlier !== undefined) return earlier.ok ? answer(earlier.value) : earlierRefused
    const terms = termsOf(granted, request)
    if (!terms.ok) return { refusal: terms.refusal }
    const { receiver, debitAmount, receiveAmount } = terms.value
    const decision = createOutgoingPayment(
      {
        commandId: commandId(),
        id,
        namespace,
        grantId: granted.id,
        walletAddress,
        client: granted.client,
        ...('quoteId' in rest && { quoteId: rest.quoteId }),
        requestHash: JSON.stringify(request),
        receiver,
        debitAmount,
        receiveAmount,
        lists: [],
        candidates: candidates(granted, request),
      },
      clock.now(),
      limits,
    )
    if (decision.outcome === 'refused') return { refusal: decision.refusal }
    put('outgoing-payment', decision.record)
    put('budget', decision.budget)
    return answer(decision.record)
  }

  function answer({ id, budgetId }: OutgoingPayment): PayAnswer {
    const spent = get<Budget>('budget', budgetId)?.spent
    return spent === undefined ? { id } : { id, spent }
  }

  function spentUnder({ id: grantId, items }: Granted): Spent {
    const parts = items.map((item) => {
      const allowance = allowanceAt(item, clock.now())
      if (!allowance.ok) return {}
      const { limit } = allowance.value
      const nothing = limit ? { [limit.counts]: { ...limit.maximum, value: '0' } } : {}
      const id = budgetId({ namespace, grantId }, item, allowance.value)
      return get<Budget>('budget', id)?.spent ?? nothing
    })
    return totalSpent(parts)
  }

  function run<Type extends keyof OutgoingPaymentRefusals>(
    id: string,
    command: Extract<OutgoingPaymentCommand, { readonly type: Type }>,
  ): HostAnswer {
    const payment = get<OutgoingPayment>('outgoing-payment', id)
    if (payment === undefined) return { ok: false, refusal: 'payment_unknown' }
    const policy = spendingPolicy.payments
    const decision = decideOutgoingPayment<Type>(payment, command, clock.now(), policy)
    if (decision.outcome === 'refused') return { ok: false, refusal: decision.refusal }
    if (decision.outcome === 'unchanged') return { ok: true }
    put('outgoing-payment', decision.record)
    const budget = get<Budget>('budget', payment.budgetId)
    const next =
      budget && release(budget, heldBy(payment), heldBy(decision.record), command.commandId)
    if (next !== undefined) put('budget', next)
    return { ok: true }
  }

  function due(kind: Kind): readonly Stored[] {
    const now = clock.now()
    return [...records].flatMap(([key, record]) => {
      return key.startsWith(`${kind} `) && (record.dueAt ?? Number.MAX_VALUE) <= now ? record : []
    })
  }

  function remove(kind: Kind): void {
    for (const { id, retainUntil } of due(kind)) {
      if (retainUntil !== undefined && retainUntil <= clock.now()) records.delete(`${kind} ${id}`)
    }
  }

  function lapseDue(): number {
    remove('outgoing-payment')
    const lapsed = due('outgoing-payment').filter(({ id }) => {
      return run<'lapse'>(id, { type: 'lapse', commandId: commandId() }).ok
    })
    return lapsed.length
  }

  return {
    clock,
    written: { count: () => writes, get: (kind, id) => records.get(`${kind} ${id}`) },
    async grant(client, access) {
      const items = deepFreeze(grantedItems(access, 'occurrences'))
      grants.push({
        client: `https://${client}.example`,
        id: `grant-${grants.length}`,
        items,
        endsAt: endOfItems(items) ?? Number.MAX_VALUE,
        expiresAt: clock.now() + tokenLifetimeMs,
        revoked: false,
      })
    },
    async rotate(grant) {
      const granted = of(grant)
      if (!lives(granted)) return false
      granted.expiresAt = clock.now() + tokenLifetimeMs
      return true
    },
    async revoke(grant) {
      of(grant).revoked = true
    },
    async quote(client, { walletAddress, ...asked }) {
      const answer = price(asked)
      if (typeof answer === 'string') return { refusal: answer }
      const id = `quote-${commandId()}`
      const owner = `https://${client}.example`
      const { receiver } = asked
      const command = {
        ...answer,
        commandId: commandId(),
        id,
        walletAddress,
        client: owner,
        receiver,
      }
      const decision = createQuote(command, clock.now(), spendingPolicy.quotes)
      if (decision.outcome === 'refused') return { refusal: decision.refusal }
      put('quote', decision.record)
      return { id }
    },
    pay,
    async spent(grant) {
      const granted = of(grant)
      const dead = !lives(granted) || clock.now() >= granted.expiresAt
      return dead ? { refusal: 'token_unknown' } : spentUnder(granted)
    },
    begin: async (id) => run<'begin'>(id, { type: 'begin', commandId: commandId() }),
    settle: async (id, totals) =>
      run<'settle'>(id, { type: 'settle', commandId: commandId(), ...totals }),
    fail: async (id, totals) =>
      run<'fail'>(id, { type: 'fail', commandId: commandId(), ...totals }),
    cancel: async (id) => run<'cancel'>(id, { type: 'cancel', commandId: commandId() }),
    async sweep() {
      const lapsed = lapseDue()
      for (const kind of ['quote', 'budget'] as const) remove(kind)
      return lapsed
    },
  }
}

const namespace = 'namespac'
const earlierRefused = { refusal: 'request_differs' }
