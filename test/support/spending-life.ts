import fc from 'fast-check'
import type { Limits } from '../../src/core/access.js'
import type { Amount } from '../../src/core/amount.js'
import type { Budget } from '../../src/core/budget/record.js'
import { release } from '../../src/core/budget/release.js'
import type { Instant } from '../../src/core/instant.js'
import { isUnderGrant } from '../../src/core/outgoing-payment/authority.js'
import {
  type CreateUnderGrant,
  createOutgoingPayment,
} from '../../src/core/outgoing-payment/create.js'
import {
  heldBy,
  type OutgoingPayment,
  type OutgoingPaymentEvent,
} from '../../src/core/outgoing-payment/record.js'
import {
  decideOutgoingPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentDecision,
  type OutgoingPaymentRefusals,
} from '../../src/core/outgoing-payment.js'
import type { OpenLimit } from '../../src/core/spending-limits.js'
import { startOfTests } from './clock.js'
import { deepFreeze } from './frozen.js'

export const most = 2n ** 64n - 1n

const day = 86_400_000

/** All durations differ, so that a test notices when the code uses the wrong one. */
export const paymentPolicy = { holdMs: day, retentionMs: 7 * day }
export const budgetPolicy = { retentionMs: 30 * day }

export const dollars = (value: bigint | number | string): Amount => ({
  value: String(value),
  assetCode: 'USD',
  assetScale: 2,
})

export const euros = (value: bigint | number | string): Amount => ({
  ...dollars(value),
  assetCode: 'EUR',
})

export const receiver = 'https://bank.example/incoming-payments/1'

/** Returns a granted item that permits payments within these limits. */
export function item(limits?: Limits, itemId = '1') {
  return {
    type: 'outgoing-payment' as const,
    actions: ['create' as const],
    identifier: 'https://wallet.example/alice',
    itemId,
    ...(limits && { limits }),
  }
}

export function creation(more: Partial<CreateUnderGrant> = {}): CreateUnderGrant {
  return {
    commandId: 'command-0',
    id: 'namespac-payment',
    namespace: 'namespac',
    grantId: 'namespac-grant',
    walletAddress: 'https://wallet.example/alice',
    client: 'https://shop.example',
    requestHash: 'hash-of-the-request',
    receiver,
    debitAmount: dollars(100),
    receiveAmount: euros(50),
    lists: [{ list: 'namespac https://wallet.example/alice', at: startOfTests }],
    candidates: [{ item: item({ debitAmount: dollars(1000) }) }],
    ...more,
  }
}

export function created(more: Partial<CreateUnderGrant> = {}) {
  const policy = { ...paymentPolicy, ...budgetPolicy }
  const decision = createOutgoingPayment(deepFreeze(creation(more)), startOfTests, policy)
  if (decision.outcome === 'refused') throw new Error(decision.reason)
  return deepFreeze(decision)
}

/** A command with its decision, and the payment before and after it. */
export interface Turn {
  readonly at: Instant
  readonly before: OutgoingPayment
  readonly command: OutgoingPaymentCommand
  readonly decision: OutgoingPaymentDecision<keyof OutgoingPaymentRefusals>
  readonly after: OutgoingPayment
}

/** Who requests a payment: a client under a grant, or the owner of the account. */
export const authorities = ['client', 'owner'] as const
export type Authority = (typeof authorities)[number]

/** Creates a payment of the owner, which a limit of the account counts in place of the budget of a grant. */
function ordered(more: Partial<CreateUnderGrant>) {
  const { client: _client, grantId: _grantId, ...order } = { ...creation(more), candidates: [] }
  const maximum = dollars(most)
  const open: OpenLimit = {
    source: 'account',
    scope: { walletAddress: order.walletAddress },
    budgetId: 'namespacaccount.alice.life',
    limitedAmount: { counts: 'debitAmount', maximum },
  }
  const limits = [{ source: 'account', limit: { debitAmount: maximum }, open }] as const
  const policy = { ...paymentPolicy, ...budgetPolicy }
  const decision = createOutgoingPayment(deepFreeze({ ...order, limits }), startOfTests, policy)
  if (!decision.ok) throw new Error(decision.reason)
  const [budget] = decision.limitBudgets
  if (budget === undefined) throw new Error('no budget counts the payment')
  return deepFreeze({ ...decision, budget })
}

/** Creates a payment with the budget that counts it, and its own clock. Every decision is committed. */
export function outgoingLife(more: Partial<CreateUnderGrant> = {}, by: Authority = 'client') {
  const first = by === 'client' ? created(more) : ordered(more)
  let payment: OutgoingPayment = first.record
  let budget: Budget = first.budget
  let now = startOfTests
  let commands = 0
  const turns: Turn[] = []
  const events: OutgoingPaymentEvent[] = [...first.events]

  function decide<Type extends keyof OutgoingPaymentRefusals>(
    command: Extract<OutgoingPaymentCommand, { readonly type: Type }>,
  ): OutgoingPaymentDecision<Type> {
    const before = payment
    const decision = decideOutgoingPayment<Type>(before, deepFreeze(command), now, paymentPolicy)
    if (decision.outcome === 'changed') {
      payment = deepFreeze(decision.record)
      events.push(...decision.events)
      budget =
        release(budget, heldBy(before), heldBy(payment), command.commandId, payment) ?? budget
    }
    turns.push({ at: now, before, command, decision, after: payment })
    return decision
  }

  const commandId = () => `command-${++commands}`

  return {
    first,
    turns,
    events,
    decide,
    commandId,
    payment: () => payment,
    budget: () => budget,
    now: () => now,
    set(instant: Instant) {
      now = instant
    },
    begin: () => decide<'begin'>({ type: 'begin', commandId: commandId() }),
    reportSent: (sent: Amount, delivered: Amount, final?: boolean) =>
      decide<'report-sent'>({
        type: 'report-sent',
        commandId: commandId(),
        sentAmount: sent,
        deliveredAmount: delivered,
        ...(final === undefined ? {} : { final }),
      }),
    fail: (totals: { readonly sentAmount?: Amount; readonly deliveredAmount?: Amount } = {}) =>
      decide<'fail'>({ type: 'fail', commandId: commandId(), ...totals }),
    cancel: () => decide<'cancel'>({ type: 'cancel', commandId: commandId() }),
    lapse: () => decide<'lapse'>({ type: 'lapse', commandId: commandId() }),
  }
}

export type OutgoingLife = ReturnType<typeof outgoingLife>

/** A part of an amount: a percentage plus an offset in units. */
export interface Share {
  readonly percent: number
  readonly offset: number
}

/** Something that happens to a payment. Its amounts are calculated when it happens. */
export type Step =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'reach'; readonly offsetMs: -1 | 0 | 1 }
  | { readonly do: 'begin' | 'cancel' | 'lapse' }
  /** The latest command again, with another id. */
  | { readonly do: 'repeat' }
  | {
      readonly do: 'report-sent'
      readonly sent: Share
      readonly delivered: Share
      readonly final?: boolean
      readonly asset?: 'other'
    }
  | { readonly do: 'fail'; readonly sent?: Share; readonly delivered?: Share }

const share: fc.Arbitrary<Share> = fc.oneof(
  fc.record({ percent: fc.constantFrom(0, 1, 50, 100), offset: fc.constantFrom(-1, 0, 0, 0, 1) }),
  fc.record({ percent: fc.integer({ min: 0, max: 100 }), offset: fc.constant(0) }),
)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(0, 1, day - 1) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('reach' as const),
      offsetMs: fc.constantFrom(-1, 0, 1),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ do: 'begin' as const }) },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'cancel' as const }, { do: 'lapse' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'repeat' as const }) },
  {
    weight: 6,
    arbitrary: fc.record(
      {
        do: fc.constant('report-sent' as const),
        sent: share,
        delivered: share,
        final: fc.constantFrom(true, false, false),
        asset: fc.constant('other' as const),
      },
      { requiredKeys: ['do', 'sent', 'delivered'] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      { do: fc.constant('fail' as const), sent: share, delivered: share },
      { requiredKeys: ['do'] },
    ),
  },
)

/** Amounts that are likely to show arithmetic errors. */
export const positive: fc.Arbitrary<bigint> = fc.oneof(
  fc.constantFrom(1n, 2n, 100n, 2n ** 53n, 2n ** 53n + 1n, most - 1n, most),
  fc.bigInt({ min: 1n, max: most }),
)

/** The amount that is limited, if any. */
export const counts = fc.constantFrom('debitAmount' as const, 'receiveAmount' as const, undefined)

/** Payments from their creation on, with random steps. */
export const lives: fc.Arbitrary<OutgoingLife> = fc
  .record({
    debit: positive,
    receive: positive,
    counted: counts,
    by: fc.constantFrom(...authorities),
    steps: fc.array(step, { maxLength: 12, size: '+1' }),
  })
  .map(({ debit, receive, counted, steps, by }) => play(debit, receive, counted, steps, by))

function play(
  debit: bigint,
  receive: bigint,
  counted: 'debitAmount' | 'receiveAmount' | undefined,
  steps: readonly Step[],
  by: Authority,
): OutgoingLife {
  const limits = counted && {
    [counted]: counted === 'debitAmount' ? dollars(most) : euros(most),
  }
  const amounts = { debitAmount: dollars(debit), receiveAmount: euros(receive) }
  const life = outgoingLife({ ...amounts, candidates: [{ item: item(limits) }] }, by)
  for (const step of steps) {
    switch (step.do) {
      case 'pass':
        life.set(life.now() + step.ms)
        break
      case 'reach':
        life.set(Math.max(life.now(), life.payment().holdUntil + step.offsetMs))
        break
      case 'repeat': {
        const latest = life.turns.at(-1)?.command
        if (latest !== undefined) life.decide({ ...latest, commandId: life.commandId() })
        break
      }
      case 'report-sent': {
        const sent = (step.asset ? euros : dollars)(part(debit, step.sent))
        life.reportSent(sent, euros(part(receive, step.delivered)), step.final)
        break
      }
      case 'fail':
        life.fail({
          ...(step.sent && { sentAmount: dollars(part(debit, step.sent)) }),
          ...(step.delivered && { deliveredAmount: euros(part(receive, step.delivered)) }),
        })
        break
      default:
        life[step.do]()
    }
  }
  return Object.assign(life, { [fc.toStringMethod]: () => describeLife(life) })
}

function part(whole: bigint, { percent, offset }: Share): bigint {
  return (whole * BigInt(percent)) / 100n + BigInt(offset)
}

/** Returns a text that shows the history of a failed property. */
function describeLife({ first, turns }: OutgoingLife): string {
  const { debitAmount, receiveAmount } = first.record
  const who = isUnderGrant(first.record) ? 'pay' : 'as the owner, pay'
  const begins = `${who} ${debitAmount.value} for ${receiveAmount.value}`
  const lines = turns.map(({ at, command, decision }) => {
    const outcome = decision.outcome === 'refused' ? decision.refusal : decision.outcome
    return `${at - first.record.createdAt} ms: ${JSON.stringify(command)} -> ${outcome}`
  })
  return [begins, ...lines].join('\n')
}
