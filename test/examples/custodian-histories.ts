import type fc from 'fast-check'
import { fates, statuses } from '../../examples/custodian/stand-in/faults.js'
import type { CustodyHistory } from './custodian-world.js'

/** Generates histories of a wallet and its custodian. */
export function histories(fastCheck: typeof fc): fc.Arbitrary<CustodyHistory> {
  const { array, boolean, constantFrom, nat, record } = fastCheck
  const fate = record({
    fate: constantFrom(...fates, ...fates, 'arrives' as const),
    status: constantFrom(...statuses),
    lateMs: constantFrom(500, 15_000, 55_000, 300_000),
  })
  const payment = record({
    value: constantFrom(1, 1_000, 2_500, 6_000),
    reviewMs: constantFrom(0, 0, 30_000, 600_000, 7_200_000),
  })
  const arrival = record({
    value: constantFrom(1, 700, 5_000),
    to: constantFrom('open', 'open', 'completed', 'unknown'),
  })
  return record({
    fates: array(fate, { maxLength: 12 }),
    unreadable: constantFrom(0, 0, 0, 1, 3, 15),
    kills: array(record({ step: nat(60), after: boolean() }), { maxLength: 3 }),
    restarts: array(nat(20), { maxLength: 2 }),
    payments: array(payment, { maxLength: 3 }),
    arrivals: array(arrival, { maxLength: 2 }),
    paceMs: constantFrom(1_000, 20_000, 120_000),
  }) as fc.Arbitrary<CustodyHistory>
}
