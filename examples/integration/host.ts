import type { Request } from 'express'
import {
  type Amount,
  type Asset,
  type InteractionView,
  memoryStore,
  type PriceAnswer,
  type RequestedPayment,
  type Totals,
  type WalletAddresses,
} from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'

/** Represents the payment backend that imports the library. */
export const store = memoryStore()

export const accounts: WalletAddresses = {
  find: async (url) =>
    url === 'https://wallet.example/alice'
      ? { url, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }
      : undefined,
}

export const paymentDetailsKey = new Uint8Array(32)

/** Returns the signed-in owner and the owner's wallet addresses. */
export function signedInOwner(_request: Request) {
  return { resourceOwner: 'alice', walletAddresses: ['https://wallet.example/alice'] }
}

export function consentPage({ client, access }: InteractionView): string {
  return `<h1>${client} asks for</h1><pre>${JSON.stringify(access)}</pre>
    <form method="post"><button name="decision" value="approve">Approve</button></form>`
}

export interface Invoice {
  readonly number: string
  /** The wallet address of the payee. */
  readonly payee: string
  readonly total: Amount
}

/** Knows receivers, rates and fees. */
export interface Market {
  lookUp(
    receiver: string,
  ): Promise<{ readonly remaining?: Amount; readonly asset: Asset } | undefined>
  arriving(payer: Asset, debitAmount: Amount, to: { readonly asset: Asset }): PriceAnswer
  costOf(payer: Asset, receiveAmount: Amount): PriceAnswer
}

/** This example has no receivers yet. */
export const market: Market = {
  lookUp: async () => undefined,
  arriving: () => ({ ok: false, refusal: 'receiver_invalid' }),
  costOf: () => ({ ok: false, refusal: 'receiver_invalid' }),
}

/** Knows balances, sanctions lists, and what owners confirmed in the app. */
export interface Ledger {
  /** Whether the account has `debitAmount`, apart from what is held for other payments. */
  covers(payment: RequestedPayment): Promise<boolean>
  /**
   * Holds `debitAmount` of the account once for `outgoingPaymentId`, or returns false if the account has less. Released
   * at the event that ends the payment.
   */
  hold(payment: RequestedPayment): Promise<boolean>
  isScreened(receiver: string): Promise<boolean>
}

/** Knows which accounts are frozen, and the most that others receive at once. */
export interface ReceivingLimits {
  /** 0 if the account is frozen. */
  receiveMax(walletAddress: string): Promise<bigint>
}

/** Moves money to other banks. Resolves when a transfer has ended, to all that it has moved; zeros if nothing left. */
export interface Rail {
  send(payment: OutgoingPaymentEvent): Promise<Totals & { readonly arrived: boolean }>
}
