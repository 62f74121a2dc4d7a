import type { AccessItem, Amount, Asset, Instant, Limits } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import type { AccessAction } from 'open-payments-server/core'
import { anyHistory, type HistoryOptions, historyOptions } from './generate.js'
import { itemText, limitsText, readable, type SpendingHistory } from './history.js'
import {
  type Arbitrary,
  anyAmount,
  brokenInterval,
  type FastCheck,
  validInterval,
  weighted,
} from './values.js'

/** What generated limits are about: options of `limits` and `accessItem` of `arbitraries`. */
export interface LimitsOptions {
  /** The asset of the amounts. Default: any. */
  readonly asset?: Asset
  /** An instant near the windows of the intervals. Default: any time. */
  readonly around?: Instant
}

/** fast-check arbitraries for payment limits. Every value prints in readable form. */
export interface Arbitraries {
  /** Positive amounts up to 2^64 - 1, including edge values for sums. */
  amount(asset?: Asset): Arbitrary<Amount>
  /**
   * Repeating intervals that the library accepts: all forms, with and without a count, with calendar and
   * exact durations, at month ends and leap days, with instants in every RFC 3339 form.
   *
   * @param around an instant near the windows. Default: any time from 1970 to 9999.
   */
  interval(around?: Instant): Arbitrary<string>
  /** Texts that resemble repeating intervals and that the library rejects. */
  invalidInterval(): Arbitrary<string>
  /** Limits of outgoing payments; an empty object means no limits. */
  limits(options?: LimitsOptions): Arbitrary<Limits>
  /** Access items of every type, as a client may request them. */
  accessItem(options?: LimitsOptions): Arbitrary<AccessItem>
  /** Histories of payments under limits. Pass the same options to the wallet or property that plays them. */
  history(options?: HistoryOptions): Arbitrary<SpendingHistory>
}

/**
 * Creates the arbitraries with the fast-check module of the test. They throw an `InvalidInputError` for an unknown
 * option.
 *
 * @example
 * ```ts
 * import fc from 'fast-check'
 * import { parseInterval } from 'open-payments-server/core'
 * import { arbitraries } from 'open-payments-server-testing'
 *
 * const { interval } = arbitraries(fc)
 * fc.assert(fc.property(interval(), (text) => parseInterval(text).ok))
 * ```
 */
export function arbitraries(fc: FastCheck): Arbitraries {
  return {
    amount: (asset) => anyAmount(fc, asset),
    interval: (around) => validInterval(fc, around),
    invalidInterval: () => brokenInterval(fc),
    limits: (options = {}) => anyLimits(fc, knownLimits(options)),
    accessItem: (options = {}) => anyItem(fc, knownLimits(options)),
    history(options = {}) {
      requireKnownOptions('', options, historyOptions)
      return anyHistory(fc, options)
    },
  }
}

function knownLimits(options: LimitsOptions): LimitsOptions {
  requireKnownOptions('', options, { asset: true, around: true })
  return options
}

function anyLimits(fc: FastCheck, { asset, around }: LimitsOptions): Arbitrary<Limits> {
  const receivers = fc
    .tuple(fc.constantFrom('bank.example', 'wallet.example', 'bank.example:8443'), fc.uuid())
    .map(([host, id]) => `https://${host}/incoming-payments/${id}`)
  const receiver = fc.option(receivers, { nil: undefined, freq: 3 })
  const interval = fc.option(validInterval(fc, around), { nil: undefined, freq: 2 })
  const counted = fc.constantFrom('debitAmount' as const, 'receiveAmount' as const, undefined)
  return fc
    .tuple(receiver, interval, counted, anyAmount(fc, asset))
    .map(([receiver, interval, counted, amount]) => {
      const limits: Limits = {
        ...(receiver !== undefined && { receiver }),
        ...(interval !== undefined && { interval }),
        ...(counted !== undefined && { [counted]: amount }),
      }
      return readable(limits, () => limitsText(limits))
    })
}

const actions = {
  'incoming-payment': ['create', 'complete', 'read', 'read-all', 'list', 'list-all'],
  'outgoing-payment': ['create', 'read', 'read-all', 'list', 'list-all'],
  quote: ['create', 'read', 'read-all'],
} as const satisfies Record<AccessItem['type'], readonly AccessAction[]>

function anyItem(fc: FastCheck, options: LimitsOptions): Arbitrary<AccessItem> {
  const identifier = fc.constantFrom('https://wallet.example/alice', 'https://wallet.example/bob')
  const some = <Action extends AccessAction>(all: readonly Action[]) =>
    fc.subarray([...all], { minLength: 1 })
  const incoming = fc
    .tuple(some(actions['incoming-payment']), fc.option(identifier, { nil: undefined }))
    .map(([actions, identifier]) => ({
      type: 'incoming-payment' as const,
      actions,
      ...(identifier !== undefined && { identifier }),
    }))
  const limits = fc.option(anyLimits(fc, options), { nil: undefined, freq: 4 })
  const outgoing = fc
    .tuple(some(actions['outgoing-payment']), identifier, limits)
    .map(([actions, identifier, limits]) => ({
      type: 'outgoing-payment' as const,
      actions,
      identifier,
      ...(limits !== undefined && { limits }),
    }))
  const quote = some(actions.quote).map((actions) => ({ type: 'quote' as const, actions }))
  return weighted<AccessItem>(fc, [4, outgoing], [1, incoming], [1, quote]).map((item) =>
    readable(item, () => itemText(item)),
  )
}
