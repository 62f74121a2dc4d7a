import { InvalidInputError } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { demand } from './conformance/expectations.js'
import type { ConformanceCase } from './conformance.js'
import { type HoldSubject, testAccount } from './holds/account.js'
import { type HoldCaseDefinition, type HoldTrial, holdCases } from './holds/cases.js'
import { within } from './within.js'

/** One case of the suite, for any test runner. */
export type HoldCase = Pick<ConformanceCase, 'name' | 'search' | 'timeoutMs' | 'run'>

/** Which cases of holds to add. */
export interface HoldOptions {
  /**
   * Opens an account again, as another process of the host on the same database does. This adds the cases with two
   * processes: that a hold outlives its process, and that both count each other's.
   */
  readonly reopen?: (walletAddress: string) => HoldSubject | Promise<HoldSubject>
  /**
   * True for a settlement that sends each payment whole or not at all. Then `sentAmount` is all of the payment at
   * `completed` and 0 at `failed`, and no event `sent` comes. Default false: parts are sent, too.
   */
  readonly wholePayments?: boolean
  /** How many times longer than by default each search runs: a positive integer. Default 1. */
  readonly searches?: number
  /** How long a case may run before it fails with a timeout, in milliseconds. Default 30000. */
  readonly timeoutMs?: number
}

/** How often a search asks at once, by default. */
const rounds = 10

/**
 * Returns what a host's hold, debit and release must do, as test cases, for any test runner.
 *
 * A hold is taken by `policy.mayPay` and released by the handler of the events `outgoing-payment.completed`, `.failed`
 * and `.declined`. Each payment that the host was asked about gets one of them, which may be delivered several times.
 * The cases call the host's own functions in the order in which the servers do, and compare the account after each.
 *
 * @param open opens a new account with this balance, and nothing held. Called at least once for each case; cases may
 * run concurrently. The balance is below 2^54.
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { type HoldSubject, holdConformance } from 'open-payments-server-testing'
 * import { test } from 'vitest'
 *
 * async function open(balance: bigint): Promise<HoldSubject> {
 *   const held = new Map<string, bigint>() // yours are in the database
 *   const ended = new Set<string>()
 *   return {
 *     walletAddress: 'https://wallet.example/alice',
 *     asset: { assetCode: 'USD', assetScale: 2 },
 *     async mayPay({ outgoingPaymentId, debitAmount, isPreview }) {
 *       const value = BigInt(debitAmount.value)
 *       const others = [...held].filter(([id]) => id !== outgoingPaymentId)
 *       const free = others.reduce((rest, [, each]) => rest - each, balance)
 *       const isOver = ended.has(outgoingPaymentId)
 *       if (value > free || isOver) return { ok: false, refusal: 'funds_insufficient' }
 *       if (!isPreview) held.set(outgoingPaymentId, value)
 *       return { ok: true }
 *     },
 *     async onEvent(event) {
 *       if (!/\.(?:completed|failed|declined)$/.test(event.type)) return
 *       if (!('outgoingPaymentId' in event)) return
 *       ended.add(event.outgoingPaymentId) // a call that comes late must hold nothing
 *       if (held.delete(event.outgoingPaymentId)) balance -= BigInt(event.sentAmount.value)
 *     },
 *     balance: () => balance,
 *     held: () => [...held.values()].reduce((sum, each) => sum + each, 0n),
 *   }
 * }
 *
 * for (const { name, run, timeoutMs } of holdConformance(open)) test(name, run, timeoutMs)
 * ```
 */
export function holdConformance(
  open: (balance: bigint) => HoldSubject | Promise<HoldSubject>,
  options: HoldOptions = {},
): readonly HoldCase[] {
  requireKnownOptions<HoldOptions>('', options, {
    reopen: true,
    wholePayments: true,
    searches: true,
    timeoutMs: true,
  })
  const { reopen, wholePayments = false, searches = 1, timeoutMs = 30_000 } = options
  if (typeof wholePayments !== 'boolean') {
    throw new InvalidInputError('wholePayments', 'must be a boolean')
  }
  for (const [name, value] of Object.entries({ open, ...(reopen !== undefined && { reopen }) })) {
    if (typeof value === 'function') continue
    throw new InvalidInputError(name, 'must be a function that opens an account')
  }
  for (const [name, value] of Object.entries({ searches, timeoutMs })) {
    if (Number.isSafeInteger(value) && value > 0) continue
    throw new InvalidInputError(name, 'must be a positive integer')
  }
  return holdCases
    .filter(({ processes }) => processes === undefined || reopen !== undefined)
    .map((definition) => {
      const { name, search = false } = definition
      const limitMs = timeoutMs * (search ? searches : 1)
      return {
        name: search ? `${name} (search)` : name,
        search,
        timeoutMs: limitMs + 1_000,
        run: () => runCase(definition, open, { reopen, wholePayments, searches, limitMs }),
      }
    })
}

interface Settings {
  readonly reopen: HoldOptions['reopen']
  readonly wholePayments: boolean
  readonly searches: number
  readonly limitMs: number
}

async function runCase(
  { check }: HoldCaseDefinition,
  open: Parameters<typeof holdConformance>[0],
  { reopen, wholePayments, searches, limitMs }: Settings,
): Promise<void> {
  const closing: (() => Promise<void>)[] = []
  function opened(subject: HoldSubject) {
    const account = testAccount(subject)
    closing.push(account.close)
    return account
  }
  async function openSubject(balance = 1_000n) {
    const subject = await open(balance)
    const account = opened(subject)
    await account.has({ balance, held: 0n }, `after open(${balance}n)`)
    return { subject, account }
  }
  const trial: HoldTrial = {
    sendsParts: !wholePayments,
    open: async (balance) => (await openSubject(balance)).account,
    async openTwice() {
      demand(reopen !== undefined, 'the case needs the option reopen')
      const { subject, account } = await openSubject()
      return [account, opened(await reopen(subject.walletAddress))]
    },
    async search(round) {
      for (let left = rounds * searches; left > 0; left--) await round()
    },
  }
  try {
    await within(limitMs, stuck, check(trial))
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

const stuck =
  'did not finish; calls that wait for each other must lock the account before its holds, and each needs a free connection'
