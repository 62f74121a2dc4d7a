import {
  type AccessItem,
  type Instant,
  InvalidInputError,
  type Limits,
  type SpendingLimit,
} from 'open-payments-server'
import { amountValueMax, type IntervalCounting } from 'open-payments-server/core'
import { startOfTests } from '../clock.js'
import {
  amountOf,
  type CommitOrder,
  debitFor,
  defaultScene,
  type SpendingHistory,
  type SpendingScene,
  type StoreFailure,
} from './history.js'
import {
  type AmendCommand,
  type Command,
  type DecideCommand,
  type PayCommand,
  resolve,
  type Share,
  type Size,
  type TotalsCommand,
} from './resolve.js'
import {
  type Arbitrary,
  type FastCheck,
  historyInterval,
  rarely,
  valueEdges,
  weighted,
} from './values.js'

/** The scene of the histories, and the rules of the wallet besides the limits. */
export interface HistoryOptions {
  /** Who pays whom. Default: an account in dollars pays receivers in dollars and euros. */
  readonly scene?: SpendingScene
  /** The time of the first step. Default: `startOfTests`, or sometimes a calendar edge. */
  readonly start?: Instant
  /** The maximum number of steps after the first one, which is always a grant. Default 24. */
  readonly stepsMax?: number
  /**
   * The forms of limits that grants have, for a wallet that serves fewer. Default: all. Must contain `debitAmount`,
   * `receiveAmount` or `anyAmount`.
   */
  readonly limits?: readonly LimitForm[]
  /**
   * Returns the intervals of limits for a history that starts at the given instant, for a wallet that serves fewer
   * forms. Default: all forms, with windows near the start, and often months from the last days of a month.
   */
  readonly interval?: (start: Instant) => Arbitrary<string>
  /**
   * The most that one payment debits, for a wallet whose accounts contain less. A history has at most
   * `4 * (stepsMax + 1)` payments. Default: 2^64 - 1.
   */
  readonly debitMax?: bigint
  /** How the wallet counts the repetitions of an interval. Default `occurrences`. */
  readonly intervalCounting?: IntervalCounting
  /** How long a payment may wait until the host begins it, in milliseconds. Default 24 hours. */
  readonly holdMs?: number
  /**
   * How long the wallet waits for the host's decision about a payment, in milliseconds. A payment during which the
   * store fails is repeated so much later. Default 30 s.
   */
  readonly decideMs?: number
  /**
   * True for a host that sends each payment whole or not at all: its reports are all of a payment, or nothing. Default
   * false: parts are sent, too. With `servers`, `onEvent` then gets `outgoing-payment.created`: see `SpendingHost`.
   */
  readonly wholePayments?: boolean
}

/**
 * A form of limits: an amount, or any amount; in each window of an interval; to one receiver only. `ownersLimits` are
 * those of the owner's conditions.
 */
export type LimitForm =
  | 'debitAmount'
  | 'receiveAmount'
  | 'anyAmount'
  | 'interval'
  | 'receiver'
  | 'ownersLimits'

const limitForms: readonly LimitForm[] = [
  'debitAmount',
  'receiveAmount',
  'anyAmount',
  'interval',
  'receiver',
  'ownersLimits',
]

/** The names of the options. */
export const historyOptions: Readonly<Record<keyof HistoryOptions, true>> = {
  scene: true,
  start: true,
  stepsMax: true,
  limits: true,
  interval: true,
  debitMax: true,
  intervalCounting: true,
  holdMs: true,
  decideMs: true,
  wholePayments: true,
}

/**
 * Returns the options with their defaults.
 *
 * @throws {InvalidInputError} if the limits, the prices or the most that a payment debits are invalid.
 */
export function filledIn({
  scene = defaultScene,
  stepsMax = 24,
  limits = limitForms,
  interval,
  debitMax = amountValueMax,
  intervalCounting = 'occurrences',
  holdMs = 86_400_000,
  decideMs = 30_000,
  wholePayments = false,
}: HistoryOptions) {
  if (typeof wholePayments !== 'boolean') {
    throw new InvalidInputError('wholePayments', 'must be a boolean')
  }
  const hasAmount = limits.some((form) => limitForms.indexOf(form) < 3)
  if (!hasAmount || !limits.every((form) => limitForms.includes(form))) {
    const forms = `must contain some of ${limitForms.join(', ')}`
    throw new InvalidInputError('limits', `${forms}, and one of the first three`)
  }
  // A smaller debit would deliver nothing.
  const least = scene.receivers.map((receiver) => debitFor(1n, receiver))
  const isEnough = typeof debitMax === 'bigint' && least.every((each) => each <= debitMax)
  if (!isEnough || debitMax > amountValueMax) {
    const most = 'must be a bigint up to 2^64 - 1 that delivers at least one unit to each receiver'
    throw new InvalidInputError('debitMax', most)
  }
  return {
    scene,
    stepsMax,
    debitMax,
    wholePayments,
    forms: { scene, limits, interval, debitMax },
    rules: { intervalCounting, holdMs, decideMs, scene },
  }
}

/** The last days of a long month and of a leap February, and the last millisecond of a year. */
const corners: readonly Instant[] = [
  Date.UTC(2027, 0, 31),
  Date.UTC(2028, 1, 29, 12),
  Date.UTC(2026, 11, 31, 23, 59, 59, 999),
]

/** Generates histories of payments under limits in which each step is possible after those before it. */
export function anyHistory(fc: FastCheck, options: HistoryOptions): Arbitrary<SpendingHistory> {
  const { start } = options
  if (start !== undefined) return historyFrom(fc, Math.floor(start), options)
  return weighted(
    fc,
    [3, historyFrom(fc, startOfTests, options)],
    ...corners.map((corner) => [1, historyFrom(fc, corner, options)] as const),
  )
}

function historyFrom(
  fc: FastCheck,
  start: Instant,
  options: HistoryOptions,
): Arbitrary<SpendingHistory> {
  const { scene, forms, ...setting } = filledIn(options)
  const grants = grantCommand(fc, forms, start)
  const command = anyCommand(fc, grants, ownersForms(fc, forms, start))
  // A single array would usually be short.
  const [first, second, third] = [0, 1, 2].map((i) =>
    fc.array(command, { maxLength: Math.floor((setting.stepsMax + i) / 3), size: 'max' }),
  ) as [Arbitrary<Command[]>, Arbitrary<Command[]>, Arbitrary<Command[]>]
  return fc.tuple(grants, first, second, third).map(([grant, ...others]) => {
    return resolve([grant, ...others.flat()], { ...setting, scene, start })
  })
}

const dayMs = 86_400_000

/** One step, several concurrent ones, or several that find mistakes more often in this order. */
function anyCommand(
  fc: FastCheck,
  grants: Arbitrary<Command>,
  owners: OwnersForms,
): Arbitrary<Command> {
  const acting = actionCommand(fc, owners, 1)
  const list = fc.nat({ max: 2 }).map((grant): Command => ({ type: 'list', grant }))
  const commits = fc.constantFrom<CommitOrder[]>('together', 'in turn', 'in reverse')
  const several = fc
    .tuple(fc.array(actionCommand(fc, owners, 6), { maxLength: 4, size: 'max' }), commits)
    .map(([commands, commits]) => ({ type: 'at once' as const, commands, commits }))
  return weighted(
    fc,
    [24, acting],
    [10, waitCommand(fc)],
    [5, several],
    [3, acrossEdges(fc)],
    [3, reportedTwice(fc)],
    [3, decidedLate(fc, owners)],
    [4, duringFailure(fc, owners)],
    // Payments under several grants meet in the limits of their account.
    [2, inARow(fc, [owners.account, grants, payCommand(fc), payCommand(fc)])],
    [1, inARow(fc, [owners.account, ownersPayment(fc), ownersPayment(fc), payCommand(fc)])],
    [1, inARow(fc, [ownersPayment(fc), payCommand(fc), list])],
    [1, grants],
  )
}

/** Payments just before and just after the ends of successive windows. */
function acrossEdges(fc: FastCheck): Arbitrary<Command> {
  const off = fc.constantFrom(-1, -1, 0, 0, 1)
  const by = fc.constantFrom('direct' as const, 'quote' as const)
  const turns = fc.array(fc.tuple(off, kept(fc), sizeOf(fc), by), { maxLength: 4, size: 'max' })
  return fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 }), turns).map(([grant, item, turns]) => ({
    type: 'in a row' as const,
    commands: turns.flatMap(([off, pays, size, by]): Command[] => {
      const edge = { type: 'edge', grant, item, off } as const
      const request = { receiver: 0, other: false, by, as: 'client' } as const
      const pay = { type: 'pay', grant, item, size, ...request } as const
      return pays ? [edge, pay] : [edge]
    }),
  }))
}

/**
 * Payments, reports about one of them, a repeat of one report, and a payment that only fits if each report counts once.
 */
function reportedTwice(fc: FastCheck): Arbitrary<Command> {
  const report = totalsCommand(fc).map((command) => ({ ...command, back: 0, any: false }))
  const again = fc.constant<Command>({ type: 'again', back: 0 })
  const begin = fc.constant<Command>({ type: 'begin', back: 0, any: false })
  const cancel = fc.constant<Command>({ type: 'cancel', back: 0, any: false })
  const pay = payCommand(fc)
  return weighted(
    fc,
    [2, inARow(fc, [pay, begin, report, report, again, report, pay])],
    [1, inARow(fc, [pay, pay, cancel, again, pay])],
  )
}

/**
 * Payments that end with a doubt, its decision, perhaps in a later window, a repeat of it, and a payment that only fits
 * if what was refunded counts back once, and in the right window.
 */
function decidedLate(fc: FastCheck, { account }: OwnersForms): Arbitrary<Command> {
  const end = fc.record({
    type: fc.constantFrom('fail', 'report-sent'),
    back: fc.constant(0),
    any: fc.constant(false),
    share: fc.constantFrom<Share[]>('all', 'half'),
    inDoubt: fc.constantFrom<Share[]>('all', 'half'),
    final: fc.constant(true),
  })
  const decide = decideCommand(fc).map((command) => ({ ...command, back: 0, any: false }))
  const begin = fc.constant<Command>({ type: 'begin', back: 0, any: false })
  const again = fc.constant<Command>({ type: 'again', back: 0 })
  const edge = fc.record({
    type: fc.constant('edge'),
    grant: fc.nat({ max: 2 }),
    item: fc.nat({ max: 2 }),
    off: fc.constantFrom(0, 1),
  })
  const pay = payCommand(fc)
  return weighted(
    fc,
    [2, inARow(fc, [pay, begin, end, edge, pay, decide, pay])],
    [1, inARow(fc, [pay, begin, end, pay, decide, again, pay])],
    // What is refunded in full is no payment in the limits of an account.
    [1, inARow(fc, [account, pay, begin, end, decide.map(inFull), pay, pay])],
  )
}

const inFull = (command: DecideCommand): DecideCommand => ({ ...command, share: 'all' })

function inARow(fc: FastCheck, commands: readonly Arbitrary<Command>[]): Arbitrary<Command> {
  return fc
    .tuple(...commands.map((command) => fc.tuple(kept(fc), command)))
    .map((all) => all.flatMap(([isKept, command]) => (isKept ? [command] : [])))
    .map((commands) => ({ type: 'in a row' as const, commands }))
}

/** Usually true. It shrinks to false, so that a step that is not needed disappears from a counterexample. */
function kept(fc: FastCheck): Arbitrary<boolean> {
  return fc.constantFrom(false, true, true, true, true, true, true, true)
}

/** A payment or a report during which the store fails. */
function duringFailure(fc: FastCheck, owners: OwnersForms): Arbitrary<Command> {
  const failing = (
    commands: Arbitrary<Command>,
    write: (command: Command) => number = () => 1,
  ): Arbitrary<Command> =>
    fc
      .tuple(commands, fc.constantFrom<StoreFailure[]>('before', 'after'), fc.boolean())
      .map(([command, failure, sweeps]) => {
        return { type: 'store fails', command, failure, write: write(command), sweeps }
      })
  // After a reservation, and with a quote after that too, a payment is confirmed.
  const confirmed = failing(payCommand(fc), (command) =>
    'by' in command && command.by === 'quote' ? 3 : 2,
  )
  const end = totalsCommand(fc).map((command) => ({ ...command, back: 0, any: false, final: true }))
  const begin = fc.constant<Command>({ type: 'begin', back: 0, any: false })
  const ended = inARow(fc, [payCommand(fc), begin, failing(end)])
  return weighted(fc, [2, failing(actionCommand(fc, owners, 1))], [1, confirmed], [1, ended])
}

/**
 * An action under a grant. Revocations are more frequent in races, because otherwise they end the history.
 */
function actionCommand(
  fc: FastCheck,
  owners: OwnersForms,
  revocations: number,
): Arbitrary<Command> {
  const back = fc.nat({ max: 3 })
  const grant = fc.nat({ max: 2 })
  const any = rarely(fc)
  return weighted<Command>(
    fc,
    [20, payCommand(fc)],
    [3, ownersPayment(fc)],
    [7, back.map((back) => ({ type: 'retry', back }))],
    [2, back.map((back) => ({ type: 'alter', back }))],
    [4, back.map((back) => ({ type: 'again', back }))],
    [6, fc.record({ type: fc.constant('begin'), back, any })],
    [16, totalsCommand(fc)],
    [3, decideCommand(fc)],
    [5, fc.record({ type: fc.constant('cancel'), back, any })],
    [2, fc.constant({ type: 'lapse' })],
    [1, grant.map((grant) => ({ type: 'list', grant }))],
    [2, grant.map((grant) => ({ type: 'rotate', grant }))],
    [revocations, grant.map((grant) => ({ type: 'revoke', grant }))],
    [5, amendCommand(fc, owners)],
    [1, owners.account],
    [1, fc.constant({ type: 'replace-key' })],
  )
}

function amendCommand(fc: FastCheck, { limit, isServed }: OwnersForms): Arbitrary<AmendCommand> {
  const served = isServed ? (['limit', 'limit'] as const) : []
  return fc.record({
    type: fc.constant('amend'),
    grant: fc.nat({ max: 2 }),
    item: fc.nat({ max: 2 }),
    how: fc.constantFrom<AmendCommand['how'][]>(
      ...(['lower', 'lower', 'remove', 'cap', 'receivers', 'pause', 'resume', 'widen'] as const),
      ...served,
    ),
    limit,
    parts: fc.constantFrom(1n, 2n, 2n, 3n),
  })
}

function sizeOf(fc: FastCheck): Arbitrary<Size> {
  const off = weighted(fc, [3, fc.constant(0n)], [2, fc.constantFrom(1n, -1n)])
  const parts = fc.constantFrom(1n, 2n, 2n, 3n, 10n)
  const value = fc.bigInt({ min: 1n, max: 5_000n })
  return weighted<Size>(
    fc,
    [2, fc.record({ of: fc.constant('rest'), off })],
    [4, fc.record({ of: fc.constant('limit'), parts, off })],
    [1, fc.record({ of: fc.constant('value'), value })],
  )
}

function payCommand(fc: FastCheck): Arbitrary<PayCommand> {
  return fc.record({
    type: fc.constant('pay'),
    grant: fc.nat({ max: 2 }),
    item: fc.nat({ max: 2 }),
    size: sizeOf(fc),
    receiver: fc.nat({ max: 3 }),
    other: rarely(fc),
    by: fc.constantFrom('direct', 'quote'),
    as: fc.constant('client'),
  })
}

/** The owner pays: amounts that the limits of the apps' grants or of the account would just allow, or not. */
function ownersPayment(fc: FastCheck): Arbitrary<PayCommand> {
  const as = fc.constantFrom<PayCommand['as'][]>('owner', 'owner', 'owner, counted')
  return fc.tuple(payCommand(fc), as).map(([command, as]) => ({ ...command, as }))
}

function totalsCommand(fc: FastCheck): Arbitrary<TotalsCommand> {
  const share = fc.constantFrom<Share[]>(
    'nothing',
    'all',
    'half',
    'one unit',
    'all but one unit',
    'too much',
  )
  return fc.record({
    type: fc.constantFrom('fail', 'report-sent'),
    back: fc.nat({ max: 3 }),
    any: rarely(fc),
    share,
    delivered: weighted(fc, [2, fc.constant(undefined)], [1, share]),
    inDoubt: weighted(fc, [3, fc.constant(undefined)], [1, share]),
    final: fc.boolean(),
  })
}

function decideCommand(fc: FastCheck): Arbitrary<DecideCommand> {
  return fc.record({
    type: fc.constant('decide-doubt'),
    back: fc.nat({ max: 3 }),
    any: rarely(fc),
    share: fc.constantFrom<Share[]>(
      'all',
      'nothing',
      'half',
      'one unit',
      'all but one unit',
      'too much',
    ),
  })
}

function waitCommand(fc: FastCheck): Arbitrary<Command> {
  const off = fc.constantFrom(0, -1, 1)
  const [grant, item, back] = [fc.nat({ max: 2 }), fc.nat({ max: 2 }), fc.nat({ max: 3 })]
  const ms = fc.constantFrom(1, 1_000, 60_000, 3_600_000, dayMs, 31 * dayMs, 366 * dayMs)
  return weighted<Command>(
    fc,
    [6, fc.record({ type: fc.constant('edge'), grant, item, off })],
    [1, fc.record({ type: fc.constant('hold'), back, off })],
    [2, fc.record({ type: fc.constant('wait'), ms })],
  )
}

/** The choices for the grants of a history. */
interface GrantForms {
  readonly scene: SpendingScene
  readonly limits: readonly LimitForm[]
  readonly interval?: ((start: Instant) => Arbitrary<string>) | undefined
  readonly debitMax: bigint
}

/** A grant with limits that are low enough to be reached. */
function grantCommand(fc: FastCheck, forms: GrantForms, start: Instant): Arbitrary<Command> {
  const { walletAddress, otherWalletAddress = walletAddress } = forms.scene
  const identifiers = weighted(
    fc,
    [6, fc.constant(walletAddress)],
    [1, fc.constant(otherWalletAddress)],
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
  const { limits: ownersLimits, isServed } = ownersForms(fc, forms, start)
  const none = fc.constant<SpendingLimit[]>([])
  const limits = isServed ? weighted(fc, [6, none], [1, ownersLimits]) : none
  return fc
    .tuple(items, rarely(fc), limits)
    .map(([items, halved, limits]) => ({ type: 'grant' as const, items, halved, limits }))
}

/** Limits of owners. */
interface OwnersForms {
  readonly limit: Arbitrary<SpendingLimit>
  readonly limits: Arbitrary<SpendingLimit[]>
  /** Whether the wallet serves them in the conditions of a grant. */
  readonly isServed: boolean
  /** The owner sets the limits of an account, or none. */
  readonly account: Arbitrary<Command>
}

function ownersForms(fc: FastCheck, forms: GrantForms, start: Instant): OwnersForms {
  const { scene, interval: intervals = (at) => historyInterval(fc, at) } = forms
  const value = weighted(
    fc,
    [2, fc.bigInt({ min: 1n, max: 12n })],
    [1, fc.bigInt({ min: 1n, max: 5_000n })],
  )
  const debitAmount = value.map((value) => amountOf(value, scene.asset))
  const payments = fc.integer({ min: 1, max: 3 })
  const most = weighted<SpendingLimit>(
    fc,
    [2, fc.record({ debitAmount })],
    [2, fc.record({ payments })],
    [1, fc.record({ debitAmount, payments })],
  )
  const interval = weighted(fc, [1, fc.constant(undefined)], [2, intervals(start)])
  const limit = fc
    .tuple(most, interval)
    .map(([most, interval]) => (interval === undefined ? most : { ...most, interval }))
  const limits = fc.array(limit, { minLength: 1, maxLength: 2 })
  const account = fc.record({
    type: fc.constant('limit-account' as const),
    other: rarely(fc),
    limits: weighted(fc, [1, fc.constant<SpendingLimit[]>([])], [1, limits]),
  })
  return { limit, limits, isServed: forms.limits.includes('ownersLimits'), account }
}

function limitsIn(fc: FastCheck, forms: GrantForms, start: Instant): Arbitrary<Limits> {
  const { scene, limits, interval: intervals = (at) => historyInterval(fc, at) } = forms
  const nothing = fc.constant(undefined)
  const interval = weighted(
    fc,
    [1, nothing],
    [limits.includes('interval') ? 2 : 0, intervals(start)],
  )
  const receivers = fc.constantFrom(...scene.receivers.map(({ url }) => url))
  const receiver = weighted(fc, [5, nothing], [limits.includes('receiver') ? 1 : 0, receivers])
  return fc
    .tuple(amountLimits(fc, forms), interval, receiver)
    .map(([amounts, interval, receiver]) => ({
      ...(receiver !== undefined && { receiver }),
      ...(interval !== undefined && { interval }),
      ...amounts,
    }))
}

function amountLimits(fc: FastCheck, { scene, limits, debitMax }: GrantForms): Arbitrary<Limits> {
  const value = weighted(
    fc,
    [2, fc.bigInt({ min: 1n, max: 12n })],
    [1, fc.bigInt({ min: 1n, max: 5_000n })],
    [1, valueEdges(fc)],
  ).map((value) => (value < debitMax ? value : debitMax))
  const forms: Readonly<Record<string, readonly [number, Arbitrary<Limits>]>> = {
    debitAmount: [10, value.map((value) => ({ debitAmount: amountOf(value, scene.asset) }))],
    receiveAmount: [
      5,
      fc
        .tuple(value, fc.constantFrom(...scene.receivers))
        .map(([value, { asset }]) => ({ receiveAmount: amountOf(value, asset) })),
    ],
    anyAmount: [1, fc.constant({})],
  }
  return weighted(fc, ...limits.flatMap((form) => (forms[form] ? [forms[form]] : [])))
}
