import { type Custodian, custodianAt } from '../../examples/custodian/custodian.js'
import { custodianSettlements, type Settlements } from '../../examples/custodian/settlements.js'
import {
  type Books,
  createAccounts,
  type Entry,
} from '../../examples/custodian/stand-in/accounts.js'
import { custodianApi } from '../../examples/custodian/stand-in/api.js'
import { carry, type Fate } from '../../examples/custodian/stand-in/faults.js'
import type { EventHandler, OutgoingPaymentView, ResourceServices, Store } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  usd,
  withKey,
} from '../support/spending.js'
import { idOfPayment } from '../support/spending-client.js'
import { alice, bob } from '../support/world.js'

export interface RequestFate {
  readonly fate: Fate
  readonly status: number
  readonly lateMs: number
}

/** What happens to a wallet and its custodian. All that fails heals in the end. */
export interface CustodyHistory {
  /** Of the first requests to the custodian, in their order. */
  readonly fates: readonly RequestFate[]
  /** How many of the first questions fail. */
  readonly unreadable: number
  /** At which steps the wallet's process is killed: calls of the library, the store and the custodian. */
  readonly kills: readonly { readonly step: number; readonly after: boolean }[]
  /** After which requests the custodian is started again from its journal. */
  readonly restarts: readonly number[]
  readonly payments: readonly { readonly value: number; readonly reviewMs: number }[]
  readonly arrivals: readonly {
    readonly value: number
    readonly to: 'open' | 'completed' | 'unknown'
    /** The custodian's id. Default: `transfer-` with the index. */
    readonly transferId?: string
  }[]
  /** How much time passes between two looks. */
  readonly paceMs: number
}

export const healthy: CustodyHistory = {
  fates: [],
  unreadable: 0,
  kills: [],
  restarts: [],
  payments: [],
  arrivals: [],
  paceMs: 20_000,
}

/** A change of the wallet's code, for a mistake. */
export interface Mistake {
  readonly custodian?: (custodian: Custodian, fetch: typeof globalThis.fetch) => Custodian
  readonly handle?: (settlements: Settlements, custodian: Custodian) => EventHandler
  readonly arrived?: (settlements: Settlements) => Settlements['arrived']
}

export class CustodyError extends Error {}

const balance = 10_000n
const roundsMax = 200

/** Runs a history, and throws a `CustodyError` if money is lost, made, repeated, not listed, or held at the end. */
export async function runCustody(
  history: CustodyHistory,
  { store, mistake = {} }: { readonly store?: Store; readonly mistake?: Mistake } = {},
) {
  const clock = manualClock()
  const world = createSpendingWorld({ clock, ...(store !== undefined && { store }) })
  const counts = { calls: 0, lost: 0, failed: 0, killed: 0 }
  const reviews = new Map<string, number>()
  const journal: Entry[] = []
  const open = () =>
    createAccounts({
      journal: [...journal],
      append: (entry) => void journal.push(entry),
      reviewMs: (key) => reviews.get(key) ?? 0,
    })
  const now = () => clock.now()
  const other = { accounts: open() }
  other.accounts.open(alice, balance)
  other.accounts.open(bob, 0n)
  const handleAtCustodian = (request: Request) => custodianApi(other.accounts, now)(request)

  const late: { readonly at: number; readonly work: () => Promise<unknown> }[] = []
  const state = { fates: [...history.fates], unreadable: history.unreadable, steps: 0, requests: 0 }
  const kills = [...history.kills]

  /** The link: loses requests and replies, and answers in between. */
  async function carried(request: Request): Promise<Response> {
    counts.calls += 1
    const isRead = request.method === 'GET'
    if (isRead && state.unreadable > 0) {
      state.unreadable -= 1
      counts.lost += 1
      throw new TypeError('no connection')
    }
    const arrives: RequestFate = { fate: 'arrives', status: 200, lateMs: 0 }
    const fate = isRead ? arrives : (state.fates.shift() ?? arrives)
    if (fate.fate !== 'arrives') counts.lost += 1
    const later = (work: () => Promise<unknown>) =>
      void late.push({ at: clock.now() + fate.lateMs, work })
    const response = await carry(handleAtCustodian, request, fate, later)
    if (history.restarts.includes(state.requests++)) other.accounts = open()
    if (response === undefined) throw new TypeError('no reply')
    return response
  }

  /** A process of the wallet, until it is killed. */
  function startProcess() {
    const life = { isDead: false }
    const alive = () => {
      if (life.isDead) throw new Error('the process was killed')
    }
    async function step<Result>(work: () => Promise<Result>): Promise<Result> {
      alive()
      const at = state.steps++
      const index = kills.findIndex((each) => each.step === at)
      const [kill] = index < 0 ? [] : kills.splice(index, 1)
      if (kill !== undefined) counts.killed += 1
      if (kill?.after === false) life.isDead = true
      alive()
      const result = await work()
      if (kill !== undefined) life.isDead = true
      alive()
      return result
    }
    const stepping = <Service extends object>(service: Service): Service =>
      new Proxy(service, {
        get(target, name, receiver) {
          const value = Reflect.get(target, name, receiver)
          if (typeof value !== 'function') return value
          return (...given: unknown[]) => step(async () => value.apply(target, given))
        },
      })
    const fetch = ((url: string, init?: RequestInit) =>
      step(() => carried(new Request(url, init)))) as typeof globalThis.fetch
    const plain = custodianAt('https://custodian.example', fetch)
    const custodian = mistake.custodian?.(plain, fetch) ?? plain
    const { incomingPayments, outgoingPayments } = world.resources
    const settlements = custodianSettlements({
      resources: {
        incomingPayments: stepping(incomingPayments),
        outgoingPayments: stepping(outgoingPayments),
      } as ResourceServices,
      custodian,
      store: { ...world.store, commit: (commit) => step(() => world.store.commit(commit)) },
      clock,
      onError: () => undefined,
    })
    return {
      life,
      settlements,
      handle: mistake.handle?.(settlements, custodian) ?? settlements.handle,
      arrived: mistake.arrived?.(settlements) ?? settlements.arrived,
    }
  }

  const process = { now: startProcess() }
  const revived = () => {
    if (process.now.life.isDead) process.now = startProcess()
    return process.now
  }

  const client = world.client()
  const all = history.payments.reduce((sum, { value }) => sum + value, 0)
  const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(all + 1) })])
  const payments: string[] = []
  for (const [index, { value, reviewMs }] of history.payments.entries()) {
    const id = idOfPayment(await pay(client, token, value, {}, withKey(`payment-${index}`)))
    reviews.set(id, reviewMs)
    payments.push(id)
  }
  const { incomingPayments } = world.resources
  const counted: string[] = []
  const transferOf = (index: number) => history.arrivals[index]?.transferId ?? `transfer-${index}`
  for (const [index, { value, to }] of history.arrivals.entries()) {
    const created = await incomingPayments.create({
      walletAddress: bob,
      idempotencyKey: `${index}`,
    })
    if (!created.ok) throw new Error(created.reason)
    const { paymentId } = created.payment
    counted.push(paymentId)
    if (to === 'completed') await incomingPayments.complete(paymentId)
    const payment = to === 'unknown' ? `${paymentId.slice(0, -1)}x` : paymentId
    other.accounts.arrive({ transferId: transferOf(index), payment, value: `${value}` })
  }

  /** The custodian tells what has happened, and does not see the first acknowledgement. */
  async function notify(): Promise<void> {
    for (const notice of other.accounts.notices(now())) {
      for (const isSeen of [false, true]) {
        const { settlements, arrived } = revived()
        try {
          const postponed =
            notice.type === 'hold'
              ? await settlements.pay(notice.key).then(() => undefined)
              : await arrived(notice.transferId, notice.payment, notice.value)
          if (isSeen && postponed === undefined) other.accounts.notified(notice.id)
        } catch {
          // It tells again.
        }
      }
    }
  }

  async function passTime(ms: number): Promise<void> {
    const until = clock.now() + ms
    for (const each of late.splice(0).sort((a, b) => a.at - b.at)) {
      if (each.at > until) late.push(each)
      else {
        if (each.at > clock.now()) clock.set(each.at)
        await each.work()
      }
    }
    clock.set(until)
  }

  const viewOf = async (id: string) =>
    (await world.resources.outgoingPayments.get(id)) as OutgoingPaymentView
  const listed = async () => {
    const sums = new Map<string, bigint>()
    for (const driver of Object.values(revived().settlements.drivers)) {
      for await (const { id, totals, doubts } of driver.inDoubt()) {
        if (doubts.some(({ since }) => since > now())) throw new CustodyError('a doubt has no age')
        sums.set(id, (sums.get(id) ?? 0n) + totals.inDoubt)
      }
    }
    return sums
  }
  const law = (holds: boolean, problem: string) => {
    if (!holds) throw new CustodyError(problem)
  }
  const paidFor = ({ payouts }: Books, id: string) => payouts.filter(({ hold }) => hold === id)
  const sumOf = (values: readonly { readonly value: string }[]) =>
    values.reduce((sum, { value }) => sum + BigInt(value), 0n)

  /** At all times: nothing is repeated, and what the two books differ by is listed. */
  async function checkNow(): Promise<void> {
    const books = other.accounts.books()
    const doubts = await listed()
    for (const id of payments) {
      const paid = paidFor(books, id)
      law(paid.length <= 1, `${id} was paid ${paid.length} times`)
      const { sentAmount } = await viewOf(id)
      const differs = sumOf(paid) - BigInt(sentAmount.value)
      const most = doubts.get(id) ?? 0n
      law(differs <= most && -differs <= most, `${id} differs by ${differs}, and ${most} is listed`)
    }
    for (const [index, { value, to }] of history.arrivals.entries()) {
      const back = sumOf(books.payouts.filter((payout) => payout.to === transferOf(index)))
      const most = to === 'open' ? 0n : BigInt(value)
      law(back <= most, `${back} of ${value} went back to ${to}`)
    }
    const received = await sumReceived()
    const credited = BigInt(books.balances[bob] ?? 0)
    law(credited <= received, `${credited} was credited of ${received}`)
  }

  async function sumReceived(): Promise<bigint> {
    const views = await Promise.all(counted.map((id) => incomingPayments.get(id)))
    return sumOf(views.map((view) => ({ value: view?.receivedAmount.value ?? '0' })))
  }

  async function isOver(): Promise<boolean> {
    const { waiting } = await world.resources.events.backlog()
    const isQuiet = waiting === 0 && other.accounts.notices(now()).length === 0
    return isQuiet && late.length === 0 && (await listed()).size === 0
  }

  for (let round = 0; ; round++) {
    law(round < roundsMax, 'it does not end')
    await notify()
    const { handle } = revived()
    counts.failed += (await world.resources.events.drain(handle, { limit: 200 })).failed
    await world.resources.sweep()
    await checkNow()
    if (await isOver()) break
    await passTime(round < 20 ? history.paceMs : 900_000)
  }

  // At the end, both books are equal, and nothing is held.
  const books = other.accounts.books()
  const { setAside } = await world.resources.events.backlog()
  law(setAside === 0, `${setAside} events were set aside`)
  law(books.held === '0' && books.waiting === 0, `${books.held} is held at the end`)
  const views = await Promise.all(payments.map(viewOf))
  const sent = sumOf(views.map(({ sentAmount }) => sentAmount))
  law(BigInt(books.balances[alice] ?? 0) === balance - sent, 'the payer has another balance')
  const received = await sumReceived()
  law(books.balances[bob] === `${received}`, `${books.balances[bob]} was credited of ${received}`)
  law(books.balances['arrivals'] === '0', `${books.balances['arrivals']} was not passed on`)
  for (const { status, sentAmount, debitAmount, inDoubt, refundedAmount } of views) {
    law(inDoubt === undefined, 'a payment is in doubt')
    const whole = sentAmount.value === debitAmount.value
    // What was in doubt at the end may have arrived in full.
    const isRight = whole === (status === 'completed') || refundedAmount?.value === '0'
    law(isRight, `a payment has ${status} with ${sentAmount.value}`)
  }
  const isLong = history.payments.some(({ reviewMs }) => reviewMs >= 86_400_000)
  const mayFail =
    isLong || BigInt(all) > balance || history.unreadable > 8 || history.fates.length > 8
  const failed = views.filter(({ status }) => status !== 'completed')
  law(mayFail || failed.length === 0, `${failed.length} payments failed`)
  law(history.kills.length > 0 || counts.failed === 0, `${counts.failed} deliveries failed`)
  return {
    ...counts,
    transfers: books.payouts.length + Object.keys(books.credits).length,
    failures: failed.length,
  }
}
