import type { Json } from 'open-payments-server'
import type { ClientResponse } from '../client.js'

type Fields = { readonly [name: string]: Json }

export interface IssuedToken {
  readonly value: string
  readonly manage: string
}

/** Returns the refusal of a payment; any other unsuccessful response is an error of the wallet. */
export function refusalOf(response: ClientResponse) {
  const code = fieldsOf(fieldsOf(response.body)['error'])['code']
  const known = ['insufficient_grant', 'invalid_token', 'invalid_quote', 'invalid_rotation']
  if (typeof code !== 'string' || !known.includes(code)) return undefined
  return { accepted: false, reason: code } as const
}

export function bodyOf(response: ClientResponse, status: number): Fields {
  return response.status === status ? fieldsOf(response.body) : unexpected(response)
}

export function unexpected({ status, body }: ClientResponse): never {
  throw new Error(`the server responded with ${status} ${JSON.stringify(body)}`)
}

export function tokenOf(body: Fields): IssuedToken {
  const token = body['access_token']
  return { value: stringOf(token, 'value'), manage: stringOf(token, 'manage') }
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
  if (amount === undefined) return {}
  const { value, assetCode, assetScale } = fieldsOf(amount)
  const asset = { assetCode: String(assetCode), assetScale: Number(assetScale) }
  return { [name]: { value: String(value), ...asset } }
}
