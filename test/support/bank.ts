import type { Pool } from 'pg'
import { expect } from 'vitest'
import { settlementAccount } from '../../examples/host-transaction/tables.js'
import type { ResourceServices, Store } from '../../src/index.js'
import {
  createSpendingWorld,
  eur,
  euroReceiver,
  grantToPay,
  outgoingItem,
  pay,
  usd,
} from './spending.js'
import { alice, bob, incomingAccess, type World } from './world.js'

export { eur, usd } from './spending.js'

const settlement = settlementAccount('USD')

/** A wallet whose database also contains the host's ledger. */
export interface Bank {
  readonly pool: Pool
  readonly world: World
  /** Creates a payment to Bob and returns its id. */
  open(amount?: string): Promise<string>
  /** Returns what a payment has received, and what its transfers have credited to Bob's account. */
  sums(
    paymentId: string,
    transferIds: readonly string[],
  ): Promise<{ received: string; credited: string }>
  /** Alice pays 10 dollars, of which 5 euros arrive. Resolves to the id of the payment, which is begun. */
  begun(): Promise<string>
  /** Returns what was sent of a payment, its state, and what was debited from Alice's account. */
  status(paymentId: string): Promise<{ sent: string; state: string; debited: string }>
}

let names = 0

/** Returns an id that no other test of the file uses. */
export const name = (what: string) => `${what}-${++names}`

export async function openBank(pool: Pool, store: Store): Promise<Bank> {
  const world = createSpendingWorld({ store })
  const client = world.client()
  const { token: spending } = await grantToPay(world, client, [outgoingItem()])
  const { outgoingPayments } = world.resources
  const token = (await client.request([incomingAccess])).body.access_token.value
  const accounts = [alice, bob, settlement, settlementAccount('EUR')]
  for (const id of accounts) {
    await pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [id, 'USD'])
  }
  return {
    pool,
    world,
    async open(amount) {
      const more = amount === undefined ? {} : { incomingAmount: usd(amount) }
      const { body } = await client.createPayment(token, { walletAddress: bob, ...more })
      return world.resources.incomingPayments.idOf(body.id) ?? ''
    },
    async sums(paymentId, transferIds) {
      const payment = await world.resources.incomingPayments.get(paymentId)
      const text = `SELECT account_id, sum(amount)::text AS sum FROM ledger_entries
        WHERE transfer_id = ANY ($1) GROUP BY account_id`
      const { rows } = await pool.query(text, [transferIds])
      const of = (account: string) => rows.find((row) => row.account_id === account)?.sum ?? '0'
      expect(of(settlement)).toBe(of(bob) === '0' ? '0' : `-${of(bob)}`)
      return { received: payment?.receivedAmount.value ?? '', credited: of(bob) }
    },
    async begun() {
      const { body } = await pay(client, spending, '1000', { incomingPayment: euroReceiver })
      const id = outgoingPayments.idOf(body.id) ?? ''
      await outgoingPayments.begin(id)
      return id
    },
    async status(paymentId) {
      const payment = await outgoingPayments.get(paymentId)
      const { status: state = '', sentAmount } = payment ?? {}
      const text = `SELECT account_id, sum(amount)::text AS sum FROM ledger_entries
        WHERE transfer_id = $1 GROUP BY account_id`
      const { rows } = await pool.query(text, [paymentId])
      const of = (account: string) => rows.find((row) => row.account_id === account)?.sum ?? '0'
      expect(of(alice)).toBe(of(settlement) === '0' ? '0' : `-${of(settlement)}`)
      return { sent: sentAmount?.value ?? '', state, debited: of(settlement) }
    },
  }
}

/** What was sent in dollars, and delivered in euros. */
export const totals = (sent: string, delivered: string) => ({
  sentAmount: usd(sent),
  deliveredAmount: eur(delivered),
})

export type Resources = Pick<World['resources'], 'within'>
type Receive = ResourceServices['incomingPayments']['receive']
type ReportSent = ResourceServices['outgoingPayments']['reportSent']

/** Returns the result with an account to which the ledger can write no entry. */
export function unknownToTheLedger<
  Result extends { readonly ok: boolean; readonly payment?: object },
>(result: Result): Result {
  const walletAddress = 'https://wallet.example/unknown-to-the-ledger'
  return result.ok ? { ...result, payment: { ...result.payment, walletAddress } } : result
}

/** The same services with a wrapped `receive`. */
export function withReceive(
  { resources }: World,
  around: (receive: () => ReturnType<Receive>) => ReturnType<Receive>,
): Resources {
  return {
    within(store) {
      const services = resources.within(store)
      const { incomingPayments } = services
      const receive: Receive = (...given) => around(() => incomingPayments.receive(...given))
      return { ...services, incomingPayments: { ...incomingPayments, receive } }
    },
  }
}

/** The same services with a wrapped `reportSent`. */
export function withReportSent(
  { resources }: World,
  around: (report: () => ReturnType<ReportSent>) => ReturnType<ReportSent>,
): Resources {
  return {
    within(store) {
      const services = resources.within(store)
      const { outgoingPayments } = services
      const reportSent: ReportSent = (...given) =>
        around(() => outgoingPayments.reportSent(...given))
      return { ...services, outgoingPayments: { ...outgoingPayments, reportSent } }
    },
  }
}
