import type { Database, Sql } from 'create-open-payments-server/wallet/sql'
import type { WorldOptions } from 'open-payments-test-support/world'
import {
  createRail,
  memoryBook,
  type PacketBook,
  type RailOptions,
  railPaymentMethods,
  sqlBook,
} from '../src/index.js'
import { receivingWallet } from './claimed-receiver.js'

export const link = { assetCode: 'USD', assetScale: 9 }
export const usd = { assetCode: 'USD', assetScale: 2 }
export const eur = { assetCode: 'EUR', assetScale: 2 }
/** A cent, in the asset in which the peers settle. */
export const cent = 10_000_000n

const worth: Readonly<Record<string, bigint>> = { USD: 10_000n, EUR: 10_800n }

/** Units of `to` for units of `from`: a euro is 1.08 dollars. */
export function rateOf(from: typeof usd, to: typeof usd) {
  const [given, taken] = [worth[from.assetCode], worth[to.assetCode]]
  if (given === undefined || taken === undefined) return undefined
  return {
    numerator: given * 10n ** BigInt(to.assetScale),
    denominator: taken * 10n ** BigInt(from.assetScale),
  }
}

/** What a process does to a packet, in order. A test may end the process before each of them. */
export type Step = 'reserves' | 'credits' | 'claims' | 'commits' | 'replies'

export interface Process {
  /** Resolves when the process may take the step, or never if it is killed. */
  readonly step: (step: Step) => Promise<void>
}

export const alive: Process = { step: async () => {} }

/** A process that ends before a step; `ended` resolves when it has. */
export function killedBefore(last: Step): Process & { readonly ended: Promise<void> } {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  let isDead = false
  return {
    ended,
    async step(step) {
      isDead ||= step === last
      if (!isDead) return
      end()
      // The database ends the transaction of a process that is gone.
      if (step === 'claims' || step === 'commits') throw new Error('the process is gone')
      await new Promise<never>(() => {})
    },
  }
}

/** Runs work after the work before it has ended. */
function oneAtATime() {
  let last: Promise<unknown> = Promise.resolve()
  return <Result>(work: () => Promise<Result>): Promise<Result> => {
    const next = last.then(work)
    last = next.catch(() => undefined)
    return next
  }
}

export interface Books {
  readonly book: PacketBook<Sql>
  /** Absent in memory. */
  readonly database?: Database
}

export function booksIn(database?: Database): Books {
  return database === undefined
    ? { book: memoryBook() as PacketBook<Sql> }
    : { book: sqlBook(database), database }
}

/** A wallet that receives packets of its peers: its records, and any number of processes that share them. */
export function createWallet(books: Books, peers: readonly string[], world: WorldOptions = {}) {
  const { book, database } = books
  const ilpAddress = 'test.wallet'
  const paymentMethods = railPaymentMethods({ ilpAddress, secret: Buffer.alloc(32, 7) }, [usd, eur])
  const wallet = receivingWallet({
    ...(database !== undefined && { store: database.store }),
    ...world,
    auth: { random: crypto, ...world.auth },
    resources: { paymentMethods, random: crypto, ...world.resources },
  })
  const { incomingPayments } = wallet.resources

  const alone = oneAtATime()

  /** Counts funds and the claim in one transaction. In memory, no packet is decided between the two. */
  const receiveWith =
    ({ step }: Process): RailOptions<Sql>['receive'] =>
    async (id, funds, fulfill) => {
      await step('credits')
      if (database === undefined) {
        return alone(async () => {
          const received = await incomingPayments.receive(id, funds)
          if (received.ok) await fulfill(async () => [])
          return received
        })
      }
      return database.transaction(async (sql, store) => {
        const inside = wallet.resources.within(store).incomingPayments
        const received = await inside.receive(id, funds)
        await step('claims')
        if (received.ok) await fulfill(sql)
        await step('commits')
        return received
      })
    }

  return {
    ...wallet,
    book,
    paymentMethods,
    /** A rail with only the state of a new process. */
    rail(process = alive, more: Partial<RailOptions<Sql>> = {}) {
      const rail = createRail<Sql>({
        ilpAddress,
        assets: [usd, eur],
        rateOf,
        book: {
          ...book,
          async reserve(...packet) {
            await process.step('reserves')
            return book.reserve(...packet)
          },
          decide: (key, decision, proof) =>
            database === undefined && proof?.inside === undefined
              ? alone(() => book.decide(key, decision, proof))
              : book.decide(key, decision, proof),
        },
        paymentMethods,
        incomingPayments,
        receive: receiveWith(process),
        now: wallet.clock.now,
        onError: (error) => void wallet.errors.push(error),
        peers: peers.map((peer) => ({
          ilpAddress: peer,
          asset: link,
          send: () => Promise.reject(new Error('it sends nothing')),
          token: `token of ${peer}`,
        })),
        ...more,
      })
      /** Posts what a peer sends, and returns the body of the response. */
      async function post(peer: string, type: string, body: Uint8Array): Promise<Uint8Array> {
        const response = await rail.handle({
          method: 'POST',
          url: `/ilp/${peer}`,
          headers: [
            ['authorization', `Bearer token of ${peer}`],
            ['content-type', type],
          ],
          body,
        })
        await process.step('replies')
        return Buffer.from(response.body ?? '')
      }
      return {
        ...rail,
        send: (peer: string, packet: Uint8Array) => post(peer, 'application/octet-stream', packet),
        async close(peer: string, condition: string) {
          const asked = Buffer.from(JSON.stringify({ close: condition }))
          const body = await post(peer, 'application/json', asked)
          return JSON.parse(Buffer.from(body).toString())
        },
      }
    },
  }
}
