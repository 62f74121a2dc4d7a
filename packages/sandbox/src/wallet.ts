import { createPrivateKey, type KeyObject } from 'node:crypto'
import {
  type EventHandler,
  guardedFetch,
  type MayPay,
  type RefusalReport,
  remoteClientKeys,
  type WalletAddress,
} from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import {
  type Accounts,
  accountKey,
  demoAccounts,
  type NewAccount,
} from '../../../examples/wallet/accounts.js'
import { walletBackground } from '../../../examples/wallet/background.js'
import { memoryStorage } from '../../../examples/wallet/memory-storage.js'
import { ilpAddressOf, peerWallet } from '../../../examples/wallet/rail.js'
import { createWallet } from '../../../examples/wallet/wallet.js'
import type { Grant } from '../../../src/core/grant/record.js'
import { parseCredential } from '../../../src/protocol/credential.js'
import type { SandboxClock } from './clock.js'
import { type ConsentRules, decideByRule, isOf } from './consent.js'
import { newSandboxKey, type SandboxKey, sandboxKey } from './keys.js'
import { receiverClient } from './receiver-client.js'
import type { Seen } from './requests.js'

/** An account of the sandbox, which is a client too: its public key is in its `jwks.json`. */
export interface AccountWithKey extends SandboxKey {
  readonly name: string
  readonly walletAddress: string
  readonly publicName: string
  readonly assetCode: string
  readonly assetScale: number
}

export interface WalletSettings {
  readonly baseUrl: string
  /** The origin of the other wallet. */
  readonly peerUrl: string
  /** The secret that both wallets share. */
  readonly token: string
  readonly accounts: readonly NewAccount[]
  readonly consent: ConsentRules
  readonly clock: SandboxClock
  /** The names under which the pages are served, besides those of this machine. */
  readonly hostNames: readonly string[]
  /** The time limit for a request to another server. */
  readonly outboundTimeoutMs: number
  /** Returns what is known of the request that is being served. */
  readonly seen: () => Seen | undefined
  /** Aborted when the sandbox stops. */
  readonly stopping: AbortSignal
}

/** One of the two wallets. */
export interface SandboxWallet {
  readonly baseUrl: string
  /** With their current keys. */
  accounts(): readonly AccountWithKey[]
  /** Serves a request, except for the pages of the sandbox itself. */
  handle(request: HttpRequest): Promise<HttpResponse<string | Uint8Array>>
  /** Ends the grant to which an access token or continuation token belongs. */
  expireGrant(token: string): Promise<void>
  /** Replaces the key that an account publishes. Returns `undefined` if no account has this name or URL. */
  rotateKey(
    account: string,
  ): { readonly walletAddress: string; readonly key: SandboxKey } | undefined
  /** Publishes the first key of an account again. */
  restoreKey(account: string): void
  /** Forgets the keys of a client that has rotated them. */
  forgetKeys(walletAddress: string): void
  /** Resolves when all payments have been sent that were created before. */
  settle(): Promise<void>
  /** Lets everything expire that is past its time. */
  sweep(): Promise<void>
  stop(): Promise<void>
}

/** Short enough that a client that polls once sees its payment sent. */
const pollMs = 25

/** Opens a wallet in memory: the example wallet with keys that can be rotated, faults, and consent by rule. */
export async function openWallet(settings: WalletSettings): Promise<SandboxWallet> {
  const { baseUrl, clock, seen, outboundTimeoutMs, stopping } = settings
  const storage = memoryStorage()
  const { store, secrets } = storage
  const opened = await demoAccounts(baseUrl, secrets, storage.keys, settings.accounts)
  const firstKeys = new Map<string, SandboxKey>()
  for (const { name } of [...settings.accounts, { name: 'operator' }]) {
    firstKeys.set(`${baseUrl}/${name}`, sandboxKey(`${name}-1`, await accountKey(secrets, name)))
  }
  const rotated = new Map<string, SandboxKey>()
  const keyOf = (url: string) => rotated.get(url) ?? firstKeys.get(url)
  const accounts = withKeys(opened, keyOf, rotated)
  const { operator } = accounts

  const ilpAddress = ilpAddressOf(baseUrl)
  const clientKeys = remoteClientKeys({
    allowLoopback: true,
    timeoutMs: outboundTimeoutMs,
    ownAccounts: { baseUrl, walletAddresses: accounts.published },
  })
  const fetch = guardedFetch({ allowLoopback: true, timeoutMs: outboundTimeoutMs })
  const mayPay: MayPay = () =>
    seen()?.lacksFunds === true
      ? { ok: false, refusal: 'funds_insufficient', reason: 'a fault of the sandbox' }
      : { ok: true }
  const onRefusal = (report: RefusalReport) => {
    const request = seen()
    if (request !== undefined) request.refusal = report
  }
  const onError = (error: unknown) => {
    // Tests set the clock back, and connections between the wallets end when the sandbox stops.
    if (stopping.aborted || (error as { code?: unknown }).code === 'ERR_CLOCK') return
    console.error(error)
  }
  const created = await createWallet({
    baseUrl,
    storage,
    rail: { ilpAddress, peers: [peerWallet(settings.peerUrl, ilpAddress)], token: settings.token },
    accounts,
    clock,
    mayPay,
    clientKeys,
    openClient: async () => receiverClient(operator, fetch),
    hostNames: settings.hostNames,
    outboundTimeoutMs,
    onRefusal,
    onError,
  })
  const { interactions, sender } = created
  if (interactions === undefined || sender === undefined) throw new Error('the wallet has no role')

  const inProgress = new Set<Promise<void>>()
  const wallet = {
    ...created,
    sender: (stopping: AbortSignal) => counted(sender(stopping), inProgress),
  }
  const background = walletBackground(wallet, {
    settle: 'auto',
    pollMs,
    onError,
    // A payment that has to wait for its receiver is sent again.
    onUndelivered: ({ error, retryAt }) => retryAt === undefined && onError(error),
  })

  return {
    baseUrl,
    accounts: () => settings.accounts.flatMap(({ name }) => accountOf(name) ?? []),
    async handle(request) {
      const path = request.url.split('?', 1)[0] ?? ''
      if (request.method === 'GET' && path.startsWith('/consent/')) {
        const id = path.slice('/consent/'.length)
        const decided = await decideByRule(id, settings.consent, interactions, accounts)
        if (decided !== undefined) {
          const request = seen()
          if (request !== undefined) request.consent = 'by rule'
          return returned(decided)
        }
      }
      const mount = created.mounts.find((each) => `${path}/`.startsWith(`${each.path}/`))
      return mount === undefined ? { status: 404, headers: {} } : mount.handle(request)
    },
    async expireGrant(token) {
      const { grantId } = parseCredential('opa_', token) ?? parseCredential('opc_', token) ?? {}
      if (grantId === undefined) return
      const [found] = await store.load([{ kind: 'grant', id: grantId }])
      const grant = found as Grant | undefined
      if (grant === undefined || grant.finalized !== undefined) return
      const { version: expectedVersion, lists, dueAt, interaction } = grant
      const expiresAt = clock.now()
      const expired =
        grant.granted === undefined && interaction !== undefined
          ? { interaction: { ...interaction, expiresAt } }
          : { expiresAt }
      const next = { ...grant, version: expectedVersion + 1, ...expired }
      const previous = { ...(lists && { lists }), ...(dueAt !== undefined && { dueAt }) }
      await store.commit({
        changes: [{ kind: 'grant', next, expectedVersion, previous }],
        guards: [],
      })
    },
    rotateKey(name) {
      const walletAddress = [...firstKeys.keys()].find((url) => isOf(name, url))
      const current = walletAddress && keyOf(walletAddress)
      if (!current) return undefined
      const [, base, number] = /^(.*)-(\d+)$/.exec(current.keyId) ?? []
      const key = newSandboxKey(`${base}-${Number(number) + 1}`)
      rotated.set(walletAddress, key)
      return { walletAddress, key }
    },
    restoreKey(name) {
      for (const url of firstKeys.keys()) if (isOf(name, url)) rotated.delete(url)
    },
    forgetKeys: clientKeys.forget,
    async settle() {
      // The consumer leaves to this call what it has not begun to deliver.
      const handler = counted(sender(stopping), inProgress)
      for (const { drain } of created.events) while ((await drain(handler)).delivered > 0);
      await Promise.allSettled(inProgress)
    },
    sweep: () => created.sweep(stopping),
    async stop() {
      await background.stop()
    },
  }

  function accountOf(name: string): AccountWithKey | undefined {
    const walletAddress = `${baseUrl}/${name}`
    const account = accounts.all.find(({ url }) => url === walletAddress)
    const key = keyOf(walletAddress)
    if (account === undefined || key === undefined) return undefined
    const { publicName = name, assetCode, assetScale } = account
    return { name, walletAddress, publicName, assetCode, assetScale, ...key }
  }
}

/** The accounts with the keys that they publish now. */
function withKeys(
  opened: Accounts,
  keyOf: (url: string) => SandboxKey | undefined,
  rotated: ReadonlyMap<string, SandboxKey>,
): Accounts {
  async function current<Found extends WalletAddress>(found: Found | undefined) {
    const key = found && rotated.get(found.url)
    if (found === undefined || key === undefined) return found
    const { kid, x } = key.publicKeyJwk
    return { ...found, keys: [{ kid, x }, ...(found.keys ?? []).slice(1)] }
  }
  const { operator } = opened
  return {
    ...opened,
    find: async (url) => current(await opened.find(url)),
    published: { find: async (url) => current(await opened.published.find(url)) },
    operator: {
      walletAddress: operator.walletAddress,
      get keyId() {
        return keyOf(operator.walletAddress)?.keyId ?? operator.keyId
      },
      get privateKey(): KeyObject {
        const key = keyOf(operator.walletAddress)
        return key === undefined ? operator.privateKey : createPrivateKey(key.privateKeyPem)
      },
    },
  }
}

/** Notes the deliveries that are in progress. */
function counted(handler: EventHandler, inProgress: Set<Promise<void>>): EventHandler {
  return async (event, delivery) => {
    const delivering = Promise.resolve(handler(event, delivery))
    inProgress.add(delivering)
    await delivering.finally(() => inProgress.delete(delivering))
  }
}

/** The response of a consent page after the decision. */
function returned(redirect: string | null): HttpResponse {
  const headers = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }
  if (redirect !== null) return { status: 303, headers: { ...headers, location: redirect } }
  const body = 'Decided by a rule of the sandbox. The client continues the grant.\n'
  return { status: 200, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body }
}
