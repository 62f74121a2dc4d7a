import type { Instant } from '../../src/core/instant.js'
import type { AccessItem, Amount } from '../../src/index.js'
import {
  defaultScene,
  type PaymentAnswer,
  type SpendingAnswer,
  type SpendingScene,
  type SpendingWallet,
} from '../../src/testing/index.js'
import { isOfBob, payByQuote, takeAside } from './aside-player.js'
import type { Aside, Form } from './asides.js'
import {
  begin,
  cancel,
  checkBudgets,
  checkTotals,
  fail,
  reportSent,
  revoke,
  rotate,
  sweep,
} from './compared/host.js'
import { quote, send } from './compared/pay.js'
import {
  type Comparison,
  clientOf,
  grant,
  isGood,
  lives,
  newComparison,
  type Sent,
} from './compared/state.js'
import type { Asked, HostAnswer, PlayedWallet } from './played-wallet.js'
import { eur, euroReceiver, usd } from './spending.js'
import type { Line, Sums } from './spending-book.js'
import { spendingPolicy } from './spending-services.js'
import { bob } from './world.js'

const { otherWalletAddress: _, ...ofAlice } = defaultScene

/** The scene of the histories that `bookedWallet` plays: its other account is Bob's, which only asides use. */
export const bookedScene: SpendingScene = ofAlice

/** Items for Bob's account, which the histories do not contain: each grant gets one of them, or none. */
const itemsOfBob: readonly (AccessItem['limits'] | 'none')[] = [
  { debitAmount: usd(100) },
  'none',
  { receiveAmount: eur(60), receiver: euroReceiver },
  {},
  { debitAmount: usd(2n ** 64n - 1n) },
]

function withBob(access: readonly AccessItem[], grant: number): readonly AccessItem[] {
  const limits = itemsOfBob[grant % itemsOfBob.length]
  if (limits === 'none' || limits === undefined) return access
  const item = { type: 'outgoing-payment', actions: ['create', 'read'], identifier: bob } as const
  return [...access, { ...item, limits }]
}

interface State extends Comparison {
  /** The ids of quotes, by the keys of the requests that they are for. */
  readonly quoted: Map<string, string>
  /** The keys of the requests so far. */
  readonly requested: Set<string>
}

type Alone = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * A wallet for histories of the testing kit that is compared with a book. After each step of the history it sends
 * an aside.
 *
 * @param met counts the responses, by kind of request.
 */
export function bookedWallet(
  wallet: PlayedWallet,
  asides: readonly Aside[],
  met: Map<string, number> = new Map(),
): SpendingWallet {
  const state: State = {
    ...newComparison(wallet, met),
    quoted: new Map(),
    requested: new Set(),
  }
  const alone = oneAtATime()
  let steps = 0
  return {
    grant: (_, granted) => alone(() => grantWithBob(state, granted)),
    pay: (request) => alone(() => pay(state, request)),
    ...reports(state, alone),
    lapse: () => alone(() => sweep(state)),
    rotate: (name) => alone(async () => ({ accepted: await rotate(state, Number(name)) })),
    revoke: (name) => alone(() => revoke(state, Number(name))),
    setClock: (now) => alone(() => passTo(state, now)),
    problem: () => alone(() => check(state, steps++, asides)),
  }
}

/** Makes calls wait for earlier ones: the book takes one request at a time. */
function oneAtATime(): Alone {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const running = last.then(work)
    last = running.catch(() => undefined)
    return running
  }
}

async function grantWithBob(state: State, granted: readonly AccessItem[]): Promise<string> {
  const number = state.grants.length
  const client = number % 3 === 2 ? 'cafe' : 'shop'
  return String(await grant(state, client, withBob(granted, number)))
}

async function pay(
  state: State,
  request: Parameters<SpendingWallet['pay']>[0],
): Promise<PaymentAnswer> {
  const { key, by } = request
  const number = Number(request.grant)
  const repeats = state.requested.has(key)
  state.requested.add(key)
  const asked = await sentFor(state, number, request)
  const kind = by === 'direct' ? 'pay with a key' : 'pay by a quote'
  const what = repeats ? 'repeat' : kind
  if (!isGood(state, number) && lives(state, number)) {
    // Makes an attempt with the expired token, and then rotates it.
    await send(state, what, number, asked)
    await rotate(state, number)
  }
  const answer = await send(state, what, number, asked)
  if (!answer.ok) return { accepted: false, reason: answer.refusal }
  const { id, spent } = answer.value
  // The judge of the history does not know the payments of asides, which count in the totals of the grant.
  const hasAsides = state.book.lines.some(
    (line) => line.place.grant === number && isOfBob(state, line),
  )
  const { debitAmount: debited, receiveAmount: received } = (!hasAsides && spent) || {}
  return {
    accepted: true,
    id,
    ...(debited && { spentDebitAmount: debited }),
    ...(received && { spentReceiveAmount: received }),
  }
}

/** Returns the request of the history, for which it requests a quote if necessary. */
async function sentFor(
  state: State,
  number: number,
  { key, by, walletAddress, receiver, debitAmount }: Parameters<SpendingWallet['pay']>[0],
): Promise<Sent> {
  const client = clientOf(state, number)
  if (by === 'direct') {
    return { client, key, request: { walletAddress, incomingPayment: receiver, debitAmount } }
  }
  const price = inAnotherForm(state, { walletAddress, receiver, debitAmount })
  const quoteId = state.quoted.get(key) ?? (await quote(state, number, price)) ?? 'unknown'
  state.quoted.set(key, quoteId)
  return { client, request: { walletAddress, quoteId } }
}

/** The same price, named by another amount where that is possible. */
function inAnotherForm({ quotes }: State, asked: Asked & { readonly debitAmount: Amount }): Asked {
  const { debitAmount, ...rest } = asked
  const form: Form = (['debit', 'receive', 'neither'] as const)[quotes.length % 3] ?? 'debit'
  const [amount, per] = asked.receiver === euroReceiver ? [eur, 2n] : [usd, 1n]
  const debit = BigInt(debitAmount.value)
  if (form === 'neither' && debit === 1_000n) return rest
  if (form !== 'receive' || debit % per !== 0n) return asked
  return { ...rest, receiveAmount: amount(debit / per) }
}

/** The reports of the history on payments, by their ids. */
function reports(state: State, alone: Alone) {
  const report = (id: string, run: (line: Line) => Promise<HostAnswer>) =>
    alone(async (): Promise<SpendingAnswer> => {
      const line = state.book.find(id)
      if (line === undefined) throw new Error(`the book has no payment ${id}`)
      const answer = await run(line)
      return answer.ok ? { accepted: true } : { accepted: false, reason: answer.refusal }
    })
  return {
    begin: (id) => report(id, (line) => begin(state, line)),
    cancel: (id) => report(id, (line) => cancel(state, line)),
    reportSent: (id, { sentAmount, deliveredAmount, final }) =>
      report(id, (line) => reportSent(state, line, sumsOf(sentAmount, deliveredAmount), final)),
    fail: (id, { sentAmount, deliveredAmount }) =>
      report(id, (line) => fail(state, line, sumsOf(sentAmount, deliveredAmount))),
  } satisfies Partial<SpendingWallet>
}

const sumsOf = (sent: Amount, delivered: Amount): Sums => ({
  sent: BigInt(sent.value),
  delivered: BigInt(delivered.value),
})

/** Stops where a quote or a token expires, and sends requests just before and after. */
async function passTo(state: State, now: Instant): Promise<void> {
  const { book, grants, quotes, tokens } = state
  const { clock } = state.wallet
  const last = quotes.findLast(({ walletAddress }) => walletAddress === bob)
  const expiries = [...(last ? [last.expiresAt] : []), ...tokens.map((each) => each.expiresAt)]
  const edges = expiries.flatMap((expiresAt) => [expiresAt - 1, expiresAt])
  for (const edge of edges.toSorted((a, b) => a - b)) {
    if (edge <= clock.now() || edge >= now) continue
    clock.set(edge)
    const number = last?.grant ?? 0
    if (last !== undefined) {
      await payByQuote(state, { quote: quotes.indexOf(last), grant: number })
    }
    await checkTotals(state, number)
  }
  clock.set(now)
  // More often than the history does, so that records are removed, unless that moves money of Alice.
  const holdEnds = ({ createdAt }: Line) => createdAt + spendingPolicy.payments.holdMs
  const due = book.lines.filter((line) => line.state === 'created' && holdEnds(line) <= now)
  const isOnlyBobs = due.every((line) => isOfBob(state, line))
  if (grants.length > 0 && isOnlyBobs) await sweep(state)
}

async function check(state: State, step: number, asides: readonly Aside[]): Promise<undefined> {
  checkBudgets(state)
  const aside = asides[step]
  if (aside !== undefined) await takeAside(state, aside)
  checkBudgets(state)
  // Every third time only, since this is the slowest of the checks.
  if ((step + 1) % 3 === 0) await checkTotals(state, (step + 1) % state.grants.length)
}
