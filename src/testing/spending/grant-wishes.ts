import type { AccessItem, Instant, Limits } from 'open-payments-server'
import type { Arbitrary, FastCheck } from './fast-check.js'
import { historyInterval } from './intervals.js'
import { amountOf, type SpendingScene } from './scene.js'
import { valueEdges } from './values.js'
import type { Wish } from './wish.js'

/** A form of limits: an amount, or any amount; in each window of an interval; to one receiver only. */
export type LimitForm = 'debitAmount' | 'receiveAmount' | 'anyAmount' | 'interval' | 'receiver'

export const limitForms: readonly LimitForm[] = [
  'debitAmount',
  'receiveAmount',
  'anyAmount',
  'interval',
  'receiver',
]

/** What the grants of a history may contain. */
export interface GrantForms {
  readonly scene: SpendingScene
  readonly limits: readonly LimitForm[]
  readonly interval?: ((start: Instant) => Arbitrary<string>) | undefined
}

/** A grant with limits that are low enough to be reached. */
export function grantWish(fc: FastCheck, forms: GrantForms, start: Instant): Arbitrary<Wish> {
  const { walletAddress, otherWalletAddress = walletAddress } = forms.scene
  const identifiers = fc.oneof(
    { weight: 6, arbitrary: fc.constant(walletAddress) },
    { weight: 1, arbitrary: fc.constant(otherWalletAddress) },
  )
  const item = fc
    .tuple(limitsIn(fc, forms, start), identifiers)
    .map(([limits, identifier]): AccessItem => {
      const actions = ['create', 'read'] as const
      const base = { type: 'outgoing-payment', actions, identifier } as const
      return Object.keys(limits).length === 0 ? base : { ...base, limits }
    })
  // A possible third item covers quotes.
  const items = fc.array(item, { minLength: 1, maxLength: 2 })
  return fc
    .tuple(items, rarely(fc))
    .map(([items, halved]) => ({ type: 'grant' as const, items, halved }))
}

function limitsIn(fc: FastCheck, forms: GrantForms, start: Instant): Arbitrary<Limits> {
  const { scene, limits, interval: intervals = (at) => historyInterval(fc, at) } = forms
  const nothing = fc.constant(undefined)
  const interval = fc.oneof(
    { weight: 1, arbitrary: nothing },
    { weight: limits.includes('interval') ? 2 : 0, arbitrary: intervals(start) },
  )
  const receiver = fc.oneof(
    { weight: 5, arbitrary: nothing },
    {
      weight: limits.includes('receiver') ? 1 : 0,
      arbitrary: fc.constantFrom(...scene.receivers).map(({ url }) => url),
    },
  )
  return fc
    .tuple(amountLimits(fc, forms), interval, receiver)
    .map(([amounts, interval, receiver]) => ({
      ...(receiver === undefined ? {} : { receiver }),
      ...(interval === undefined ? {} : { interval }),
      ...amounts,
    }))
}

function amountLimits(fc: FastCheck, { scene, limits }: GrantForms): Arbitrary<Limits> {
  const value = fc.oneof(
    { weight: 2, arbitrary: fc.bigInt({ min: 1n, max: 12n }) },
    { weight: 1, arbitrary: fc.bigInt({ min: 1n, max: 5_000n }) },
    { weight: 1, arbitrary: valueEdges(fc) },
  )
  const all = {
    debitAmount: {
      weight: 10,
      arbitrary: value.map((value): Limits => ({ debitAmount: amountOf(value, scene.asset) })),
    },
    receiveAmount: {
      weight: 5,
      arbitrary: fc
        .tuple(value, fc.constantFrom(...scene.receivers))
        .map(([value, { asset }]): Limits => ({ receiveAmount: amountOf(value, asset) })),
    },
    anyAmount: { weight: 1, arbitrary: fc.constant<Limits>({}) },
  }
  const forms = (['debitAmount', 'receiveAmount', 'anyAmount'] as const).filter((form) =>
    limits.includes(form),
  )
  return fc.oneof(...forms.map((form) => all[form]))
}

export function rarely(fc: FastCheck): Arbitrary<boolean> {
  return fc.oneof(
    { weight: 7, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  )
}
