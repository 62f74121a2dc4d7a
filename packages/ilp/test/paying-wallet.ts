import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { type IlpFulfill, serializeIlpFulfill, serializeIlpPrepare } from 'ilp-packet'
import { Packet } from 'ilp-protocol-stream/dist/src/packet.js'
import type { OutgoingPayment } from 'open-payments-server/core'
import { type Details, outcomeOf, replyOf } from 'open-payments-test-support/ilp'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
} from 'open-payments-test-support/spending'
import { alice, bob, carol } from 'open-payments-test-support/world'
import { afterAll, beforeAll } from 'vitest'
import {
  memorySendingBook,
  type PacketBook,
  type PaymentSenderOptions,
  type Peer,
  paymentSender,
  type Receivers,
  sqlSendingBook,
} from '../src/index.js'
import {
  type IlpHandler,
  isFulfillable,
  readPrepare,
  readStream,
  rejectsOf,
  streamEncryptionKey,
} from '../src/packet.js'
import { streamReceiver } from '../src/receiver.js'
import {
  type Books,
  createWallet,
  eur,
  killedBefore,
  link,
  rateOf,
  type Step,
  usd,
} from './receiving-wallet.js'

const realNow = Date.now
let skippedMs = 0

/** What `@interledger/pay` waits with between its packets. */
const pacing: { sleep(ms: number): Promise<unknown> } = createRequire(import.meta.url)(
  '@interledger/pay/dist/src/utils.js',
)
const realSleep = pacing.sleep

/** The time of both wallets and of the STREAM sender: real, plus what was skipped. */
export const skippingClock = {
  now: () => Date.now(),
  advance(ms: number) {
    skippedMs += ms
  },
  set() {
    throw new Error('it cannot go back')
  },
}

/** Lets `Date.now` follow the clock, and skips pauses of the STREAM sender, during the tests of a file. */
export function useSkippingClock(): void {
  beforeAll(() => {
    Date.now = () => realNow() + skippedMs
    pacing.sleep = (ms) => {
      const until = Date.now() + ms
      return new Promise<void>((resolve) => {
        setImmediate(() => {
          // Pauses overlap: each ends at its instant, however many there are.
          skippedMs += Math.max(0, Math.ceil(until - Date.now()))
          resolve()
        })
      })
    }
  })
  afterAll(() => {
    Date.now = realNow
    pacing.sleep = realSleep
  })
}

/** What happens to a packet with money between the two wallets. */
export type Fate =
  | { readonly how: 'arrives' | 'is lost' | 'its reply is lost' | 'arrives twice' | 'is refused' }
  | { readonly how: 'is answered by a proxy'; readonly status: number; readonly forwards: boolean }
  | { readonly how: 'is late'; readonly lateMs: number }
  /** Its receiver acknowledges this much more than it got. */
  | { readonly how: 'is overstated'; readonly by: bigint }
  | { readonly how: 'its receiver is killed'; readonly before: Step }
  | {
      readonly how:
        | 'its sender is killed before it leaves'
        | 'its sender is killed before its reply'
    }

interface Pauses {
  /** Awaited before each call of a port, and before and after a packet. `killed`: the process ends there. */
  readonly paused?: (call: string) => Promise<unknown>
}

export interface Setting {
  /** The books of the wallet that pays, and of the one that receives. */
  readonly here: Books
  readonly there: Books
  readonly receiver: 'USD' | 'EUR'
  readonly payer?: 'USD' | 'EUR'
  readonly isInvoice?: boolean
  readonly amount: bigint
  /** Whether the wallet that receives is one of ours. Another counts each packet that it gets, and closes none. */
  readonly isOurs: boolean
  /** By how much less the rate of another wallet is than that of the wallet that pays, in ten-thousandths. */
  readonly worse?: bigint
  /** By how much the clock of the wallet that receives is behind. */
  readonly skewMs?: number
  readonly mistake?: (options: PaymentSenderOptions) => Partial<PaymentSenderOptions>
  readonly trustMax?: bigint
}

/** Two wallets, and the link between them. */
export async function createLink(setting: Setting) {
  const { here, there, isOurs, skewMs = 0, amount } = setting
  const clock = skippingClock
  const behind = { now: () => clock.now() - skewMs }
  const hereAddress = 'test.here'
  const receiving = createWallet(there, [hereAddress], { clock: { ...clock, now: behind.now } })
  const account = setting.receiver === 'USD' ? bob : carol
  const asset = setting.receiver === 'USD' ? usd : eur
  const payerAsset = setting.payer === 'EUR' ? eur : usd
  const rate = rateOf(asset, payerAsset) ?? { numerator: 1n, denominator: 1n }
  const debit = (amount * rate.numerator + rate.denominator - 1n) / rate.denominator
  const debitAmount = { value: `${debit}`, ...payerAsset }
  const receiveAmount = { value: `${amount}`, ...asset }
  const paying = createSpendingWorld({
    clock,
    ...(here.database !== undefined && { store: here.database.store }),
    auth: { random: crypto },
    resources: {
      random: crypto,
      ...(setting.payer === 'EUR' && {
        walletAddresses: { find: async (url: string) => ({ url, ...eur, keys: [] }) },
      }),
      pricing: {
        price: async () => ({ ok: true, debitAmount, receiveAmount }),
      },
    },
  })
  const details: Details = await receiving.createPayment(
    setting.isInvoice === true ? { incomingAmount: receiveAmount } : {},
    account,
  )
  const client = paying.client()
  const { token } = await grantToPay(paying, client, [outgoingItem(undefined, alice)])
  const { body } = await pay(client, token, 0n, { debitAmount })
  const { outgoingPayments, events } = paying.resources
  if (body.id === undefined) throw new Error(JSON.stringify(body))
  const id = outgoingPayments.idOf(body.id) ?? ''

  const sendings = here.database === undefined ? memorySendingBook() : sqlSendingBook(here.database)
  let othersPaid = 0n
  let foreignOwed = 0n
  const late: { readonly at: number; readonly packet: Uint8Array }[] = []

  /** The other wallet, which counts each packet that it gets unless it is ours. */
  const count: IlpHandler = (packet) => {
    const reply = isOurs
      ? receiving.rail(undefined, { now: behind.now }).send(hereAddress, packet)
      : countingEach(packet)
    onTheWay.push(reply)
    return reply
  }
  const onTheWay: Promise<Uint8Array>[] = []
  const countingEach: IlpHandler = async (packet) => {
    const { amount: sent = '0' } = readPrepare(packet) ?? {}
    const rate = rateOf(link, asset) ?? { numerator: 1n, denominator: 1n }
    const theirs = 10_000n - (setting.worse ?? 0n)
    const converted = (BigInt(sent) * rate.numerator * theirs) / (rate.denominator * 10_000n)
    const { get, receive } = receiving.resources.incomingPayments
    const prepare = readPrepare(packet)
    if (prepare === undefined) throw new Error('it is not a packet')
    const counting = streamReceiver({
      ilpAddress: 'test.wallet',
      paymentMethods: receiving.paymentMethods,
      incomingPayments: { get },
      now: behind.now,
    })
    const reply = await counting(serializeIlpPrepare({ ...prepare, amount: `${converted}` }), {
      transferId: randomUUID(),
      reserve: async () => 'reserved',
      receive,
      release: async () => 'released',
    })
    if (outcomeOf(reply) === 'fulfill') foreignOwed += BigInt(sent)
    return reply
  }

  /** How often each packet was on the link, and what was decided about it, by which decision. */
  const carried = new Map<string, number>()
  const decisions = new Map<string, Set<string>>()
  const decided = (condition: string, decision: string) =>
    decisions.set(condition, (decisions.get(condition) ?? new Set()).add(decision))
  /** The books of the wallet that pays, as they are. */
  const watched: Pick<PaymentSenderOptions, 'book' | 'sendings'> = {
    book: {
      ...(here.book as PacketBook),
      async decide(key, decision, proof) {
        const state = await (here.book as PacketBook).decide(key, decision, proof)
        const isByProof = state === 'fulfilled' || proof?.by === 'operator'
        if (state !== undefined && !isByProof) decided(`book ${key.condition}`, state)
        return state
      },
    },
    sendings: {
      ...sendings,
      async write(paymentId, writer, sending, isListed) {
        const isWritten = await sendings.write(paymentId, writer, sending, isListed)
        for (const { reference, outcome } of isWritten ? sending.settlement.attempts : []) {
          const isDecided = outcome.state === 'decided' && outcome.by !== 'operator'
          if (isDecided) decided(`record ${reference}`, `${outcome.by} at ${outcome.at}`)
        }
        return isWritten
      },
    },
  }

  /** How often the receiver still cannot be read. */
  let unreadable = 0
  let lies = false
  const receivers: Receivers = async () => {
    if (unreadable > 0) {
      unreadable -= 1
      return { ok: false, reason: 'it does not respond', isTemporary: true }
    }
    const payment = await receiving.resources.incomingPayments.get(details.id)
    if (payment === undefined) return { ok: false, reason: 'it is gone' }
    const value = lies ? '0' : payment.receivedAmount.value
    const receivedAmount = { ...asset, value }
    if (payment.status !== 'open') return { ok: false, reason: 'it is complete', receivedAmount }
    const wanted = BigInt(payment.incomingAmount?.value ?? 0) - BigInt(value)
    return {
      ok: true,
      receiver: {
        asset,
        receivedAmount,
        ilp: details,
        ...(payment.incomingAmount !== undefined && { wanted: { ...asset, value: `${wanted}` } }),
      },
    }
  }

  /**
   * A process that handles the event of the payment, and how the link treats its packets with money.
   */
  function process(
    fates: Fate[],
    onFate: (how: string) => void = () => {},
    { paused = async () => {}, ...more }: Partial<PaymentSenderOptions> & Pauses = {},
  ) {
    let isDead = false
    let end = () => {}
    // What has left arrives before the test goes on.
    const killed = new Promise<void>((resolve) => {
      end = resolve
    }).then(() => Promise.allSettled(onTheWay))
    const never = () => {
      isDead = true
      end()
      return new Promise<never>(() => {})
    }
    async function reach(call: string): Promise<void> {
      if (!isDead && (await paused(call)) === 'killed') isDead = true
      if (isDead) await never()
    }
    const unless = async <Result>(call: string, work: () => Promise<Result>) => {
      await reach(call)
      return work()
    }
    const reject = rejectsOf('')
    const lost = () => reject('R00', 'no reply')
    const send: IlpHandler = async (packet) => {
      if (isDead) return never()
      if (!(await isMoney(packet))) return count(packet)
      await reach('the packet')
      const reply = await carry(packet)
      await reach('the reply')
      return reply
    }
    const carry: IlpHandler = async (packet) => {
      const condition = readPrepare(packet)?.executionCondition.toString('base64url') ?? ''
      carried.set(condition, (carried.get(condition) ?? 0) + 1)
      const fate = fates.shift() ?? { how: 'arrives' }
      onFate(fate.how)
      switch (fate.how) {
        case 'is lost':
          return lost()
        case 'its reply is lost':
          await count(packet)
          return lost()
        case 'is refused':
          return reject('F02', 'the peer has no route')
        case 'arrives twice':
          await count(packet)
          return count(packet)
        case 'is answered by a proxy':
          if (fate.forwards) await count(packet)
          return reject('R00', `The response has status ${fate.status}, and no ILP packet`)
        case 'is late':
          late.push({ at: clock.now() + fate.lateMs, packet })
          return lost()
        case 'is overstated':
          return overstated(await count(packet), fate.by)
        case 'its receiver is killed': {
          if (!isOurs) return lost()
          const killed = killedBefore(fate.before)
          const rail = receiving.rail(killed, { now: behind.now })
          await Promise.race([rail.send(hereAddress, packet), killed.ended])
          return lost()
        }
        case 'its sender is killed before it leaves':
          return never()
        case 'its sender is killed before its reply':
          await count(packet)
          return never()
        default:
          return count(packet)
      }
    }
    async function overstated(reply: Uint8Array, by: bigint): Promise<Uint8Array> {
      const secret = Buffer.from(details.sharedSecret, 'base64url')
      const { fulfillment, data } = replyOf(reply) as IlpFulfill
      const told = await readStream(secret, data)
      if (fulfillment === undefined || told === undefined) return reply
      const { sequence, ilpPacketType, prepareAmount, frames } = told
      const amount = `${BigInt(prepareAmount.toString()) + by}`
      const more = new Packet(sequence, ilpPacketType, amount, frames)
      const lie = await more.serializeAndEncrypt(streamEncryptionKey(secret))
      return serializeIlpFulfill({ fulfillment, data: lie })
    }
    async function isMoney(packet: Uint8Array): Promise<boolean> {
      const prepare = readPrepare(packet)
      return (
        prepare !== undefined &&
        isFulfillable(prepare, Buffer.from(details.sharedSecret, 'base64url'))
      )
    }
    const peer: Peer = {
      ilpAddress: 'test.wallet',
      asset: link,
      send,
      token: '',
      packetAmountMax: 2_500_000_000n,
      ...(isOurs && {
        close: (condition) =>
          unless('close', async () =>
            unreadable > 0
              ? undefined
              : receiving.rail(undefined, { now: behind.now }).close(hereAddress, condition),
          ),
      }),
    }
    const guarded = <Port extends object>(of: string, port: Port): Port =>
      new Proxy(port, {
        get: (target, name: keyof Port & string) =>
          typeof target[name] !== 'function'
            ? target[name]
            : (...given: never[]) =>
                unless(`${of}.${name}`, () =>
                  (target[name] as (...of: never[]) => Promise<never>)(...given),
                ),
      })
    const options: PaymentSenderOptions = {
      rail: { peerFor: () => peer },
      rateOf,
      book: guarded('book', watched.book),
      sendings: guarded('sendings', watched.sendings),
      outgoingPayments: guarded('payments', outgoingPayments),
      receivers: (url) => unless('receivers', () => receivers(url)),
      now: clock.now,
      ...(setting.trustMax !== undefined && { trustMax: () => setting.trustMax ?? 0n }),
    }
    const sender = paymentSender({ ...options, ...more, ...setting.mistake?.(options) })
    const stopping = new AbortController()
    const handler = sender.handler(stopping.signal)
    const event = { type: 'outgoing-payment.created', outgoingPaymentId: id }
    return {
      sender,
      options,
      stop: () => stopping.abort(),
      /** Handles the event although another process may handle it too, as one does whose lease is over. */
      deliver: () =>
        Promise.race([
          handler(event as never, { attempt: 1, signal: new AbortController().signal }),
          killed,
        ]),
      run: () => Promise.race([events.drain(handler, { leaseMs: 60_000, skewMaxMs: 0 }), killed]),
    }
  }

  /** Lets time pass. What is late arrives, or is too late. */
  async function advance(ms: number): Promise<void> {
    const until = clock.now() + ms
    for (const each of late.splice(0).sort((one, other) => one.at - other.at)) {
      if (each.at > until) {
        late.push(each)
        continue
      }
      if (each.at > clock.now()) clock.advance(each.at - clock.now())
      await count(each.packet)
    }
    if (until > clock.now()) clock.advance(until - clock.now())
  }

  async function state() {
    const record = (await outgoingPayments.getRecord(id)) as OutgoingPayment
    let [inDoubt, byWord, denied, excess, difference, undebited] = [0n, 0n, 0n, 0n, 0n, 0n]
    let counted = 0n
    for await (const listed of process([]).sender.inDoubt()) {
      const { doubts, amount: most, mismatch, repeated = 0n } = listed
      difference += most
      counted += repeated
      undebited += BigInt(mismatch?.due.value ?? 0) - BigInt(mismatch?.debited.value ?? 0)
      for (const { kind, amount: value } of doubts) {
        if (kind === 'in_doubt') inDoubt += BigInt(value)
        if (kind === 'by_word') byWord += BigInt(value)
        if (kind === 'denied') denied += BigInt(value)
        if (kind === 'excess') excess += BigInt(value)
      }
    }
    const owed = isOurs ? await receiving.book.balance(hereAddress) : foreignOwed
    return {
      state: record.state,
      /** What the record of the payment says, in the asset of the payer. */
      recordedDoubt: BigInt(record.inDoubt?.amount ?? 0),
      debited: BigInt(record.sent),
      delivered: BigInt(record.delivered),
      arrived: (await receiving.received(details)) - othersPaid,
      /** What the wallet that pays says it owes, and what the other says it is owed. */
      owing: -(await here.book.balance('test.wallet')),
      owed,
      inDoubt,
      byWord,
      denied,
      excess,
      difference,
      /** What a receiver has that no packet has brought, in the asset of the peers. */
      counted,
      /** What is due for packets of a payment that somebody else has ended, and is not debited. */
      undebited,
      othersPaid,
      /** Packets that were on the link more than once, and packets about which more than one decision was made. */
      repeated: [...carried.values()].filter((times) => times > 1).length,
      decidedAgain: [...decisions.values()].filter(({ size }) => size > 1).length,
    }
  }

  return {
    id,
    clock,
    details,
    outgoingPayments,
    receiving,
    process,
    advance,
    state,
    async isOver() {
      const record = await outgoingPayments.getRecord(id)
      return record?.state === 'completed' || record?.state === 'failed'
    },
    beUnreadable(times: number) {
      unreadable = times
    },
    lie() {
      lies = true
    },
    async payByOther(value: bigint) {
      const transfer = { transferId: randomUUID(), amount: { value: `${value}`, ...asset } }
      const received = await receiving.resources.incomingPayments.receive(details.id, transfer)
      if (received.ok) othersPaid += value
    },
  }
}
