import { describe, expect, test } from 'vitest'
import { isLong } from '../../test/support/runs.js'
import {
  type PaymentDecisions,
  paymentDecisions,
  type ReservationSetting,
  reservations,
} from './reservation.js'
import { search, told } from './search.js'

/** The number of steps that the searches go in `npm test`. `npm run test:long` visits every reachable state. */
const depthMax = isLong ? Number.POSITIVE_INFINITY : 9

const changes = [
  'the owner amends',
  'the owner revokes',
  'the client rotates',
] as const satisfies readonly ReservationSetting['change'][]

const settings = changes.flatMap((change): ReservationSetting[] => [
  { requests: ['first', 'repeat'], change },
  { requests: ['first', 'other'], change },
  { requests: ['first'], change, confirms: true },
])

describe('reservations keep every law in every state within reach', () => {
  test.each(settings)('%j', (setting) => {
    const found = search(reservations(setting), depthMax)
    console.log(told(found))
    expect(found.broken).toBeUndefined()
    expect(found.depth === depthMax || found.complete).toBe(true)
  })
})

/** All states with a repeat and an owner are too many. */
const repeatedDepth = isLong ? 14 : 9

test.each(changes)(
  'reservations that owners confirm and clients repeat keep every law: %s',
  (change) => {
    const setting: ReservationSetting = { requests: ['first', 'repeat'], change, confirms: true }
    const found = search(reservations(setting), repeatedDepth)
    console.log(told(found))
    expect(found.broken).toBeUndefined()
    expect(found.depth).toBe(repeatedDepth)
  },
)

const { confirmByOwner, createReserved, declinePayment, decideRepeat, eventRecords, policy } =
  paymentDecisions

/** Forgets that a hold of an earlier call may still take effect. */
function withoutLate<Payment extends { readonly lateHoldsUntil?: number }>(payment: Payment) {
  const { lateHoldsUntil: _late, ...rest } = payment
  return rest as Payment
}

const mistakes: readonly (readonly [
  mistake: string,
  law: string,
  setting: ReservationSetting,
  decisions: Partial<PaymentDecisions>,
])[] = [
  [
    'a payment is created without a guard on its amended grant',
    'nothing is created above an amended limit',
    { requests: ['first'], change: 'the owner amends' },
    { guards: false },
  ],
  [
    'a payment is created without a guard on its revoked grant',
    'nothing is created after its grant was revoked',
    { requests: ['first'], change: 'the owner revokes' },
    { guards: false },
  ],
  [
    'limits are not checked again when the grant has changed',
    'nothing is created above an amended limit',
    { requests: ['first', 'repeat'], change: 'the owner amends' },
    { refuseByGrant: () => undefined },
  ],
  [
    'a payment is created only with the token of its request',
    'a rotation declines nothing',
    { requests: ['first'], change: 'the client rotates' },
    { renews: true },
  ],
  [
    'the end of a created payment is told at once, although a call was lost',
    'no hold takes effect after the delivery of the end',
    { requests: ['first', 'repeat'], change: 'nothing' },
    { createReserved: (payment, ...rest) => createReserved(withoutLate(payment), ...rest) },
  ],
  [
    'the end of a declined payment is told at once, although a call was lost',
    'no hold takes effect after the delivery of the end',
    { requests: ['first', 'repeat'], change: 'nothing' },
    { declinePayment: (payment, ...rest) => declinePayment(withoutLate(payment), ...rest) },
  ],
  [
    'a payment is declined before a late hold can take effect',
    'no hold takes effect after the delivery of the end',
    { requests: ['first'], change: 'nothing' },
    { policy: { ...policy, lateMs: 1 } },
  ],
  [
    'limits are not checked again when the owner confirms',
    'nothing is created above an amended limit',
    { requests: ['first'], change: 'the owner amends', confirms: true },
    { refuseByGrant: () => undefined },
  ],
  [
    'a confirmed payment is declined when the time of its owner ends',
    'no hold takes effect after the delivery of the end',
    { requests: ['first'], change: 'nothing', confirms: true },
    {
      confirmByOwner(found, ...rest) {
        const decision = confirmByOwner(found, ...rest)
        if (!decision.ok || decision.outcome !== 'changed' || !found?.dueAt) return decision
        return { ...decision, record: { ...decision.record, dueAt: found.dueAt } }
      },
    },
  ],
  [
    'a declined payment keeps its budget',
    'a budget is the sum of what its payments hold',
    { requests: ['first'], change: 'nothing' },
    { release: () => undefined },
  ],
  [
    'a declined payment has no event',
    'each end has an event',
    { requests: ['first'], change: 'nothing' },
    {
      eventRecords: (key, record, events, last) =>
        eventRecords(
          key,
          record,
          events.filter(({ type }) => type !== 'outgoing-payment.declined'),
          last,
        ),
    },
  ],
  [
    'a declined payment is reserved again by a repeat',
    'no hold takes effect after the delivery of the end',
    { requests: ['first', 'repeat'], change: 'nothing' },
    {
      decideRepeat: (found, ...rest) =>
        found?.state === 'declined' ? undefined : decideRepeat(found, ...rest),
    },
  ],
]

describe('the search finds each planted mistake', () => {
  test.each(mistakes)('%s', (_, law, setting, decisions) => {
    const { broken } = search(reservations(setting, { ...paymentDecisions, ...decisions }))
    expect(broken?.law, broken?.path.join('\n')).toBe(law)
  })
})
