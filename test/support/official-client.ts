import { type KeyObject, randomUUID } from 'node:crypto'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  OpenPaymentsClientError,
} from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import { expect } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import type { Shop } from '../../examples/demo/shop.js'
import { accountKey } from '../../examples/wallet/accounts.js'
import { memoryStorage } from '../../examples/wallet/memory-storage.js'
import { type Fee, noFee } from '../../examples/wallet/prices.js'
import {
  type AdapterName,
  adapters,
  type RunningWallet,
  type StartOptions,
  startWallet,
} from '../../examples/wallet/start.js'
import { isLong } from './runs.js'

/** A way to run the example wallet. */
export interface Deployment {
  readonly name: string
  readonly adapter: AdapterName
  /** Whether the two servers share nothing and communicate over HTTP. */
  readonly split: boolean
}

/** Every adapter, both in one process and as two servers with separate stores. */
export const allDeployments: readonly Deployment[] = [false, true].flatMap((split) =>
  (Object.keys(adapters) as AdapterName[]).map((adapter) => ({
    name: split ? `${adapter}, split in two` : adapter,
    adapter,
    split,
  })),
)

/**
 * The deployments on which the suites run: all in `npm run test:long`, and one in `npm test`, where
 * clients/published-client.test.ts makes every call over each of the others.
 */
export const deployments = isLong
  ? allDeployments
  : allDeployments.filter(({ name }) => name === 'express')

export interface RunningDeployment {
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

export async function startDeployment(
  { adapter, split }: Deployment,
  fee: Fee = noFee,
): Promise<RunningDeployment> {
  const storage = memoryStorage() // of the process with the accounts
  const settings = { adapter, fee, storage, outboundTimeoutMs: 60_000 }
  const wallets = split ? await startSplit(settings) : await startWhole(settings)
  const { baseUrl } = wallets.resource
  return {
    baseUrl,
    auth: `${wallets.authUrl}/auth`,
    op: baseUrl,
    alice: `${baseUrl}/alice`,
    bob: `${baseUrl}/bob`,
    carol: `${baseUrl}/carol`,
    aliceKey: await accountKey(storage.secrets, 'alice'),
    async stop() {
      await Promise.all([wallets.resource.stop(), wallets.auth?.stop()])
    },
  }
}

interface Wallets {
  readonly authUrl: string
  readonly resource: RunningWallet
  readonly auth?: RunningWallet
}

type WalletSettings = Required<
  Pick<StartOptions, 'adapter' | 'fee' | 'storage' | 'outboundTimeoutMs'>
>

async function startWhole(settings: WalletSettings): Promise<Wallets> {
  const resource = await startWallet({ ...settings, port: await freePort() })
  return { authUrl: resource.baseUrl, resource }
}

async function startSplit(settings: WalletSettings): Promise<Wallets> {
  const { adapter, outboundTimeoutMs } = settings
  const port = await freePort()
  const authUrl = `http://localhost:${port}`
  const resource = await startWallet({
    ...settings,
    port: await freePort(),
    role: { name: 'resource', authUrl },
  })
  const { baseUrl, wallet } = resource
  const resourceServerKey = wallet.resourceServerKey ?? ''
  const role = { name: 'auth', authUrl, resourceServerKey } as const
  return {
    authUrl,
    resource,
    auth: await startWallet({ adapter, port, baseUrl, role, outboundTimeoutMs }),
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
  const interact_ref = location?.searchParams.get('interact_ref') ?? ''
  const { uri: url, access_token } = grant.continue
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
