import type { Result } from '../../src/core/result.js'
import type { AccessItem, Amount } from '../../src/index.js'
import type { ManualClock } from './clock.js'
import type { Counted } from './spending-book.js'
import type { Written } from './written.js'

/** The body of a request to pay. */
export type PayRequest = {
  readonly walletAddress: string
  readonly metadata?: { note: string }
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

export type ClientName = 'shop' | 'cafe'

/** What has been spent under a grant. */
export type Spent = Readonly<Record<Counted, Amount | null>>

export interface PaidAnswer {
  readonly id: string
  readonly spent?: Spent
}

/** Why nothing was done. */
export interface Declined {
  readonly ok: false
  readonly refusal: string
}

export type PayAnswer = Result<PaidAnswer, Declined>

/** The id of a quote. */
export type QuoteAnswer = Result<string, Declined>

export type SpentAnswer = Result<Spent, Declined>

export type HostAnswer = { readonly ok: true } | Declined

/** A wallet that a test compares with the book: the machines, the services or the servers. */
export interface PlayedWallet {
  readonly clock: ManualClock
  /** What it has written. */
  readonly written: Written
  /** Creates the next grant. */
  grant(client: ClientName, access: readonly AccessItem[]): Promise<void>
  rotate(grant: number): Promise<boolean>
  revoke(grant: number): Promise<void>
  quote(client: ClientName, asked: Asked): Promise<QuoteAnswer>
  pay(grant: number, request: PayRequest, idempotencyKey?: string): Promise<PayAnswer>
  /** The spent amounts that the holder of the token receives for the open windows. */
  spent(grant: number): Promise<SpentAnswer>
  begin(id: string): Promise<HostAnswer>
  reportSent(
    id: string,
    totals: { sentAmount: Amount; deliveredAmount: Amount; final?: boolean },
  ): Promise<HostAnswer>
  fail(id: string, totals: { sentAmount?: Amount; deliveredAmount?: Amount }): Promise<HostAnswer>
  cancel(id: string): Promise<HostAnswer>
  /** Resolves to the number of payments that lapsed. */
  sweep(): Promise<number>
}

export interface Asked {
  readonly walletAddress: string
  readonly receiver: string
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
}
