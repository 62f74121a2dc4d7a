import type { Amount, Json } from 'open-payments-server'
import type { ClientResponse } from '../client.js'

type Fields = { readonly [name: string]: Json }

export interface IssuedToken {
  readonly value: string
  readonly manage: string
}

const refusalCodes = [
  'insufficient_access',
  'insufficient_grant',
  'invalid_token',
  'invalid_quote',
  'invalid_rotation',
  'request_differs',
]

/** Returns the refusal of a payment; any other unsuccessful response is an error of the wallet. */
export function refusalOf({ status, body }: ClientResponse) {
  const code = fieldsOf(fieldsOf(body)['error'])['code']
  // The host's `mayPay` can have refused with 403.
  if (typeof code !== 'string' || !(refusalCodes.includes(code) || status === 403)) return undefined
  return { accepted: false, reason: code } as const
}

export function bodyOf(response: ClientResponse, status: number): Fields {
  return response.status === status ? fieldsOf(response.body) : unexpected(response)
}

export function unexpected({ status, body }: ClientResponse): never {
  throw new Error(`the server responded with ${status} ${JSON.stringify(body)}`)
}

/** The tokens of a grant; it may have a single one for both uses. */
export interface GrantTokens {
  readonly pay: IssuedToken
  readonly price: IssuedToken
}

const noToken: IssuedToken = { value: '', manage: '' }
export const noTokens: GrantTokens = { pay: noToken, price: noToken }

export function tokensOf(body: Fields): GrantTokens {
  const issued = body['access_token']
  const tokens = (Array.isArray(issued) ? issued : [issued]).map((token) => {
    return { value: stringOf(token, 'value'), manage: stringOf(token, 'manage') }
  })
  const [pay = noToken, price = pay] = tokens
  return { pay, price }
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

export function stringOf(value: unknown, name: string): string {
  const found = fieldsOf(value)[name]
  return typeof found === 'string' ? found : ''
}

export function spentAmount(
  name: 'spentDebitAmount' | 'spentReceiveAmount',
  amount: Json | undefined,
) {
  return amount === undefined ? {} : { [name]: amountIn(amount) }
}

export function amountIn(amount: Json | undefined): Amount {
  const { value, assetCode, assetScale } = fieldsOf(amount)
  return {
    value: String(value),
    assetCode: String(assetCode),
    assetScale: Number(assetScale),
  }
}
