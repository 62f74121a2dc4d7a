import type { Instant } from 'open-payments-server'
import {
  type ActionDuringFailure,
  actionsOf,
  amountText,
  type CommitOrder,
  instantText,
  isReport,
  numbered,
  type PaymentRequest,
  type SpendingAction,
  type SpendingHistory,
  type SpendingReport,
  type SpendingStep,
  stepText,
} from './history.js'
import type { SpendingRules } from './model.js'
import { createOracle, type Observation, type Oracle, type OracleRules } from './oracle.js'
import type { PaymentAnswer, SpendingAnswer, SpendingWallet, WalletRequest } from './wallet.js'

/**
 * A mistake of the wallet, with the history up to it.
 *
 * @example
 * ```ts
 * import fc from 'fast-check'
 * import { SpendingError, spendingProperty } from 'open-payments-server-testing'
 *
 * try {
 *   await fc.assert(spendingProperty(fc, { store: () => store }))
 * } catch (error) {
 *   if (error instanceof Error && error.cause instanceof SpendingError) console.log(error.message)
 * }
 * ```
 */
export class SpendingError extends Error {
  readonly code = 'ERR_SPENDING'
}

/** Runs actions concurrently in a way that is likely to expose races. */
export type Race = (
  tasks: readonly (() => Promise<Observation | undefined>)[],
  order: CommitOrder,
) => Promise<readonly (Observation | undefined)[]>

/** A history that runs on a wallet. */
interface Run {
  readonly wallet: SpendingWallet
  readonly oracle: Oracle
  /** The prefix of request keys: histories share no keys. */
  readonly prefix: string
  /** The wallet's ids of the grants. */
  readonly grants: Map<number, string>
  now: Instant
}

/**
 * Runs a history on a wallet, compares each answer with the oracle, and closes the wallet.
 *
 * @throws {SpendingError} at the first step that is wrong, or if the wallet cannot be closed; its message contains the
 *   history so far.
 */
export async function runHistory(
  history: SpendingHistory,
  wallet: SpendingWallet,
  rules: OracleRules,
  race: Race = (tasks) => Promise.all(tasks.map((task) => task())),
): Promise<void> {
  const { start } = history
  const oracle = createOracle(rules)
  const run: Run = { wallet, oracle, prefix: crypto.randomUUID(), grants: new Map(), now: start }
  const lines: string[] = []
  /** Calls a function of the wallet whose error would otherwise not say what happened before. */
  async function told<Result>(name: string, work: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw spendingError([`${name} rejected with: ${messageOf(error)}`], start, lines, error)
    }
  }
  try {
    await told('setClock', () => wallet.setClock?.(start))
    await runSteps(run, history, rules, race, lines, told)
  } catch (error) {
    await told('close', () => wallet.close?.()).catch(() => undefined) // the first error counts
    throw error
  }
  await told('close', () => wallet.close?.())
}

type Told = <Result>(name: string, work: () => Result | Promise<Result>) => Promise<Result>

async function runSteps(
  run: Run,
  history: SpendingHistory,
  rules: OracleRules,
  race: Race,
  lines: string[],
  told: Told,
): Promise<void> {
  const { wallet, oracle } = run
  const { start, steps } = history
  for (const step of steps) {
    const tasks = actionsOf(step).map((action) => () => observe(run, action))
    let observed: readonly (Observation | undefined)[]
    try {
      if (step.type === 'at once') observed = await race(tasks, step.commits)
      else if (step.type === 'store fails') observed = await observeFailure(run, step, rules)
      else observed = [await observe(run, step)]
    } catch (error) {
      lines.push(numbered(lines.length, stepText(step, ['the wallet failed'])))
      const problems = await wrongPrice(run, history, step, [messageOf(error)])
      throw spendingError(problems, start, lines, error)
    }
    lines.push(numbered(lines.length, stepText(step, observed.map(answerText))))
    const observations = observed.filter((each) => each !== undefined)
    // A repeat comes after the action; only concurrent actions may have run in any order.
    const parts = step.type === 'store fails' ? observations.map((each) => [each]) : [observations]
    const problems = parts.map((part) => oracle.check(part)).find((found) => found.length > 0)
    if (problems !== undefined) {
      throw spendingError(await wrongPrice(run, history, step, problems), start, lines)
    }
    const problem = await told('problem', () => wallet.problem?.())
    if (problem !== undefined) throw spendingError([problem], start, lines)
  }
}

/**
 * Returns which price of the payments so far differs from the scene, or the problems if none does: a limit on what
 * arrives is then another one for the wallet than for the test.
 */
async function wrongPrice(
  { wallet, ...run }: Run,
  { steps, scene }: SpendingHistory,
  last: SpendingStep,
  problems: readonly string[],
): Promise<readonly string[]> {
  const past = steps.slice(0, steps.indexOf(last) + 1).flatMap(actionsOf)
  for (const action of past) {
    if (action.type !== 'pay') continue
    const { payment, debitAmount, receiveAmount, receiver } = action
    const { value, ...asset } = receiveAmount
    try {
      if (action.grant === undefined) continue
      const price = await wallet.quote?.(walletRequest(run, action, `price-${payment}`))
      const isSame =
        price?.value === value &&
        price.assetCode === asset.assetCode &&
        price.assetScale === asset.assetScale
      if (price === undefined || isSame) continue
      const index = scene.receivers.findIndex(({ url }) => url === receiver)
      const { unitPrice = 1n } = scene.receivers[index] ?? {}
      const isSameAsset =
        price.assetCode === asset.assetCode && price.assetScale === asset.assetScale
      const option = isSameAsset ? `unitPrice, which is ${unitPrice},` : 'asset'
      return [
        `the price of payment ${payment} differs from the scene: of ${amountText(debitAmount)}, ` +
          `the wallet delivers ${amountText(price)}, and the scene says ${amountText(receiveAmount)}; ` +
          `set ${option} of scene.receivers[${index}] to the price of the wallet`,
      ]
    } catch (error) {
      // For an earlier payment, the reason can be one that does not matter to the last step.
      if (!actionsOf(last).includes(action)) continue
      const reason = messageOf(error)
      return [
        `the wallet has no price for ${amountText(debitAmount)} to ${receiver}: ${reason}`,
        ...problems.filter((problem) => problem !== reason),
      ]
    }
  }
  return problems
}

/** Performs an action. Returns `undefined` if the wallet does not support it or it is impossible. */
async function observe(run: Run, action: SpendingAction): Promise<Observation | undefined> {
  const before = clockOf(run)
  const answer = await perform(run, action)
  if (answer === undefined) return undefined
  const after = clockOf(run)
  return { action, answer, moments: before === after ? [before] : [before, after] }
}

/** Performs an action while the store fails, and repeats it afterwards if its outcome is unknown. */
async function observeFailure(
  run: Run,
  { action, failure, write, sweeps }: ActionDuringFailure,
  { decideMs }: SpendingRules,
): Promise<readonly (Observation | undefined)[]> {
  const { wallet } = run
  if (wallet.failStore === undefined) return [await observe(run, action)]
  const before = clockOf(run)
  const restore = wallet.failStore(failure, write)
  try {
    return [await observe(run, action)]
  } catch {
    await restore()
    const moments = [...new Set([before, clockOf(run)])]
    const unknown: Observation = { action, answer: { accepted: 'unknown' }, moments }
    // The wallet may have reserved the payment, and asks again only when the time of its lost call of `mayPay` is over.
    if (!isReport(action)) await waitUntil(run, run.now + decideMs)
    const repeat: SpendingAction =
      action.type === 'pay' ? { type: 'retry', request: action } : action
    const swept = sweeps ? [await observe(run, { type: 'lapse' })] : []
    return [unknown, ...swept, await observe(run, repeat)]
  } finally {
    await restore()
  }
}

/** Sets the clock of the wallet, but never back: a repeat may have come later than the history says. */
async function waitUntil(run: Run, until: Instant): Promise<void> {
  if (run.wallet.setClock === undefined) return
  run.now = Math.max(run.now, until)
  await run.wallet.setClock(run.now)
}

function clockOf({ wallet, now }: Run): Instant {
  return wallet.setClock === undefined ? Date.now() : now
}

async function perform(
  run: Run,
  action: SpendingAction,
): Promise<SpendingAnswer | PaymentAnswer | undefined> {
  const { wallet, grants } = run
  switch (action.type) {
    case 'grant':
      grants.set(
        action.grant,
        await wallet.grant(
          plain(action.asked),
          plain(action.granted),
          action.limits && plain(action.limits),
        ),
      )
      return accepted
    case 'limit-account':
      return done(wallet.limitAccount?.(action.walletAddress, plain(action.limits)))
    case 'pay':
      return pay(run, action)
    case 'retry':
    case 'alter':
      return pay(run, action.request)
    case 'lapse':
      return done(wallet.lapse?.())
    case 'list':
      return wallet.list?.(grants.get(action.grant) ?? '', action.walletAddress)
    case 'rotate':
      return wallet.rotate?.(grants.get(action.grant) ?? '')
    case 'revoke':
      return done(wallet.revoke?.(grants.get(action.grant) ?? ''))
    case 'amend': {
      const { type: _type, grant, ...amendment } = action
      return wallet.amend?.(grants.get(grant) ?? '', plain(amendment))
    }
    case 'replace-key':
      return done(wallet.replaceKey?.())
    case 'wait':
      if (wallet.setClock === undefined) return undefined
      await waitUntil(run, action.until)
      return accepted
    default: {
      const id = run.oracle.idOf(action.payment)
      return id === undefined ? undefined : report(wallet, id, action)
    }
  }
}

const accepted = { accepted: true } as const

async function done(work: Promise<void> | undefined): Promise<SpendingAnswer | undefined> {
  if (work === undefined) return undefined
  await work
  return accepted
}

function walletRequest(
  { prefix, grants }: Pick<Run, 'prefix' | 'grants'>,
  { grant = 0, by, walletAddress, receiver, debitAmount }: PaymentRequest,
  key: string,
): WalletRequest {
  return {
    grant: grants.get(grant) ?? '',
    key: `${prefix}-${key}`,
    by,
    walletAddress,
    receiver,
    debitAmount: { ...debitAmount },
  }
}

function pay(run: Run, request: PaymentRequest): Promise<PaymentAnswer> | undefined {
  const { grant, ...order } = walletRequest(run, request, `${request.payment}`)
  if (request.grant !== undefined) return run.wallet.pay({ grant, ...order })
  const { countsInAccountLimits = false } = request
  return run.wallet.order?.({ ...order, countsInAccountLimits })
}

async function report(
  wallet: SpendingWallet,
  id: string,
  action: SpendingReport,
): Promise<SpendingAnswer | undefined> {
  switch (action.type) {
    case 'begin':
      return wallet.begin(id)
    case 'report-sent':
    case 'fail': {
      const { type, payment: _, ...totals } = action
      if (totals.inDoubt !== undefined && wallet.decideDoubt === undefined) return undefined
      return 'final' in totals ? wallet.reportSent(id, totals) : wallet.fail(id, totals)
    }
    case 'decide-doubt': {
      const { refunded, deliveredAmount } = action
      return wallet.decideDoubt?.(id, { refunded, deliveredAmount })
    }
    case 'cancel':
      return wallet.cancel?.(id)
  }
}

/** Removes the readable form of items, so that a wallet receives plain JSON. */
function plain<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value
}

function answerText(observation: Observation | undefined): string {
  if (observation === undefined) return 'skipped'
  const { action, answer } = observation
  if (answer.accepted === 'unknown') return 'failed'
  if (!answer.accepted) return `refused${answer.reason === undefined ? '' : ` (${answer.reason})`}`
  return ['wait', 'lapse', 'replace-key', 'limit-account'].includes(action.type)
    ? 'done'
    : 'accepted'
}

/** The longest chain of causes that a message names. */
const causesMax = 5

/** Returns the messages of an error and of its causes: `fetch failed: certificate has expired`. */
function messageOf(error: unknown): string {
  const messages: string[] = []
  let each = error
  while (each !== undefined && messages.length < causesMax) {
    messages.push(ownMessageOf(each))
    each = each instanceof Error ? each.cause : undefined
  }
  return messages.join(': ')
}

function ownMessageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Node reports several refused connections as one error that has a code and no message.
  return error.message || String((error as NodeJS.ErrnoException).code ?? error.name)
}

function spendingError(
  problems: readonly string[],
  start: Instant,
  lines: readonly string[],
  cause?: unknown,
): SpendingError {
  const story = [`     time: ${instantText(start)}`, ...lines]
  const text = [problems.join('; '), '', ...story, ''].join('\n')
  return new SpendingError(text, cause === undefined ? {} : { cause })
}
