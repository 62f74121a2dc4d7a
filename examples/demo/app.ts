import assert from 'node:assert/strict'
import {
  type AuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  OpenPaymentsClientError,
} from '@interledger/open-payments'
import type { Shop } from './shop.js'

/** The app, and the wallet that it uses. */
export interface Scene {
  readonly client: AuthenticatedClient
  readonly shop: Shop
  /** The wallet's origin. */
  readonly baseUrl: string
}

export type Token = { readonly value: string; readonly manage: string }

export function dollars(value: string) {
  return { value, assetCode: 'USD', assetScale: 2 }
}

type Access = NonNullable<
  Parameters<AuthenticatedClient['grant']['request']>[1]['access_token']
>['access']

/** Returns the resource server's URL and a token for access that needs no consent. */
export async function accessTo({ client, baseUrl }: Scene, access: Access) {
  const { authServer, resourceServer } = await client.walletAddress.get({ url: `${baseUrl}/bob` })
  const grant = await client.grant.request({ url: authServer }, { access_token: { access } })
  assert(isFinalizedGrantWithAccessToken(grant), 'this access needs no consent')
  return { url: resourceServer, accessToken: grant.access_token.value }
}

/** Asserts that the wallet refuses a call with this status and code. */
export async function refused(call: Promise<unknown>, status: number, code: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert(error instanceof OpenPaymentsClientError)
    assert.deepEqual({ status: error.status, code: error.code }, { status, code })
    return true
  })
}

/** Shows enough of a token to recognize it, and no more. */
export function masked(token: string): string {
  return `${token.slice(0, 8)}…${token.slice(-4)}`
}
