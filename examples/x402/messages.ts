import type { Amount } from 'open-payments-server'

/**
 * The messages of x402, version 2, in the scheme `exact` on the network `ilp:openpayments`, as far as this example uses
 * them. Over HTTP, each is a header field with base64 of JSON.
 *
 * @see specs/x402-specification-v2.md, specs/transports-v2/http.md and specs/schemes/exact/scheme_exact_ilp.md of
 * https://github.com/x402-foundation/x402
 */

/** What a resource costs. */
export interface PaymentRequirements {
  readonly scheme: 'exact'
  readonly network: 'ilp:openpayments'
  /** In the smallest units of the asset. */
  readonly amount: string
  readonly asset: string
  /** The wallet address that is paid. */
  readonly payTo: string
  /** How old an incoming payment may be, in seconds. */
  readonly maxTimeoutSeconds: number
  readonly extra: { readonly assetScale: number }
}

/** The field `PAYMENT-REQUIRED` of an answer with 402. */
export interface PaymentRequired {
  readonly x402Version: 2
  readonly error?: string
  readonly resource: { readonly url: string; readonly description?: string }
  readonly accepts: readonly PaymentRequirements[]
}

/** The field `PAYMENT-SIGNATURE` of a request. The payment has been made by then: nothing is signed here. */
export interface PaymentPayload {
  readonly x402Version: 2
  readonly resource?: PaymentRequired['resource']
  readonly accepted: PaymentRequirements
  readonly payload: { readonly incomingPaymentUrl: string }
}

/** The field `PAYMENT-RESPONSE` of an answer. */
export interface SettlementResponse {
  readonly success: boolean
  readonly errorReason?: string
  /** The URL of the incoming payment, or empty. */
  readonly transaction: string
  readonly network: 'ilp:openpayments'
}

export function encode(message: object): string {
  return Buffer.from(JSON.stringify(message)).toString('base64')
}

/** Returns the object of a header field, or `undefined`. What it contains is still to be checked. */
export function decode(field: string | null | undefined): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(Buffer.from(field ?? '', 'base64').toString())
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

export function amountOf({ amount, asset, extra }: PaymentRequirements): Amount {
  return { value: amount, assetCode: asset, assetScale: extra.assetScale }
}
