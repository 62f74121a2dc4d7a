import type { Instant } from '../../src/core/decision.js'
import type { AccessItem, Amount } from '../../src/index.js'
import type { PaymentAnswer, SpendingAnswer, SpendingWallet } from '../../src/testing/index.js'
import { asidePlayer } from './aside-player.js'
import type { Aside, Form } from './asides.js'
import { comparedWallet, type Sent } from './compared-wallet.js'
import type { Asked, HostAnswer, PlayedWallet } from './played-wallet.js'
import { eur, euroReceiver, usd } from './spending.js'
import type { Line, Sums } from './spending-book.js'
import { spendingPolicy } from './spending-services.js'
import { bob } from './world.js'

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
  const compared = comparedWallet(wallet, met)
  const { clock, book, grants, quotes, tokens, clientOf, send } = compared
  const { take, payByQuote, isOfBob } = asidePlayer(compared)
  /** The ids of quotes, by the keys of the requests that they are for. */
  const quoted = new Map<string, string>()
  const requested = new Set<string>()
  let steps = 0
  let last: Promise<unknown> = Promise.resolve()

  /** Waits for earlier calls: the book takes one request at a time. */
  function alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const running = last.then(work)
    last = running.catch(() => undefined)
    return running
  }

  /** The same price, named by another amount where that is possible. */
  function inAnotherForm(asked: Asked & { readonly debitAmount: Amount }): Asked {
    const { debitAmount, ...rest } = asked
    const form: Form = (['debit', 'receive', 'neither'] as const)[quotes.length % 3] ?? 'debit'
    const [amount, per] = asked.receiver === euroReceiver ? [eur, 2n] : [usd, 1n]
    const debit = BigInt(debitAmount.value)
    if (form === 'neither' && debit === 1_000n) return rest
    if (form !== 'receive' || debit % per !== 0n) return asked
    return { ...rest, receiveAmount: amount(debit / per) }
  }

  /** Makes an attempt with an expired token, and then rotates it. */
  async function renew(grant: number, attempt: () => Promise<unknown>): Promise<void> {
    if (compared.isGood(grant) || !compared.lives(grant)) return
    await attempt()
    await compared.rotate(grant)
  }

  async function pay(request: Parameters<SpendingWallet['pay']>[0]): Promise<PaymentAnswer> {
    const { key, by, walletAddress, receiver, debitAmount } = request
    const grant = Number(request.grant)
    const client = clientOf(grant)
    const repeats = requested.has(key)
    requested.add(key)
    let asked: Sent
    if (by === 'direct') {
      asked = { client, key, request: { walletAddress, incomingPayment: receiver, debitAmount } }
    } else {
      const price = inAnotherForm({ walletAddress, receiver, debitAmount })
      const quoteId = quoted.get(key) ?? (await compared.quote(grant, price)) ?? 'unknown'
      quoted.set(key, quoteId)
      asked = { client, request: { walletAddress, quoteId } }
    }
    const kind = by === 'direct' ? 'pay with a key' : 'pay by a quote'
    const what = repeats ? 'repeat' : kind
    await renew(grant, () => send(what, grant, asked))
    const answer = await send(what, grant, asked)
    if ('refusal' in answer) return { accepted: false, reason: answer.refusal }
    const { debitAmount: debited, receiveAmount: received } = answer.spent ?? {}
    return {
      accepted: true,
      id: answer.id,
      ...(debited && { spentDebitAmount: debited }),
      ...(received && { spentReceiveAmount: received }),
    }
  }

  /** A report of the history on a payment, by its id. */
  function report(id: string, run: (line: Line) => Promise<HostAnswer>): Promise<SpendingAnswer> {
    return alone(async () => {
      const line = book.find(id)
      if (line === undefined) throw new Error(`the book has no payment ${id}`)
      const { ok, refusal = '' } = await run(line)
      return ok ? { accepted: true } : { accepted: false, reason: refusal }
    })
  }

  /** Stops where a quote or a token expires, and sends requests just before and after. */
  async function passTo(now: Instant): Promise<void> {
    const quote = quotes.findLast(({ walletAddress }) => walletAddress === bob)
    const expiries = [...(quote ? [quote.expiresAt] : []), ...tokens.map((each) => each.expiresAt)]
    const edges = expiries.flatMap((expiresAt) => [expiresAt - 1, expiresAt])
    for (const edge of edges.toSorted((a, b) => a - b)) {
      if (edge <= clock.now() || edge >= now) continue
      clock.set(edge)
      const grant = quote?.grant ?? 0
      if (quote !== undefined) await payByQuote({ quote: quotes.indexOf(quote), grant })
      await compared.checkTotals(grant)
    }
    clock.set(now)
    // More often than the history does, so that records are removed, unless that moves money of Alice.
    const holdEnds = ({ createdAt }: Line) => createdAt + spendingPolicy.payments.holdMs
    const due = book.lines.filter((line) => line.state === 'created' && holdEnds(line) <= now)
    if (grants.length > 0 && !due.some((line) => !isOfBob(line))) await compared.lapseAndPurge()
  }

  return {
    grant: (_, granted) =>
      alone(async () => {
        const number = grants.length
        const client = number % 3 === 2 ? 'cafe' : 'shop'
        return String(await compared.grant(client, withBob(granted, number)))
      }),
    pay: (request) => alone(() => pay(request)),
    begin: (id) => report(id, compared.begin),
    cancel: (id) => report(id, compared.cancel),
    settle: (id, { sentAmount, deliveredAmount, final }) =>
      report(id, (line) => compared.settle(line, sumsOf(sentAmount, deliveredAmount), final)),
    fail: (id, { sentAmount, deliveredAmount }) =>
      report(id, (line) => compared.fail(line, sumsOf(sentAmount, deliveredAmount))),
    lapse: () => alone(compared.lapseAndPurge),
    rotate: (name) => alone(async () => ({ accepted: await compared.rotate(Number(name)) })),
    revoke: (name) => alone(() => compared.revoke(Number(name))),
    setClock: (now) => alone(() => passTo(now)),
    problem: () =>
      alone(async () => {
        compared.checkBudgets()
        const aside = asides[steps++]
        if (aside !== undefined) await take(aside)
        compared.checkBudgets()
        // Every third time only, since this is the slowest of the checks.
        if (steps % 3 === 0) await compared.checkTotals(steps % grants.length)
        return undefined
      }),
  }
}

const sumsOf = (sent: Amount, delivered: Amount): Sums => ({
  sent: BigInt(sent.value),
  delivered: BigInt(delivered.value),
})
