import type { Instant } from '../../../src/core/instant.js'
import type { OutgoingPayment } from '../../../src/core/outgoing-payment/record.js'
import type { AccessItem, Amount } from '../../../src/index.js'
import type { ClientName, PayRequest, PlayedWallet, Spent } from '../played-wallet.js'
import { eur, usd } from '../spending.js'
import {
  type AssetName,
  type Book,
  type Counted,
  isOver,
  type Line,
  newBook,
  type Plan,
  type Terms,
  type Total,
  type Totals,
} from '../spending-book.js'
import { spendingPolicy, tokenLifetimeMs } from '../spending-services.js'

export interface QuoteLine {
  readonly id: string
  readonly client: string
  readonly grant: number
  readonly walletAddress: string
  readonly terms: Terms
  readonly expiresAt: Instant
  gone: boolean
}

/** A request that may be sent again. */
export interface Sent {
  readonly client: string
  readonly request: PayRequest
  readonly key?: string
}

interface BudgetLine {
  readonly id: string
  readonly line: Line
  /** The earliest instant at which it may be removed. */
  readonly keptUntil: Instant
  removed: boolean
}

/** A wallet, and what the tests expect of it. Grants are identified by their number. */
export interface Comparison {
  readonly wallet: PlayedWallet
  readonly book: Book
  readonly grants: Plan[][]
  readonly clients: ClientName[]
  readonly tokens: { expiresAt: Instant; revoked: boolean }[]
  readonly quotes: QuoteLine[]
  readonly sent: Sent[]
  /** The budgets so far, by the place that they count. */
  readonly budgets: Map<string, BudgetLine>
  /** Counts the responses, by kind of request. */
  readonly met: Map<string, number>
}

export function newComparison(wallet: PlayedWallet, met: Map<string, number>): Comparison {
  const grants: Plan[][] = []
  return {
    wallet,
    book: newBook(grants, spendingPolicy.payments),
    grants,
    clients: [],
    tokens: [],
    quotes: [],
    sent: [],
    budgets: new Map(),
    met,
  }
}

export function count({ met }: Comparison, what: string, answer: string): void {
  const name = `${what}: ${answer}`
  met.set(name, (met.get(name) ?? 0) + 1)
}

export function clientOf({ clients }: Comparison, grant: number): string {
  return `https://${clients[grant]}.example`
}

/** Whether a grant has not ended. */
export function lives({ wallet, grants, tokens }: Comparison, grant: number): boolean {
  return tokens[grant]?.revoked === false && !isOver(grants[grant] ?? [], wallet.clock.now())
}

/** Whether the token of a grant is valid. */
export function isGood(state: Comparison, grant: number): boolean {
  const { wallet, tokens } = state
  return lives(state, grant) && wallet.clock.now() < (tokens[grant]?.expiresAt ?? 0)
}

export function paymentOf({ wallet }: Comparison, { id }: Line): OutgoingPayment | undefined {
  return wallet.written.get('outgoing-payment', id) as OutgoingPayment | undefined
}

export async function grant(
  { wallet, grants, clients, tokens }: Comparison,
  client: ClientName,
  access: readonly AccessItem[],
): Promise<number> {
  await wallet.grant(client, access)
  tokens.push({ expiresAt: wallet.clock.now() + tokenLifetimeMs, revoked: false })
  clients.push(client)
  return grants.push(access.map(planOf)) - 1
}

function planOf({ identifier = '', limits = {} }: AccessItem): Plan {
  const { receiver, interval } = limits
  const counts: Counted = limits.debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
  const amount = limits[counts]
  return {
    walletAddress: identifier,
    ...(receiver !== undefined && { receiver }),
    ...(interval !== undefined && { interval }),
    ...(amount && {
      limit: {
        counts,
        asset: amount.assetCode === 'EUR' ? 'EUR' : 'USD',
        value: BigInt(amount.value),
      },
    }),
  }
}

/** Returns the function that makes amounts of an asset. */
export const amountIn = (asset: AssetName) => (asset === 'EUR' ? eur : usd)

const amountOf = (total: Total | null): Amount | null => total && amountIn(total.asset)(total.value)

export const amountsOf = ({ debitAmount, receiveAmount }: Totals): Spent => ({
  debitAmount: amountOf(debitAmount),
  receiveAmount: amountOf(receiveAmount),
})
