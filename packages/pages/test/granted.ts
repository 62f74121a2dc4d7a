import fc from 'fast-check'
import type { AccessItem, InteractionView, SpendingLimit, TokenItem } from 'open-payments-server'
import { formatAmount } from '../src/amounts.js'
import { type Locale, timesOf } from '../src/locale.js'
import type { TextKey } from '../src/texts.js'

/** Text from the network, with everything that could become markup or change the direction. */
export const wire = fc
  .array(
    fc.constantFrom('<img src=x>', '"', "'", '&', '`', '\u202e', '\u2069', 'x', '</details>', '{'),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((parts) => `w${parts.join('')}`)
const amount = fc.record({
  value: fc.bigInt(0n, 2n ** 64n - 1n).map(String),
  assetCode: fc.oneof(fc.constantFrom('USD', 'EUR'), wire),
  assetScale: fc.integer({ min: 0, max: 30 }),
})
const validInterval = fc.constantFrom(
  'R12/2026-12-01T00:00:00Z/P1M',
  'R/2026-12-01T00:00:00Z/P2W',
  'R3/P1D/2027-01-01T00:00:00Z',
  'R/2026-12-01T00:00:00Z/2026-12-03T00:00:00Z',
)
const interval = fc.oneof(validInterval, wire)
const limits = fc.record(
  { debitAmount: amount, receiveAmount: amount, interval, receiver: wire },
  { requiredKeys: [] },
)
/** A limit that an owner has set. */
export const ownerLimit: fc.Arbitrary<SpendingLimit> = fc.record(
  { debitAmount: amount, payments: fc.integer({ min: 1, max: 1e9 }), interval: validInterval },
  { requiredKeys: ['payments'] },
)
export const actions = {
  'incoming-payment': ['create', 'complete', 'read', 'read-all', 'list', 'list-all'],
  'outgoing-payment': ['create', 'read', 'read-all', 'list', 'list-all'],
  quote: ['create', 'read', 'read-all'],
} as const
export const item: fc.Arbitrary<TokenItem> = fc
  .constantFrom('incoming-payment' as const, 'outgoing-payment' as const, 'quote' as const)
  .chain((type) =>
    fc.record(
      {
        type: fc.constant(type),
        actions: fc.subarray([...actions[type]], { minLength: 1 }),
        identifier: wire,
        label: wire,
        ...(type === 'outgoing-payment' && { limits }),
      },
      { requiredKeys: ['type', 'actions'] },
    ),
  )

/** The totals of a view: the limits of items that pay, added up for each wallet address, interval and asset. */
export function totalsOf(items: readonly AccessItem[]): InteractionView['totals'] {
  const paying = items.filter((each) => each.type === 'outgoing-payment')
  const creating = paying.filter((each) => each.actions.some((action) => action === 'create'))
  const totals = new Map<string, InteractionView['totals'][number]>()
  for (const { identifier, limits: { interval, debitAmount, receiveAmount } = {} } of creating) {
    const kind = debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
    const { value = '0', ...asset } = debitAmount ?? receiveAmount ?? {}
    const key = JSON.stringify([identifier, interval, kind, asset])
    const before = totals.get(key)
    const sum = `${BigInt(value) + BigInt(before?.[kind]?.value ?? 0)}`
    totals.set(key, {
      ...(identifier !== undefined && { identifier }),
      ...(interval !== undefined && { interval }),
      ...('assetCode' in asset && { [kind]: { ...asset, value: sum } }),
      items: (before?.items ?? 0) + 1,
    })
  }
  return [...totals.values()]
}

/** Whether limits permit no payment that those before did not permit: each remains or is lowered, others are added. */
export function isNarrowed(
  before: readonly SpendingLimit[],
  after: readonly SpendingLimit[],
): boolean {
  const added = after.slice(before.length).map(({ interval }) => interval)
  if (before.some(({ interval }) => added.includes(interval))) return false
  return before.every((wide, index) => {
    const { interval, debitAmount, payments = Number.POSITIVE_INFINITY } = after[index] ?? {}
    const most = wide.debitAmount
    return (
      after.length > index &&
      interval === wide.interval &&
      payments <= (wide.payments ?? Number.POSITIVE_INFINITY) &&
      (most === undefined ||
        (debitAmount?.assetCode === most.assetCode &&
          debitAmount?.assetScale === most.assetScale &&
          BigInt(debitAmount.value) <= BigInt(most.value)))
    )
  })
}

/** Everything that a page has to say about granted items. */
export function factsOf(access: readonly AccessItem[], locale: Locale): readonly string[] {
  return access.flatMap(({ type, actions, identifier, limits = {}, ...item }: TokenItem) => [
    ...actions.map((action) => locale.texts[`${type}.${action}` as TextKey]),
    ...[identifier, item.label, limits.receiver].flatMap((each) => each ?? []),
    ...[limits.debitAmount, limits.receiveAmount].flatMap((each) =>
      each ? [formatAmount(each, locale)] : [],
    ),
    ...(limits.interval?.startsWith('w') ? [limits.interval] : []),
  ])
}

/** Everything that a page has to say about a limit of an owner. */
export function factsOfLimit(
  { debitAmount, payments }: SpendingLimit,
  locale: Locale,
): readonly string[] {
  return [
    ...(debitAmount ? [formatAmount(debitAmount, locale)] : []),
    ...(payments === undefined ? [] : [timesOf(payments, locale)]),
  ]
}
