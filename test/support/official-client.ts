import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  OpenPaymentsClientError,
  type PendingGrant,
} from '@interledger/open-payments'
import type { Exchanges } from 'create-open-payments-server/wallet/exchange'
import { createWallet, type Wallet } from 'create-open-payments-server/wallet/wallet'
import { expect } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import type { Shop } from '../../examples/demo/shop.js'
import { type AdapterName, adapters } from '../../examples/demo/wallet.js'
import { noFee, startCreatedWallet } from './created-wallet.js'
import { isLong } from './runs.js'
import './shared-validators.js'

/** The adapters on which a wallet of `npm create` can run. */
export const allDeployments = Object.keys(adapters) as readonly AdapterName[]

/**
 * Those on which the suites run: all in `npm run test:long`, and one in `npm test`, where
 * clients/published-client.test.ts makes every call over each of the others.
 */
export const deployments: readonly AdapterName[] = isLong ? allDeployments : ['express']

export interface RunningDeployment {
  readonly wallet: Wallet
  readonly baseUrl: string
  /** URLs of the grant endpoint, the resource server and the accounts. */
  readonly auth: string
  readonly op: string
  readonly alice: string
  readonly bob: string
  readonly carol: string
  /** The private key of Alice's account, with the `kid` `alice-1`: she can be a client of her own wallet. */
  readonly aliceKey: KeyObject
  stop(): Promise<void>
}

/** Starts a wallet that sends no payment by itself: tests report what becomes of each. */
export async function startDeployment(
  adapter: AdapterName,
  exchanges: Exchanges = noFee,
): Promise<RunningDeployment> {
  const { wallet, baseUrl, publish, stop } = await startCreatedWallet({
    adapter,
    create: (settings, database, ports) => ({
      wallet: createWallet(settings, database, { ...ports, exchanges }),
      work: () => ({ stop: async () => undefined }),
    }),
  })
  const alice = `${baseUrl}/alice`
  const { publicKey, privateKey: aliceKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  await publish(alice, { kid: 'alice-1', x })
  return {
    wallet,
    baseUrl,
    auth: `${baseUrl}/auth`,
    op: baseUrl,
    alice,
    bob: `${baseUrl}/bob`,
    carol: `${baseUrl}/carol`,
    aliceKey,
    stop,
  }
}

/** The requested access. */
export type Access = NonNullable<
  Parameters<AuthenticatedClient['grant']['request']>[1]['access_token']
>['access']

/** Configures the published client: it validates responses against the specification. */
export const clientSettings = {
  useHttp: true,
  validateResponses: true,
  logLevel: 'silent',
  // The default of 5 s is too short for a busy machine.
  requestTimeoutMs: 600_000,
} as const

/** Creates the published client of a shop, or of an impostor. It is expensive: create it once per file. */
export function clientOf(
  { walletAddress: walletAddressUrl, keyId, privateKey }: Shop,
  claimed: { readonly keyId?: string; readonly privateKey?: KeyObject } = {},
): Promise<AuthenticatedClient> {
  return createAuthenticatedClient({
    walletAddressUrl,
    keyId,
    privateKey,
    ...clientSettings,
    ...claimed,
  })
}

/** Requests access that needs no consent, and returns the value of its token. */
export async function tokenWithoutConsent(
  client: AuthenticatedClient,
  authServer: string,
  access: Access,
): Promise<string> {
  const grant = await client.grant.request({ url: authServer }, { access_token: { access } })
  if (!isFinalizedGrantWithAccessToken(grant)) throw new Error('the grant has no token')
  return grant.access_token.value
}

/** Requests access, approves it as the resource owner, and returns the token after continuation. */
export async function approvedToken(
  client: AuthenticatedClient,
  authServer: string,
  access: Access,
  { finishUri: uri }: Pick<Shop, 'finishUri'>,
  account?: string,
) {
  const finish = { method: 'redirect' as const, uri, nonce: randomUUID() }
  const grant = await client.grant.request(
    { url: authServer },
    { access_token: { access }, interact: { start: ['redirect'], finish } },
  )
  if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
  const { location } = await decide(grant.interact.redirect, 'approve', account)
  return continued(client, grant, location)
}

/** Continues a grant after the owner's browser has returned to a URL, and returns the token. */
export async function continued(
  client: AuthenticatedClient,
  { continue: { uri: url, access_token } }: PendingGrant,
  returned: URL | undefined,
) {
  const interact_ref = returned?.searchParams.get('interact_ref') ?? ''
  const where = { url, accessToken: access_token.value }
  const issued = await client.grant.continue(where, { interact_ref })
  if (!isFinalizedGrantWithAccessToken(issued)) throw new Error('the grant has no token')
  return issued.access_token
}

export const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
export const eur = (value: string) => ({ ...usd(value), assetCode: 'EUR' })

/**
 * Returns what the client reports about an error: status, code, description, and any details. Throws if the
 * error does not match the schema of the client.
 */
export async function failure(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof OpenPaymentsClientError)) throw new Error(`no such error: ${error}`)
  const { status, code, description, details, validationErrors } = error
  expect(validationErrors).toBeUndefined()
  return { status, code, description, ...(details && { details }) }
}
