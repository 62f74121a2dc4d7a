import fc from 'fast-check'
import type { AccessItem, Amount } from '../../src/index.js'
import type { ManualClock } from './clock.js'
import { eur, euroReceiver, goneReceiver, otherReceiver, shopReceiver, usd } from './spending.js'
import { type Counted, type IntervalName, intervals, type Plan } from './spending-book.js'
import { alice, bob } from './world.js'
import type { Written } from './written.js'

const most = 2n ** 64n - 1n

/** What a request to pay asks for. */
export type PayRequest = {
  readonly walletAddress: string
  readonly metadata?: { note: string }
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** What has been spent under a grant. */
export type Spent = Readonly<Record<Counted, Amount | null>>

export type PayAnswer =
  | { readonly id: string; readonly spent?: Spent }
  | { readonly refusal: string }

export type HostAnswer = { readonly ok: boolean; readonly refusal?: string }

/** A wallet that histories are played on: its services, or its servers. */
export interface PlayedWallet {
  readonly clock: ManualClock
  /** What it has written. */
  readonly written: Written
  /** Makes the next grant. */
  grant(client: 'shop' | 'cafe', access: readonly AccessItem[]): Promise<void>
  rotate(grant: number): Promise<boolean>
  revoke(grant: number): Promise<void>
  quote(
    client: 'shop' | 'cafe',
    asked: Asked,
  ): Promise<{ readonly id: string } | { readonly refusal: string }>
  pay(grant: number, request: PayRequest, idempotencyKey?: string): Promise<PayAnswer>
  /** What the token's holder is told of the windows that are open. */
  spent(grant: number): Promise<Spent | { readonly refusal: string }>
  begin(id: string): Promise<HostAnswer>
  settle(
    id: string,
    totals: { sentAmount: Amount; deliveredAmount: Amount; final?: boolean },
  ): Promise<HostAnswer>
  fail(id: string, totals: { sentAmount?: Amount; deliveredAmount?: Amount }): Promise<HostAnswer>
  cancel(id: string): Promise<HostAnswer>
  lapseDue(): Promise<number>
  purge(): Promise<number>
}

export interface Asked {
  readonly walletAddress: string
  readonly receiver: string
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
}

/** How much: a share of an item's limit, or of what is left of it, and so many units more or less. */
interface Part {
  readonly of: 'limit' | 'room'
  readonly percent: number
  readonly offset: number
}

type Form = 'debit' | 'receive' | 'neither'

interface Wish {
  readonly grant: number
  readonly item: number
  readonly to: string
  readonly part: Part
}

/** Something that happens. Which grant, quote or payment is meant is found when it happens. */
export type Step =
  | ({ readonly do: 'quote'; readonly form: Form } & Wish)
  | ({ readonly do: 'pay' } & Wish)
  | ({ readonly do: 'pay with a key'; readonly key: number } & Wish)
  | {
      readonly do: 'pay by a quote'
      readonly by: 'who asked' | 'anybody'
      readonly grant: number
      readonly quote: number
      readonly note?: string
      readonly from?: 'the other account'
    }
  | { readonly do: 'repeat'; readonly request: number; readonly grant: number }
  | { readonly do: 'begin' | 'cancel'; readonly payment: number }
  | {
      readonly do: 'settle'
      readonly payment: number
      readonly sent: number
      readonly delivered: number
      readonly final: boolean
    }
  | { readonly do: 'fail'; readonly payment: number; readonly sent?: number }
  | { readonly do: 'rotate'; readonly grant: number }
  | { readonly do: 'revoke'; readonly grant: number }
  | { readonly do: 'lapse' | 'purge' }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'reach'; readonly what: Edge; readonly which: number; readonly offsetMs: number }

type Edge = 'hold' | 'quote' | 'window' | 'token'

const day = 86_400_000
const nat = fc.nat({ max: 1_000 })
const rarely = <T>(value: T) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constant(value) },
  )

const part: fc.Arbitrary<Part> = fc.record({
  of: fc.constantFrom('limit', 'room'),
  percent: fc.constantFrom(1, 10, 33, 50, 100, 100),
  offset: fc.constantFrom(-1, 0, 0, 0, 1),
})

const wish = {
  grant: nat,
  item: nat,
  to: fc.constantFrom(shopReceiver, shopReceiver, otherReceiver, euroReceiver, euroReceiver),
  part,
}

const percent = fc.constantFrom(0, 1, 40, 60, 100, 101)

function steps(...weighted: readonly [weight: number, arbitrary: fc.Arbitrary<Step>][]) {
  return fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

const step = steps(
  [
    14,
    fc.record({
      do: fc.constant('quote' as const),
      form: fc.constantFrom<Form>('debit', 'receive', 'neither'),
      ...wish,
      to: fc.oneof(
        { weight: 20, arbitrary: wish.to },
        { weight: 1, arbitrary: fc.constant(goneReceiver) },
      ),
    }),
  ],
  [14, fc.record({ do: fc.constant('pay' as const), ...wish })],
  [8, fc.record({ do: fc.constant('pay with a key' as const), key: fc.nat({ max: 3 }), ...wish })],
  [
    18,
    fc
      .record({
        do: fc.constant('pay by a quote' as const),
        by: fc.constantFrom('who asked' as const, 'who asked' as const, 'anybody' as const),
        grant: nat,
        quote: fc.oneof(fc.constant(0), nat),
        note: rarely('another note'),
        from: rarely('the other account' as const),
      })
      .map(({ note, from, ...step }) => ({
        ...step,
        ...(note && { note }),
        ...(from && { from }),
      })),
  ],
  [8, fc.record({ do: fc.constant('repeat' as const), request: nat, grant: nat })],
  [16, fc.record({ do: fc.constant('begin' as const), payment: nat })],
  [3, fc.record({ do: fc.constant('cancel' as const), payment: nat })],
  [
    18,
    fc.record({
      do: fc.constant('settle' as const),
      payment: nat,
      sent: percent,
      delivered: percent,
      final: fc.constantFrom(true, false, false),
    }),
  ],
  [
    8,
    fc
      .record({ do: fc.constant('fail' as const), payment: nat, sent: fc.option(percent) })
      .map(({ sent, ...step }) => (sent === null ? step : { ...step, sent })),
  ],
  [6, fc.record({ do: fc.constant('rotate' as const), grant: nat })],
  [1, fc.record({ do: fc.constant('revoke' as const), grant: nat })],
  [3, fc.constant({ do: 'lapse' as const })],
  [2, fc.constant({ do: 'purge' as const })],
  [
    4,
    fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(1, 60_000, 60_000, 3_600_000, 3_600_000, day / 2, day, 20 * day),
    }),
  ],
  [
    5,
    fc.record({
      do: fc.constant('reach' as const),
      what: fc.constantFrom<Edge>('hold', 'quote', 'window', 'window', 'token'),
      which: nat,
      offsetMs: fc.constantFrom(-1, 0, 0, 1),
    }),
  ],
)

const limit = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(10n, 100n, 2_500n) },
  { weight: 1, arbitrary: fc.constantFrom(0n, 2n ** 53n + 1n, most) },
)

const plan: fc.Arbitrary<Plan> = fc
  .record({
    walletAddress: fc.constantFrom(alice, alice, bob),
    receiver: fc.constantFrom(null, null, null, shopReceiver, euroReceiver),
    limit: fc.option(
      fc.record({
        counts: fc.constantFrom<Counted>('debitAmount', 'debitAmount', 'receiveAmount'),
        asset: fc.constantFrom('USD', 'USD', 'EUR'),
        value: limit,
      }),
      { freq: 8 },
    ),
    interval: fc.option(fc.constantFrom(...(Object.keys(intervals) as IntervalName[])), {
      freq: 2,
    }),
  })
  .map(({ walletAddress, receiver, limit, interval }) => ({
    walletAddress,
    ...(receiver && { receiver }),
    ...(limit && { limit }),
    ...(interval && { interval }),
  }))

/** Grants of one to three items that differ. */
const plans = fc.uniqueArray(plan, {
  minLength: 1,
  maxLength: 3,
  selector: (one) => JSON.stringify(accessOf([one])),
})

/** Who was granted what, and what happens then. */
export interface History {
  readonly grants: readonly { readonly client: 'shop' | 'cafe'; readonly plans: readonly Plan[] }[]
  readonly steps: readonly Step[]
}

export function histories(stepsMax: number): fc.Arbitrary<History> {
  const client = fc.constantFrom('shop' as const, 'shop' as const, 'cafe' as const)
  return fc.record({
    grants: fc.array(fc.record({ client, plans }), { minLength: 1, maxLength: 3 }),
    steps: fc.array(step, {
      minLength: Math.floor(stepsMax / 2),
      maxLength: stepsMax,
      size: 'max',
    }),
  })
}

export function accessOf(plans: readonly Plan[]): readonly AccessItem[] {
  return plans.map(({ walletAddress, receiver, limit, interval }) => ({
    type: 'outgoing-payment',
    actions: ['create', 'read'],
    identifier: walletAddress,
    limits: {
      ...(receiver && { receiver }),
      ...(interval && { interval: intervals[interval].text }),
      ...(limit && { [limit.counts]: (limit.asset === 'USD' ? usd : eur)(limit.value) }),
    },
  }))
}
