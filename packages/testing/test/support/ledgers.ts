import { setImmediate } from 'node:timers/promises'
import type { RequestedPayment } from 'open-payments-server'
import type { HoldSubject } from '../../src/index.js'

type Event = Parameters<HoldSubject['onEvent']>[0] & { readonly type: `outgoing-payment.${string}` }

/** The money of one account. Concurrent calls read it before any of them writes. */
interface Money {
  readonly walletAddress: string
  balance: bigint
  readonly holds: { readonly id: string; readonly amount: bigint; isReleased?: true }[]
  /** The payments that were debited. */
  readonly debited: Set<string>
  /** The payments that have ended. */
  readonly ended: Set<string>
  /** The calls that wait for the lock of the account. */
  last: Promise<unknown>
}

/** The steps of a ledger. A wrong ledger replaces one. */
interface Steps {
  /** Runs work alone. */
  alone<Result>(money: Money, work: () => Promise<Result>): Promise<Result>
  /** Whether the account covers an amount for a payment. */
  covers(money: Money, id: string, amount: bigint): boolean
  amountOf(payment: RequestedPayment): bigint
  /** Whether nothing is to be held. */
  isPreview(payment: RequestedPayment): boolean
  hold(money: Money, id: string, amount: bigint): void
  refuse(money: Money, id: string, amount: bigint): void
  /** Whether a payment has ended, so that nothing is to be held. */
  hasEnded(money: Money, id: string): boolean
  /** Whether an event ends a payment. */
  isEnd(event: Event): boolean
  release(money: Money, event: Event): void
  debit(money: Money, event: Event): void
}

const ends = ['completed', 'failed', 'declined'].map((end) => `outgoing-payment.${end}`)

function heldIn({ holds }: Money, exceptFor?: string): bigint {
  return holds
    .filter(({ id, isReleased }) => id !== exceptFor && !isReleased)
    .reduce((sum, { amount }) => sum + amount, 0n)
}

function remove({ holds }: Money, id: string): void {
  const index = holds.findIndex((hold) => hold.id === id)
  if (index >= 0) holds.splice(index, 1)
}

const right: Steps = {
  alone(money, work) {
    const result = money.last.then(work)
    money.last = result.catch(() => undefined)
    return result
  },
  covers: (money, id, amount) => amount <= money.balance - heldIn(money, id),
  amountOf: ({ debitAmount }) => BigInt(debitAmount.value),
  isPreview: (payment) => payment.isPreview === true,
  hold(money, id, amount) {
    remove(money, id)
    money.holds.push({ id, amount })
  },
  refuse: () => undefined,
  hasEnded: ({ ended }, id) => ended.has(id),
  isEnd: ({ type }) => ends.includes(type),
  release: (money, { outgoingPaymentId }) => remove(money, outgoingPaymentId),
  debit(money, { outgoingPaymentId, sentAmount }) {
    if (money.debited.has(outgoingPaymentId)) return
    money.debited.add(outgoingPaymentId)
    money.balance -= BigInt(sentAmount.value)
  },
}

let accounts = 0

/** Opens accounts of a ledger. All of them are in one database. A settlement of `whole` payments ignores parts. */
export function ledger(
  replaced: Partial<Steps> = {},
  debitsAt: 'event' | 'settlement' | 'whole' = 'event',
) {
  const database = new Map<string, Money>()
  const steps = { ...right, ...replaced }
  const open = (balance: bigint) => {
    const walletAddress = `https://wallet.example/${++accounts}`
    const last = Promise.resolve()
    const [debited, ended] = [new Set<string>(), new Set<string>()]
    const money = { walletAddress, balance, holds: [], debited, ended, last }
    database.set(walletAddress, money)
    return subjectOf(money)
  }
  function subjectOf(money: Money): HoldSubject {
    return {
      walletAddress: money.walletAddress,
      asset: { assetCode: 'EUR', assetScale: 2 },
      mayPay: (payment) =>
        steps.alone(money, async () => {
          const { outgoingPaymentId: id } = payment
          const amount = steps.amountOf(payment)
          const isCovered = steps.covers(money, id, amount)
          await setImmediate()
          if (steps.hasEnded(money, id)) return { ok: false, refusal: 'payment_not_allowed' }
          if (!steps.isPreview(payment)) steps[isCovered ? 'hold' : 'refuse'](money, id, amount)
          return isCovered ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
        }),
      onEvent: (event) =>
        steps.alone(money, async () => {
          if (!('outgoingPaymentId' in event) || !steps.isEnd(event)) return
          if (debitsAt === 'event') steps.debit(money, event)
          steps.release(money, event)
          money.ended.add(event.outgoingPaymentId)
        }),
      ...(debitsAt !== 'event' && {
        settle: (event) =>
          steps.alone(money, async () => {
            const whole = event.type === 'outgoing-payment.completed' ? event.debitAmount.value : 0
            money.balance -= BigInt(debitsAt === 'whole' ? whole : event.sentAmount.value)
            remove(money, event.outgoingPaymentId)
          }),
      }),
      balance: () => money.balance,
      held: () => heldIn(money),
    }
  }
  const reopen = (walletAddress: string) => {
    const money = database.get(walletAddress)
    if (money === undefined) throw new Error(`no account ${walletAddress}`)
    return subjectOf(money)
  }
  return { open, reopen }
}

/** Converts money as a ledger does that calculates with floating-point numbers. */
const rounded = (value: bigint) => BigInt(Number(value))

/** The wrong ledgers, each with parts of the names of the cases that must find it. Other cases may find it too. */
export const wrongLedgers: Readonly<
  Record<string, readonly [() => ReturnType<typeof ledger>, ...string[]]>
> = {
  'holds without a lock': [
    () => ledger({ alone: (_, work) => work() }),
    'of several payments at once',
    'of payments of two processes at once',
  ],
  'holds under a lock of one process': [lockingInProcess, 'of payments of two processes at once'],
  'a hold for each call': [
    () => ledger({ hold: ({ holds }, id, amount) => void holds.push({ id, amount }) }),
    'asked about again is held once',
    'several calls ask about at once',
    'another process asks about again',
  ],
  'a repeat that is refused because of its own hold': [
    () => ledger({ covers: (money, _, amount) => amount <= money.balance - heldIn(money) }),
    'asked about again is held once',
  ],
  'a refused payment that stays held': [
    () => ledger({ refuse: right.hold }),
    'a payment that is refused holds nothing',
    'not one unit more',
  ],
  'holds for previews': [() => ledger({ isPreview: () => false }), 'a preview holds nothing'],
  'previews that are allowed unseen': [allowingPreviews, 'a preview counts what is held'],
  'the amount that arrives is held': [
    () => ledger({ amountOf: ({ receiveAmount }) => BigInt(receiveAmount.value) }),
    'held by the amount that it debits',
  ],
  'an account that must have more than the amount': [
    () => ledger({ covers: (money, id, amount) => amount < money.balance - heldIn(money, id) }),
    'the whole balance can be held',
  ],
  'one unit too much': [
    () =>
      ledger({ covers: (money, id, amount) => amount <= money.balance - heldIn(money, id) + 1n }),
    'not one unit more',
  ],
  'floating-point numbers': [
    () =>
      ledger({
        covers: (money, id, amount) =>
          Number(amount) <= Number(money.balance) - Number(heldIn(money, id)),
      }),
    'exact beyond 2^53',
  ],
  'debits in floating-point numbers': [
    () =>
      ledger({
        debit(money, event) {
          right.debit(money, event)
          money.balance = rounded(money.balance)
        },
      }),
    'exact beyond 2^53',
  ],
  'no check of earlier holds': [
    () => ledger({ covers: ({ balance }, _, amount) => amount <= balance }),
    'a payment that is refused holds nothing',
  ],
  'a released hold that still counts': [
    () =>
      ledger({
        covers: ({ balance, holds }, id, amount) => {
          const others = holds.filter((hold) => hold.id !== id)
          return amount <= others.reduce((left, hold) => left - hold.amount, balance)
        },
        release({ holds }, { outgoingPaymentId }) {
          for (const hold of holds) if (hold.id === outgoingPaymentId) hold.isReleased = true
        },
      }),
    'all can be spent again',
  ],
  'a sum of holds that each delivery lowers': [
    countingHolds,
    'a second delivery of completed',
    'a second delivery of failed',
    'a second delivery of declined',
    'the end of a payment that was refused',
    'for which nothing was ever held',
  ],
  'a debit for each delivery': [
    () =>
      ledger({
        debit(money, { sentAmount }) {
          money.balance -= BigInt(sentAmount.value)
        },
      }),
    'a second delivery of completed',
    'a second delivery of failed',
    'two deliveries of an end at once',
  ],
  'a debit of the whole amount': [
    () =>
      ledger({
        debit: (money, event) => right.debit(money, { ...event, sentAmount: event.debitAmount }),
      }),
    'that completes is debited by what was sent',
    'that fails is debited by what was sent',
  ],
  'a debit of what was delivered': [
    () =>
      ledger({
        debit: (money, event) =>
          right.debit(money, { ...event, sentAmount: event.deliveredAmount }),
      }),
    'that completes is debited by what was sent',
  ],
  'no debit of a failed payment': [
    () =>
      ledger({
        debit: (money, event) =>
          event.type === 'outgoing-payment.failed' ? undefined : right.debit(money, event),
      }),
    'that fails is debited by what was sent',
  ],
  'a refund of what was never debited': [
    () =>
      ledger({
        debit(money, event) {
          right.debit(money, event)
          if (event.type !== 'outgoing-payment.declined') return
          money.balance += BigInt(event.debitAmount.value)
        },
      }),
    'is declined releases its hold',
    'a second delivery of declined',
  ],
  'no release of declined payments': [
    () => ledger({ isEnd: ({ type }) => ends.slice(0, 2).includes(type) }),
    'is declined releases its hold',
  ],
  'no release of failed payments': [
    () => ledger({ isEnd: ({ type }) => !type.endsWith('failed') && ends.includes(type) }),
    'that fails before it is begun',
  ],
  'a release when the payment is begun': [
    () => ledger({ isEnd: ({ type }) => ends.includes(type) || type.endsWith('begun') }),
    'is held until it ends',
  ],
  'a release of the oldest hold': [
    () => ledger({ release: ({ holds }) => void holds.shift() }),
    'for which nothing was ever held',
    'a second delivery of declined',
  ],
  'an error if nothing is held': [
    () =>
      ledger({
        release(money, event) {
          const { length } = money.holds
          right.release(money, event)
          if (money.holds.length === length) throw new Error('no hold')
        },
      }),
    'for which nothing was ever held',
    'a second delivery of completed',
  ],
  'a hold after the end': [
    () => ledger({ hasEnded: () => false }),
    'an earlier call about it comes late',
    'whose end another one has handled',
  ],
  'holds of all accounts in one sum': [sharingHolds, 'do not touch another one'],
  'holds in the memory of the process': [
    holdingInMemory,
    'another process asks about again',
    'a process releases what another one has held',
  ],
}

/** Each process has locks of its own. */
function lockingInProcess() {
  const { open, reopen } = ledger({ alone: (_, work) => work() })
  const locked = (subject: HoldSubject): HoldSubject => {
    let last: Promise<unknown> = Promise.resolve()
    const alone = <Result>(work: () => Result | Promise<Result>): Promise<Result> => {
      const result = last.then(work)
      last = result
      return result
    }
    return {
      ...subject,
      mayPay: (...asked) => alone(() => subject.mayPay(...asked)),
      onEvent: (...delivered) => alone(() => subject.onEvent(...delivered)),
    }
  }
  return {
    open: (balance: bigint) => locked(open(balance)),
    reopen: (url: string) => locked(reopen(url)),
  }
}

/** The holds are one number, which an end lowers by the amount of its payment. */
function countingHolds() {
  return ledger({
    release({ holds }, { debitAmount }) {
      holds.push({ id: crypto.randomUUID(), amount: -BigInt(debitAmount.value) })
    },
  })
}

function allowingPreviews() {
  const { open, reopen } = ledger()
  const allowing = (subject: HoldSubject): HoldSubject => ({
    ...subject,
    mayPay: (payment, call) => (payment.isPreview ? { ok: true } : subject.mayPay(payment, call)),
  })
  return {
    open: (balance: bigint) => allowing(open(balance)),
    reopen: (url: string) => allowing(reopen(url)),
  }
}

function sharingHolds() {
  const all: Money[] = []
  const { open, ...others } = ledger({
    covers(money, id, amount) {
      if (!all.includes(money)) all.push(money)
      const held = all.reduce((sum, each) => sum + heldIn(each, id), 0n)
      return amount <= money.balance - held
    },
  })
  return { open, ...others }
}

function holdingInMemory() {
  const { open, reopen } = ledger()
  const process = (subject: HoldSubject): HoldSubject => {
    const own = ledger().open(0n)
    const available = { walletAddress: subject.walletAddress, balance: subject.balance }
    return { ...subject, ...available, ...own }
  }
  return { open, reopen: (walletAddress: string) => process(reopen(walletAddress)) }
}
