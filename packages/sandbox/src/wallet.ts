import { randomBytes } from 'node:crypto'
import { design } from 'create-open-payments-server/wallet/design'
import type { Account } from 'create-open-payments-server/wallet/ledger'
import { ownReceivers, type Receivers } from 'create-open-payments-server/wallet/pricing'
import { createWallet } from 'create-open-payments-server/wallet/wallet'
import { html } from 'open-payments-pages'
import {
  consumeEvents,
  type EventHandler,
  type Handler,
  type MayReceive,
  type RefusalReport,
  type ResourceServer,
  remoteClientKeys,
  runSweeps,
} from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import type { SandboxClock } from './clock.js'
import { type ConsentRules, choiceFor, type DecidedByRule, decideByRule, isOf } from './consent.js'
import { expireGrant } from './expire-grant.js'
import type { Faults } from './faults.js'
import { newSandboxKey, type SandboxKey } from './keys.js'
import { cookieFor, openLogin } from './login.js'
import { memoryDatabase, memoryKeys, memoryLimits, unlimitedLedger } from './memory.js'
import { type Owners, ownersOf } from './owners.js'
import { faultsOfPayments } from './payment-faults.js'
import { payer } from './payments.js'
import type { Seen } from './seen.js'

/** An account to open. */
export interface NewAccount {
  /** The last segment of its wallet address. */
  readonly name: string
  readonly publicName: string
  readonly assetCode: string
  /** Default 2. */
  readonly assetScale?: number
}

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
  readonly accounts: readonly NewAccount[]
  /** Returns the other wallet, which exists before the first request. */
  readonly other: () => Pick<SandboxWallet, 'resources' | 'reviewEndOf'>
  readonly consent: ConsentRules
  readonly clock: SandboxClock
  readonly faults: Faults
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
  readonly resources: ResourceServer
  /** With their current keys. */
  accounts(): readonly AccountWithKey[]
  /** Serves a request, except for the pages of the sandbox itself. */
  handle(request: HttpRequest): Promise<HttpResponse<string | Uint8Array>>
  /** When the review of what a payment from this wallet brings ends, in milliseconds since 1970, if there is one. */
  reviewEndOf(paymentId: string): number | undefined
  /** The actions of the owners of its accounts without a page. */
  readonly owners: Owners
  /**
   * Ends the grant to which an access token or continuation token belongs.
   *
   * @param claim is called if the grant is of this wallet and has not ended. If it returns false, the grant stays.
   */
  expireGrant(token: string, claim: () => boolean): Promise<void>
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

/** Opens a wallet in memory: a created wallet with keys that can be rotated, faults, and consent by rule. */
export function openWallet(settings: WalletSettings): SandboxWallet {
  const { baseUrl, clock, seen, outboundTimeoutMs: timeoutMs, stopping } = settings
  const database = memoryDatabase()
  const firstKeys = new Map(
    settings.accounts.map(({ name }) => [`${baseUrl}/${name}`, newSandboxKey(`${name}-1`)]),
  )
  const rotated = new Map<string, SandboxKey>()
  const accounts = () => settings.accounts.map(accountOf)
  const owned = () => accounts().map(ownedAccount)
  const login = openLogin(
    baseUrl,
    settings.accounts.map(({ name }) => name),
  )

  const clientKeys = remoteClientKeys({ allowLoopback: true, timeoutMs })
  const onRefusal = (report: RefusalReport) => {
    const request = seen()
    if (request !== undefined) request.refusal = report
  }
  const onError = (error: unknown) => {
    // Tests set the clock back, and connections between the wallets end when the sandbox stops.
    if (stopping.aborted || (error as { code?: unknown }).code === 'ERR_CLOCK') return
    console.error(error)
  }
  const receivers: Receivers = (url) =>
    ownReceivers(
      wallet.resources.incomingPayments,
      ownReceivers(settings.other().resources.incomingPayments),
    )(url)
  const { mustConfirm, lacksFunds, failureOf, reviewEndOf } = faultsOfPayments(
    settings.faults,
    baseUrl,
    clock,
    (fault) => seen()?.faults.push(fault),
  )
  const mayReceive: MayReceive = (query) => {
    if (query.type === 'creation') return { ok: true }
    const { transferId: id } = query
    const retryAt = reviewEndOf(id) ?? settings.other().reviewEndOf(id) ?? 0
    return clock.now() < retryAt ? { ok: false, refusal: 'review_required', retryAt } : { ok: true }
  }
  const secrets = { sessionSecret: randomBytes(32), paymentDetailsSecret: randomBytes(32) }
  const wallet = createWallet({ baseUrl, ...secrets, demoPassword: '' }, database, {
    design: { ...design, footer: html`<a href="/sandbox">Page of the sandbox</a>` },
    ledger: unlimitedLedger(owned, lacksFunds),
    keys: memoryKeys(),
    limits: memoryLimits(),
    login,
    receivers,
    rateLimit: () => seen()?.limit?.(),
    mustConfirm,
    mayReceive,
    clientKeys,
    clock,
    signatures: { clock: { now: () => Date.now() } }, // clients know only the real time
    onRefusal,
    onError,
  })
  const { auth, resources, pages } = wallet

  const inProgress = new Set<Promise<void>>()
  const payees = [resources.incomingPayments]
  const pay = counted(
    payer(resources, () => [...payees, settings.other().resources.incomingPayments], failureOf),
    inProgress,
  )
  const events = consumeEvents([auth.events, resources.events], pay, { pollMs, onError })
  const sweeps = runSweeps([auth, resources], { onError })

  /** Serves the page for consent: a rule decides, or the visitor acts as the owner of the account. */
  async function consent(request: HttpRequest): Promise<HttpResponse> {
    if (request.method !== 'GET') return pages.consent(request)
    const [path = ''] = request.url.split('?', 1)
    const id = path.slice('/consent/'.length)
    const decided = await decideByRule(id, settings.consent, auth.interactions, owned())
    if (decided !== undefined) {
      const known = seen()
      if (known !== undefined) known.decided = decided
      return returned(decided)
    }
    const view = await auth.interactions.get(id)
    if (view === undefined) return pages.consent(request)
    const { account = owned()[0] } = choiceFor(view, settings.consent, owned())
    return shownTo({ baseUrl, owner: account?.owner ?? '' }, pages.consent, request)
  }

  /** Serves the page that confirms a payment: the visitor acts as the owner of the account. */
  async function confirmation(request: HttpRequest): Promise<HttpResponse> {
    const [path = ''] = request.url.split('?', 1)
    const payment = await resources.outgoingPayments.toConfirm(path.slice('/confirm/'.length))
    const { resourceOwner } = payment ?? {}
    return request.method !== 'GET' || resourceOwner === undefined
      ? pages.confirmation(request)
      : shownTo({ baseUrl, owner: resourceOwner }, pages.confirmation, request)
  }

  const served = [
    { path: '/consent/', handle: consent },
    { path: '/confirm/', handle: confirmation },
    { path: '/login/', handle: pages.login },
    { path: '/apps/', handle: pages.connectedApps },
    { path: '/keys/', handle: pages.keys },
    { path: '/send/', handle: pages.send },
  ]

  return {
    baseUrl,
    resources,
    accounts,
    async handle(request) {
      const path = request.url.split('?', 1)[0] ?? ''
      const page = served.find((each) => `${path}/`.startsWith(each.path))
      return page === undefined ? wallet.handle(request) : page.handle(request)
    },
    reviewEndOf,
    owners: ownersOf(wallet, database.store, owned),
    expireGrant: (token, claim) => expireGrant(database.store, token, clock.now(), claim),
    rotateKey(name) {
      const account = accounts().find(({ walletAddress }) => isOf(name, walletAddress))
      if (account === undefined) return undefined
      const { walletAddress, keyId } = account
      const [, base, number] = /^(.*)-(\d+)$/.exec(keyId) ?? []
      const key = newSandboxKey(`${base}-${Number(number) + 1}`)
      rotated.set(walletAddress, key)
      return { walletAddress, key }
    },
    restoreKey(name) {
      for (const url of firstKeys.keys()) if (isOf(name, url)) rotated.delete(url)
    },
    forgetKeys: clientKeys.forget,
    async settle() {
      // This call delivers the events that the consumer has not begun to deliver.
      while ((await resources.events.drain(pay)).delivered > 0);
      await Promise.allSettled(inProgress)
    },
    async sweep() {
      for (const server of [auth, resources]) {
        while ((await server.sweep({ signal: stopping })).more);
      }
    },
    async stop() {
      await Promise.all([events.stop(), sweeps.stop()])
    },
  }

  function accountOf({ name, publicName, assetCode, assetScale = 2 }: NewAccount): AccountWithKey {
    const walletAddress = `${baseUrl}/${name}`
    const key = rotated.get(walletAddress) ?? firstKeys.get(walletAddress)
    if (key === undefined) throw new Error(`${name} has no key`)
    return { name, walletAddress, publicName, assetCode, assetScale, ...key }
  }
}

function ownedAccount(account: AccountWithKey): Account {
  const { name: owner, walletAddress: url, publicName, assetCode, assetScale } = account
  const { kid, x } = account.publicKeyJwk
  return { url, owner, publicName, assetCode, assetScale, keys: [{ kid, x }], balance: 0n }
}

/** Shows a page to an owner, and signs the visitor in as this owner. */
async function shownTo(
  { baseUrl, owner }: { readonly baseUrl: string; readonly owner: string },
  page: Handler,
  request: HttpRequest,
): Promise<HttpResponse> {
  const cookie = cookieFor(baseUrl, owner)
  const others = request.headers.filter(([name]) => name.toLowerCase() !== 'cookie')
  const response = await page({ ...request, headers: [...others, ['cookie', cookie]] })
  if (response.status !== 200) return response
  return { ...response, headers: { ...response.headers, 'set-cookie': cookie } }
}

/** Notes the deliveries that are in progress. */
function counted(handler: EventHandler, inProgress: Set<Promise<unknown>>): EventHandler {
  return async (event, delivery) => {
    const delivering = Promise.resolve(handler(event, delivery))
    inProgress.add(delivering)
    return delivering.finally(() => inProgress.delete(delivering))
  }
}

/** The response of a consent page after the decision. */
function returned({ redirect }: DecidedByRule): HttpResponse {
  const headers = { 'cache-control': 'no-store', 'referrer-policy': 'strict-origin' }
  if (redirect !== undefined) return { status: 303, headers: { ...headers, location: redirect } }
  const body = 'Decided by a rule of the sandbox. The client continues the grant.\n'
  return { status: 200, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body }
}
