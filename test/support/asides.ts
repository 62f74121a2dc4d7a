import fc from 'fast-check'
import { euroReceiver, goneReceiver, otherReceiver, shopReceiver } from './spending.js'

/** An amount: a percentage of a limit or of its remainder, plus an offset in units. */
export interface Part {
  readonly of: 'limit' | 'room'
  readonly percent: number
  readonly offset: number
}

/** The amount that a quote names. */
export type Form = 'debit' | 'receive' | 'neither'

interface Wish {
  readonly grant: number
  readonly account: 'alice' | 'bob'
  readonly to: string
  readonly part: Part
}

/** A request or report beside the history. The player finds its grant, quote or payment when it makes it. */
export type Aside =
  | ({ readonly do: 'quote'; readonly form: Form } & Wish)
  | ({ readonly do: 'pay' } & Wish)
  | ({ readonly do: 'pay with a key'; readonly key: number } & Wish)
  | {
      readonly do: 'pay by a quote'
      readonly by: 'the requester' | 'any client'
      readonly grant: number
      readonly quote: number
      readonly note?: string
      readonly from?: 'the other account'
    }
  | { readonly do: 'repeat'; readonly request: number; readonly grant: number }
  | { readonly do: 'begin' | 'cancel'; readonly payment: number }
  | {
      readonly do: 'report-sent'
      readonly payment: number
      readonly sent: number
      readonly delivered: number
      readonly final: boolean
    }
  | { readonly do: 'fail'; readonly payment: number; readonly sent?: number }

const nat = fc.nat({ max: 1_000 })
const percent = fc.constantFrom(0, 1, 40, 60, 100, 101)

const wish = {
  grant: nat,
  account: fc.constantFrom('bob' as const, 'bob' as const, 'alice' as const),
  to: fc.constantFrom(shopReceiver, shopReceiver, otherReceiver, euroReceiver, euroReceiver),
  part: fc.record({
    of: fc.constantFrom('limit' as const, 'room' as const),
    percent: fc.constantFrom(1, 10, 33, 50, 100, 100),
    offset: fc.constantFrom(-1, 0, 0, 0, 1),
  }),
}

function rarely<Value>(value: Value) {
  return fc.option(fc.constant(value), { nil: undefined, freq: 8 }).map((some) => some)
}

function weighted(...some: readonly [weight: number, arbitrary: fc.Arbitrary<Aside>][]) {
  return fc.oneof(...some.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

const payByQuote = fc
  .record({
    do: fc.constant('pay by a quote' as const),
    by: fc.constantFrom('the requester' as const, 'the requester' as const, 'any client' as const),
    grant: nat,
    quote: fc.oneof(fc.constant(0), nat),
    note: rarely('another note'),
    from: rarely('the other account' as const),
  })
  .map(({ note, from, ...aside }) => ({ ...aside, ...(note && { note }), ...(from && { from }) }))

export const asides: fc.Arbitrary<Aside> = weighted(
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
  [18, payByQuote],
  [16, fc.record({ do: fc.constant('repeat' as const), request: nat, grant: nat })],
  [16, fc.record({ do: fc.constant('begin' as const), payment: nat })],
  [3, fc.record({ do: fc.constant('cancel' as const), payment: nat })],
  [
    24,
    fc.record({
      do: fc.constant('report-sent' as const),
      payment: nat,
      sent: percent,
      delivered: percent,
      final: fc.constantFrom(true, false, false),
    }),
  ],
  [
    14,
    fc
      .record({ do: fc.constant('fail' as const), payment: nat, sent: fc.option(percent) })
      .map(({ sent, ...aside }) => (sent === null ? aside : { ...aside, sent })),
  ],
)
