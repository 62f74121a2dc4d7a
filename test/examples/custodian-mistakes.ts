import type { Custodian } from '../../examples/custodian/custodian.js'
import type { Fate } from '../../examples/custodian/stand-in/faults.js'
import type { Reply } from '../../src/entry-attempts.js'
import { type CustodyHistory, healthy, type Mistake, type RequestFate } from './custodian-world.js'

const fate = (name: Fate, status = 503, lateMs = 15_000): RequestFate => ({
  fate: name,
  status,
  lateMs,
})
const arrives = fate('arrives')

/** One payment: the requests are its hold and its payout. */
const paying = (...fates: readonly RequestFate[]): CustodyHistory => ({
  ...healthy,
  payments: [{ value: 2_500, reviewMs: 0 }],
  fates,
})

/** Two arrivals that go back: the second one stays at the custodian while the first is in doubt. */
const refunding = (...fates: readonly RequestFate[]): CustodyHistory => ({
  ...healthy,
  arrivals: [
    { value: 300, to: 'completed' },
    { value: 5_000, to: 'unknown' },
  ],
  fates,
})

const crediting = (...fates: readonly RequestFate[]): CustodyHistory => ({
  ...healthy,
  arrivals: [
    { value: 700, to: 'open' },
    { value: 5_000, to: 'unknown' },
  ],
  fates: [fate('request lost'), ...fates],
})

/** The histories in which one thing fails, or time decides. */
export const named: Readonly<Record<string, CustodyHistory>> = {
  'the request of a hold is lost': paying(fate('request lost')),
  'the reply of a hold is lost': paying(fate('reply lost')),
  'a hold is reviewed for two hours': {
    ...healthy,
    payments: [{ value: 2_500, reviewMs: 7_200_000 }],
  },
  'a hold is reviewed for longer than the payment waits': {
    ...healthy,
    payments: [{ value: 2_500, reviewMs: 48 * 3_600_000 }],
  },
  'the request of a payout is lost': paying(arrives, fate('request lost')),
  'the reply of a payout is lost': paying(arrives, fate('reply lost')),
  'a payout is late': paying(arrives, fate('arrives late')),
  'a payout is late by five minutes': paying(arrives, fate('arrives late', 0, 300_000)),
  'a proxy answers 503 for a payout that it has forwarded': paying(
    arrives,
    fate('forwarded and answered in between', 503),
  ),
  'a proxy answers 404 for a payout that it has forwarded': paying(
    arrives,
    fate('forwarded and answered in between', 404),
  ),
  'a proxy answers 429 for a payout that it has not forwarded': paying(
    arrives,
    fate('answered in between', 429),
  ),
  'nobody can be asked about a payout for hours': {
    ...paying(arrives, fate('reply lost')),
    unreadable: 15,
  },
  'a refund is late, while a credit is lost': {
    ...healthy,
    arrivals: [
      { value: 300, to: 'completed' },
      { value: 5_000, to: 'open' },
    ],
    fates: [fate('arrives late', 0, 30_000), arrives, ...Array(4).fill(fate('request lost'))],
  },
  'the ids of transfers are the custodian’s own kind': {
    ...healthy,
    arrivals: [
      { value: 700, to: 'open', transferId: `urn:transfer:1/${'ä'.repeat(200)}` },
      { value: 300, to: 'completed', transferId: 'SEPA 2026/11 42' },
    ],
    fates: [fate('reply lost'), fate('request lost'), fate('reply lost')],
  },
  'the reply of a refund is lost': refunding(fate('reply lost'), fate('request lost')),
  'the reply of a credit is lost': crediting(fate('reply lost')),
  'the request of a credit is lost': crediting(fate('request lost')),
}

type Found = Awaited<ReturnType<Custodian['findPayouts']>>

/** Changes what the host believes of the answers about payouts. */
const believing = (change: (found: Found, references: readonly string[]) => Found): Mistake => ({
  custodian: (custodian) => ({
    ...custodian,
    findPayouts: async (question) =>
      change(await custodian.findPayouts(question), question.references),
  }),
})

const neverAll = (references: readonly string[]): Found => ({
  by: 'id',
  attempts: Object.fromEntries(references.map((each) => [each, { found: 'never' }])),
})

const unknownAs =
  (reply: Reply) =>
  <Send extends (order: never) => Promise<Reply>>(send: Send): Send =>
    (async (order: never) => {
      const read = await send(order).catch(() => reply)
      return read.outcome === 'unknown' ? reply : read
    }) as unknown as Send

const refused: Reply = { outcome: 'refused', reason: 'no reply' }

/** Mistakes of a wallet, and a history that finds each. */
export const mistakes: Readonly<
  Record<string, { readonly mistake: Mistake; readonly foundBy: keyof typeof named }>
> = {
  'a payout is sent again without asking first': {
    mistake: {
      custodian: (custodian) => ({
        ...custodian,
        findPayouts: async ({ references }) => neverAll(references),
      }),
    },
    foundBy: 'the reply of a payout is lost',
  },
  'a refund is sent again without asking first': {
    mistake: {
      custodian: (custodian) => ({
        ...custodian,
        findPayouts: async ({ references }) => neverAll(references),
      }),
    },
    foundBy: 'the reply of a refund is lost',
  },
  'an order that is not found soon after it is taken as "never"': {
    mistake: believing((found, references) => {
      if (found?.by !== 'id') return found
      const isFound = Object.values(found.attempts).some((each) => each.found === 'arrived')
      return isFound ? found : neverAll(references)
    }),
    foundBy: 'a refund is late, while a credit is lost',
  },
  'no reply is taken as a refusal': {
    mistake: {
      custodian: (custodian) => ({ ...custodian, payout: unknownAs(refused)(custodian.payout) }),
    },
    foundBy: 'the reply of a payout is lost',
  },
  '503 is taken as a refusal': {
    mistake: {
      custodian: (custodian) => ({
        ...custodian,
        payout: (order) =>
          custodian.payout(order).catch((error) => {
            if (error instanceof SyntaxError) return refused // not the custodian's JSON
            throw error
          }),
      }),
    },
    foundBy: 'a proxy answers 503 for a payout that it has forwarded',
  },
  'no reply is taken as a success': {
    mistake: {
      custodian: (custodian) => ({
        ...custodian,
        credit: unknownAs({ outcome: 'proven' })(custodian.credit),
      }),
    },
    foundBy: 'the request of a credit is lost',
  },
  'a credit has the key of its request in place of the transfer': {
    mistake: {
      custodian: (custodian) => ({
        ...custodian,
        credit: (order) =>
          custodian.credit({ ...order, request: { ...order.request, id: crypto.randomUUID() } }),
      }),
    },
    foundBy: 'the reply of a credit is lost',
  },
  'a refund has the id of its notice in place of the transfer': {
    mistake: {
      arrived: ({ arrived, drivers }) => {
        let notices = 0
        return async (transferId, paymentId, value) => {
          if (transferId === 'transfer-1') return arrived(transferId, paymentId, value)
          const id = `refund.${notices++}`
          const order = { id, amount: BigInt(value), from: 'arrivals', to: transferId }
          await drivers.payouts.settle(order)
          return undefined
        }
      },
    },
    foundBy: 'the reply of a refund is lost',
  },
  'a payment begins before its hold is decided': {
    mistake: {
      custodian: (custodian) => ({
        ...custodian,
        hold: (order) => custodian.hold(order).then(() => ({ outcome: 'proven' })),
      }),
    },
    foundBy: 'a hold is reviewed for two hours',
  },
  'a hold that is reviewed is taken as refused': {
    mistake: {
      custodian: (custodian) => ({ ...custodian, hold: unknownAs(refused)(custodian.hold) }),
    },
    foundBy: 'a hold is reviewed for two hours',
  },
  'a hold is not released at the end': {
    mistake: { custodian: (custodian) => ({ ...custodian, release: async () => true }) },
    foundBy: 'a hold is reviewed for longer than the payment waits',
  },
  'what is in doubt at the end is decided by nobody': {
    mistake: {
      handle:
        ({ handle }, { release }) =>
        async (event, delivery) => {
          if (event.type !== 'outgoing-payment.failed') return handle(event, delivery)
          await release(event.outgoingPaymentId)
        },
    },
    foundBy: 'nobody can be asked about a payout for hours',
  },
}
