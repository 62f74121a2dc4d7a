import {
  createAuthorizationServer,
  createResourceServer,
  type EventHandler,
  type MayPay,
  memoryStore,
  type Pricing,
  type ResourceServer,
  type Store,
} from 'open-payments-server'
import type { Commit } from 'open-payments-server/adapter'
import type { OutgoingPayment } from 'open-payments-server/core'
import type {
  SpendingPorts,
  SpendingReport,
  SpendingScene,
  SpendingServers,
} from '../../src/index.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const url = 'https://wallet.example/alice'

/** A euro costs two dollars. */
export const pricing: Pricing = {
  async price({ debitAmount }) {
    if (debitAmount === undefined) return { ok: false, refusal: 'amount_missing' }
    const received = BigInt(debitAmount.value) / 2n
    if (received === 0n) return { ok: false, refusal: 'amount_too_small' }
    const receiveAmount = { value: `${received}`, assetCode: 'EUR', assetScale: 2 }
    return { ok: true, debitAmount, receiveAmount }
  },
}

export const hostScene: SpendingScene = {
  walletAddress: url,
  asset: usd,
  receivers: [
    {
      url: 'https://bank.example/incoming-payments/1',
      asset: { assetCode: 'EUR', assetScale: 2 },
      unitPrice: 2n,
    },
  ],
}

/** How long the servers hold a payment that is not begun: short, so that histories reach it often. */
export const holdMs = 3_600_000

/** Plausible mistakes in the code of a host around the servers. */
export const hostMistakes = [
  'a hold is released by the settlement and again by the event',
  'the ledger is written in another transaction than the report',
  'amounts are floating-point numbers',
  'the time of a hold is read as local time',
  'what was not sent is refunded by the settlement and again by the event',
  'a sweep releases the holds of payments that are being sent',
  'a hold that was released counts as held',
  'two payments under a grant share a hold',
  'a repeated report debits again',
  'each report debits all that was sent',
  'each report debits twice',
  'only the report of the end debits',
  'every call of mayPay holds the amount again',
] as const

export type HostMistake = (typeof hostMistakes)[number]

interface Hold {
  /** The payment that is held, or what the host takes for it. */
  readonly id: string
  readonly payment: string
  readonly amount: bigint
  readonly state: 'held' | 'released'
  readonly heldAt: number
}

/** An account of the host. */
interface Account {
  balance: bigint
  held: bigint
  readonly holds: Map<string, Hold>
}

const deposit = 10n ** 20n

/**
 * The database of a host: the library's records, and an account. Transactions run one after the other, and commit both
 * or neither.
 */
function createDatabase() {
  const records = memoryStore()
  let account: Account = { balance: deposit, held: 0n, holds: new Map() }
  let last: Promise<unknown> = Promise.resolve()

  async function attempt<Result extends { readonly ok: boolean }>(
    work: (account: Account, inside: Store) => Promise<Result>,
  ): Promise<Result> {
    for (;;) {
      const draft = { ...account, holds: new Map(account.holds) }
      let staged: Commit = { changes: [], guards: [] }
      const inside: Store = {
        ...records,
        async commit(commit) {
          staged = commit
          return true
        },
      }
      const result = await work(draft, inside)
      if (!result.ok) return result
      // Another commit was faster: all of it runs again, as after a serialization failure.
      if (staged.changes.length > 0 && !(await records.commit(staged))) continue
      account = draft
      return result
    }
  }

  return {
    records,
    account: (): Readonly<Account> => account,
    transaction<Result extends { readonly ok: boolean }>(
      work: (account: Account, inside: Store) => Promise<Result>,
    ): Promise<Result> {
      const result = last.then(() => attempt(work))
      last = result.catch(() => undefined)
      return result
    },
  }
}

/** The servers of a host with a ledger of its own, which may make a mistake. */
export function hostServers(
  { clock, clientKeys, failing }: SpendingPorts,
  mistake?: HostMistake,
): SpendingServers {
  const makes = (each: HostMistake) => each === mistake
  const { records, account, transaction } = createDatabase()
  const store = failing(records)
  /**
   * What each payment that was asked about has sent: the library removes its record a year after its end.
   */
  const asked = new Map<string, bigint | undefined>()
  const change = (work: (account: Account) => void) =>
    transaction(async (account) => {
      work(account)
      return { ok: true }
    })

  function add(account: Account, column: 'balance' | 'held', amount: bigint): void {
    const sum = account[column] + amount
    const isFloat = makes('amounts are floating-point numbers')
    account[column] = isFloat ? BigInt(Number(account[column]) + Number(amount)) : sum
  }

  function release(account: Account, id: string): void {
    const hold = account.holds.get(id)
    if (hold === undefined) return
    const isAgain = makes('a hold is released by the settlement and again by the event')
    if (hold.state === 'released' && !isAgain) return
    account.holds.set(id, { ...hold, state: 'released' })
    add(account, 'held', -hold.amount)
  }

  const idOf = (payment: { readonly outgoingPaymentId: string; readonly grantId?: string }) =>
    makes('two payments under a grant share a hold') && payment.grantId !== undefined
      ? payment.grantId
      : payment.outgoingPaymentId

  const mayPay: MayPay = async (requested) => {
    const { outgoingPaymentId: payment, debitAmount } = requested
    if (!asked.has(payment)) asked.set(payment, undefined)
    await change((account) => {
      const id = idOf(requested)
      const found = account.holds.get(id)
      const isHeld = found?.state === 'held' || makes('a hold that was released counts as held')
      const repeats = !makes('every call of mayPay holds the amount again')
      if (found !== undefined && isHeld && repeats) return
      const local = makes('the time of a hold is read as local time') ? 5 * 3_600_000 : 0
      const [amount, heldAt] = [BigInt(debitAmount.value), clock.now() - local]
      account.holds.set(id, { id, payment, amount, state: 'held', heldAt })
      add(account, 'held', amount)
    })
    return { ok: true }
  }

  const refunds = 'what was not sent is refunded by the settlement and again by the event'

  /** Makes a report, debits what it has added, and releases the hold of a payment that has ended. */
  async function report(make: SpendingReport) {
    const book = (account: Account, result: Awaited<ReturnType<SpendingReport>>) => {
      if (!result.ok) return result
      const { paymentId, sentAmount, debitAmount, grantId, endedAt } = result.payment
      const [whole, sent] = [BigInt(debitAmount.value), BigInt(sentAmount.value)]
      const asked = { outgoingPaymentId: paymentId, ...(grantId !== undefined && { grantId }) }
      if (makes('each report debits all that was sent')) add(account, 'balance', -sent)
      else if (makes('each report debits twice')) add(account, 'balance', -2n * result.debit)
      else if (makes('only the report of the end debits')) {
        if (endedAt !== undefined) add(account, 'balance', -result.debit)
      } else if (makes('a repeated report debits again') && !result.changed) {
        add(account, 'balance', -sent)
      } else if (makes(refunds) && endedAt !== undefined && result.changed) {
        add(account, 'balance', -whole + (sent - result.debit))
        add(account, 'balance', whole - sent)
      } else add(account, 'balance', -result.debit)
      if (endedAt !== undefined) release(account, idOf(asked))
      return result
    }
    if (makes('the ledger is written in another transaction than the report')) {
      const result = await make(resourceServer.outgoingPayments)
      await change((account) => void book(account, result))
      return result
    }
    return transaction(async (account, inside) =>
      book(account, await make(resourceServer.within(failing(inside)).outgoingPayments)),
    )
  }

  const onEvent: EventHandler = async (event) => {
    if (!/^outgoing-payment\.(?:completed|failed|declined)$/.test(event.type)) return
    if (!('outgoingPaymentId' in event)) return
    await change((account) => {
      if (
        makes(refunds) &&
        event.type === 'outgoing-payment.failed' &&
        event.sentAmount.value !== '0'
      ) {
        add(account, 'balance', BigInt(event.debitAmount.value) - BigInt(event.sentAmount.value))
      }
      release(account, idOf(event))
    })
  }

  /** Releases what nobody has begun or decided in time. */
  async function sweep(): Promise<void> {
    for (const hold of account().holds.values()) {
      const record = await outgoingPayment(hold.payment)
      const isExpired = record === undefined || clock.now() >= hold.heldAt + holdMs
      const isSent = record?.state === 'begun'
      const spares = isSent && !makes('a sweep releases the holds of payments that are being sent')
      if (isExpired && !spares) await change((account) => release(account, hold.id))
    }
  }

  const outgoingPayment = (id: string) => resourceServer.outgoingPayments.getRecord(id)

  /** Compares the account with the records of the library. */
  async function problem(): Promise<string | undefined> {
    let [needed, sent] = [0n, 0n]
    for (const [id, known] of asked) {
      const record = await outgoingPayment(id)
      if (record !== undefined) asked.set(id, BigInt(record.sent))
      const isOver = record === undefined ? known !== undefined : record.endedAt !== undefined
      if (!isOver) needed += neededFor(record, account().holds.get(id))
      sent += asked.get(id) ?? 0n
    }
    const { balance, held } = account()
    const debited = deposit - balance
    if (debited !== sent) return `the account was debited ${debited}, and payments sent ${sent}`
    if (held === needed) return undefined
    return `the account holds ${held} for payments that need ${needed}`
  }

  const grantEndpoint = 'https://wallet.example/auth'
  const baseUrl = 'https://wallet.example'
  const shared = { store, clock, onError: () => undefined } // the store fails as the history says
  const authorizationServer = createAuthorizationServer({
    ...shared,
    grantEndpoint,
    clientKeys,
    consentUrl: 'https://wallet.example/consent',
  })
  const resourceServer: ResourceServer = createResourceServer({
    ...shared,
    baseUrl,
    grants: authorizationServer,
    walletAddresses: { find: async (each) => (each === url ? { url, ...usd } : undefined) },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing,
    policy: { mayPay, outgoingPayments: { holdMs } },
  })
  return {
    authorizationServer,
    resourceServer,
    grantEndpoint,
    baseUrl,
    report,
    onEvent,
    sweep,
    problem,
  }
}

/** What the account must hold for a payment that has not ended. */
function neededFor(record: OutgoingPayment | undefined, hold: Hold | undefined): bigint {
  if (record !== undefined) return BigInt(record.debitAmount.value)
  // Nobody has decided, or it was declined: the host may not have been asked, or has released it.
  return hold?.state === 'held' ? hold.amount : 0n
}
