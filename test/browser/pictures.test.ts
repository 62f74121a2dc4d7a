import { generateKeyPairSync } from 'node:crypto'
import { startPageOf } from 'create-open-payments-server/wallet/start-page/page'
import { requestLog } from 'create-open-payments-server/wallet/start-page/requests'
import {
  type AccountLimitSettings,
  createPages,
  formTokens,
  html,
  localeFor,
  loginScreen,
  type Owner,
  page as pageOf,
} from 'open-payments-pages'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Handler, HttpResponse } from '../../src/entry-adapter.js'
import type { Clock, Limits, MayPay, SpendingLimit } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { publishedKeys, testKey } from '../support/keys.js'
import { createSpendingWorld, euroReceiver, pay, usd } from '../support/spending.js'
import { alice, interactionId, origin, withFinish } from '../support/world.js'
import {
  type Browser,
  expectToFitAPhone,
  hasBrowser,
  launched,
  newPage,
  type Page,
  violations,
} from './chromium.js'

/** Whether to write the pictures of the documentation, which no other run changes. */
const writes = process.env['TEST_PICTURES'] !== undefined

const design = {
  name: 'Your wallet',
  logo: html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" fill="var(--accent)"/>
<path d="M8 12h16v10H8zM18 17h6" fill="none" stroke="var(--on-accent)" stroke-width="2.5"/></svg>`,
}
const accounts = [
  { url: alice, publicName: 'Everyday', assetCode: 'USD', assetScale: 2, balance: 123_456n },
  { url: `${origin}/savings`, publicName: 'Savings', assetCode: 'USD', assetScale: 2 },
  { url: `${origin}/travel`, publicName: 'Travel', assetCode: 'EUR', assetScale: 2 },
]
const formKey = new Uint8Array(32)
const monthly = { debitAmount: usd(2500), interval: 'R12/2026-12-01T00:00:00Z/P1M' }
const names: Readonly<Record<string, string>> = {
  'https://shop.example': 'Green Energy',
  'https://music.example': 'Tunes',
}

/** A wallet of Alice, and its pages. */
function walletOf(owner: Partial<Owner> = {}, accountLimits?: AccountLimitSettings) {
  const clock = manualClock()
  const clientKeys = publishedKeys()
  const displayOf = async (uri: string) => ({ uri, ...(names[uri] && { name: names[uri] }) })
  const auth = { clientKeys: { ...clientKeys, displayOf } }
  const policy = { ...(accountLimits && { accountLimits: accountLimits.of }) }
  const resources = { policy: { ...policy, mayPay: confirmedIfLarge(clock) } }
  const world = createSpendingWorld({ clock, auth, resources })
  const pages = createPages({
    auth: world.auth,
    resources: world.resources,
    ownerOf: () => ({ id: 'alice', name: 'Alice', ...owner }),
    accountsOf: () => accounts,
    receiverOf: () => ({
      name: 'City Tax Office',
      walletAddress: 'https://bank.example/taxes',
      amount: usd(12_500),
    }),
    signIn: () => ({ status: 401, headers: {} }),
    signOut: '/logout',
    formKey,
    signInAgain: () => ({ status: 303, headers: { location: '/login' } }),
    connectedAppsUrl: '/apps',
    keysUrl: '/keys',
    ...(accountLimits && { accountLimits }),
    design,
    clock,
  })

  async function asked(limits: Limits, { app = 'shop', identifier = [alice] } = {}) {
    clientKeys.publish(`https://${app}.example`, testKey(app))
    const client = world.client(app)
    const actions = ['create', 'read'] as const
    const [account] = identifier
    const item = { type: 'outgoing-payment', actions, limits } as const
    const access = [{ ...item, ...(account !== undefined && { identifier: account }) }]
    const { body } = await client.request(access, withFinish)
    return { client, id: interactionId(body.interact.redirect), body }
  }

  /** Approves what an app asks. */
  async function approved(limits: Limits, app: string) {
    const { client, id, body } = await asked(limits, { app })
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    const result = await world.auth.interactions.approve(id, approval)
    if (!result.ok || result.redirect === undefined) throw new Error('it is not approved')
    const reference = new URL(result.redirect).searchParams.get('interact_ref') ?? ''
    const { body: issued } = await client.continue(body.continue, reference)
    return { client, id, token: issued.access_token.value as string }
  }

  /** Approves what an app asks, and pays for it. */
  async function connected(limits: Limits, app: string, spent: number) {
    const { client, id, token } = await approved(limits, app)
    const { status, body: payment } = await pay(client, token, spent)
    expect(status).toBe(201)
    const { outgoingPayments } = world.resources
    const paymentId = payment.id.split('/').at(-1)
    const totals = { sentAmount: usd(spent), deliveredAmount: usd(spent), final: true }
    expect(await outgoingPayments.begin(paymentId)).toMatchObject({ ok: true })
    expect(await outgoingPayments.reportSent(paymentId, totals)).toMatchObject({ ok: true })
    clock.advance(86_400_000)
    return id
  }

  /** Asks for a payment that Alice has to confirm. Returns the URL of the page. */
  async function waiting(value: number): Promise<string> {
    const { client, token } = await approved({}, 'shop')
    const { body } = await pay(client, token, value, { incomingPayment: euroReceiver })
    return body.error.details.url
  }

  const get = (handle: Handler, url: string) =>
    handle({ method: 'GET', url, headers: [], body: new Uint8Array() })
  const consent = (id: string) => get(pages.consent, `/consent/${id}`)
  const confirmation = (url: string) => get(pages.confirmation, new URL(url).pathname)
  const apps = (query = '') => get(pages.connectedApps, `/apps${query}`)
  async function limit(form: Readonly<Record<string, string>>) {
    const token = await formTokens(formKey).value('account-limits', 'alice')
    const body = new TextEncoder().encode(`${new URLSearchParams({ token, ...form })}`)
    const posted = { method: 'POST', url: '/apps?limits', headers: [], body }
    const { headers } = await pages.connectedApps(posted)
    return apps(headers['location'])
  }
  return { world, asked, connected, waiting, consent, confirmation, apps, limit }
}

/** Lets the owner confirm payments above 50.00, within 15 minutes. */
function confirmedIfLarge({ now }: Clock): MayPay {
  return ({ outgoingPaymentId: id, debitAmount: { value } }) => {
    if (BigInt(value) <= 5_000n) return { ok: true }
    const url = `${origin}/confirm/${id}`
    return { ok: false, refusal: 'confirmation_required', url, until: now() + 900_000 }
  }
}

async function consentTo(limits: Limits, owner: Partial<Owner> = {}, identifier = [alice]) {
  const wallet = walletOf(owner)
  return wallet.consent((await wallet.asked(limits, { identifier })).id)
}

/** Two apps: one that has spent a part of its limit, and one that is paused. */
async function connectedApps(owner: Partial<Owner> = {}): Promise<HttpResponse> {
  const wallet = walletOf(owner)
  const id = await wallet.connected(
    { debitAmount: usd(2000), interval: 'R/2026-11-01T00:00:00Z/P1M' },
    'music',
    999,
  )
  const [grantId = ''] = id.split('.')
  const conditions = { pausedUntil: Date.UTC(2027, 0, 4, 14) }
  await wallet.world.auth.grants.amend(grantId, { resourceOwner: 'alice', conditions })
  await wallet.connected(
    { debitAmount: usd(5000), interval: 'R12/2026-11-01T00:00:00Z/P1M' },
    'shop',
    3150,
  )
  return wallet.apps()
}

async function connectedApp(): Promise<HttpResponse> {
  const wallet = walletOf()
  const limits = { debitAmount: usd(5000), interval: 'R12/2026-11-01T00:00:00Z/P1M' }
  const [grantId = ''] = (await wallet.connected(limits, 'shop', 3150)).split('.')
  const conditions = {
    limits: [{ debitAmount: usd(2000), interval: 'R/2024-01-01T00:00:00Z/P1D' }],
  }
  await wallet.world.auth.grants.amend(grantId, { resourceOwner: 'alice', conditions })
  return wallet.apps(`?app=${grantId}`)
}

/**
 * The limits for all apps of an account, of which two apps have spent a part, and a form: one that is refused, or one
 * that leads to the check of a limit.
 */
async function limitsForAllApps(form: Readonly<Record<string, string>>): Promise<HttpResponse> {
  const limits: readonly SpendingLimit[] = [
    { debitAmount: usd(10_000), payments: 20, interval: 'R/2024-01-01T00:00:00Z/P1M' },
    { payments: 5, interval: 'R/2024-01-01T00:00:00Z/P1D' },
  ]
  const of = async (url: string) => (url === alice ? limits : [])
  const wallet = walletOf({}, { of, set: async () => false })
  for (const [app, spent] of [
    ['music', 999],
    ['shop', 3150],
  ] as const) {
    await wallet.connected({ debitAmount: usd(5000) }, app, spent)
  }
  return wallet.limit({ do: 'limit', payments: '', ...form })
}

const unreadable = {
  account: `${origin}/savings`,
  interval: 'R/2024-01-01T00:00:00Z/P1W',
  most: '12,5,0',
}
const lowered = { account: alice, interval: 'R/2024-01-01T00:00:00Z/P1M', most: '80' }

async function answered(): Promise<HttpResponse> {
  const wallet = walletOf()
  const { id } = await wallet.asked(monthly)
  const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
  await wallet.world.auth.interactions.approve(id, approval)
  return wallet.consent(id)
}

/** A payment that arrives in another asset. */
async function confirmation(): Promise<HttpResponse> {
  const wallet = walletOf()
  return wallet.confirmation(await wallet.waiting(12_000))
}

async function refused(): Promise<HttpResponse> {
  const locale = localeFor({ headers: [] })
  return pageOf(loginScreen({ locale, refusedName: 'alice' }), { locale, design, status: 401 })
}

/** The start page of a created wallet, after a payment and a refused request. */
async function startPage(): Promise<HttpResponse> {
  const log = requestLog()
  const client = { method: 'POST', wallet: 'http://localhost:3000', keyid: 'start-page-1' }
  const made = [
    { path: '/incoming-payments', operation: 'createIncomingPayment', status: 201, ms: 9 },
    { path: '/quotes', operation: 'createQuote', status: 201, ms: 6 },
    { path: '/outgoing-payments', operation: 'createOutgoingPayment', status: 201, ms: 14 },
  ]
  for (const each of made) log.add({ ...client, at: '2026-12-01T10:00:00.000Z', ...each })
  log.add({
    ...client,
    keyid: 'shop-1',
    at: '2026-12-01T10:00:41.000Z',
    path: '/outgoing-payments',
    operation: 'createOutgoingPayment',
    status: 401,
    ms: 2,
    code: 'invalid_signature',
    refusal: 'digest_mismatch',
    reason: 'the body does not match its Content-Digest',
  })
  const [sender, receiver] = ['http://localhost:3000/alice', 'http://localhost:3000/bob']
  const { privateKey } = generateKeyPairSync('ed25519')
  const show = startPageOf({
    baseUrl: 'http://localhost:3000',
    paths: { page: '/', below: '/start-page' },
    title: 'Your wallet',
    intro: html`<p>It runs. Owners sign in as <code>alice</code> or <code>bob</code>.</p>`,
    accounts: async () => [
      {
        url: sender,
        name: 'Alice',
        balance: 9_500n,
        assetCode: 'USD',
        assetScale: 2,
        movements: [{ at: 1, kind: 'sent', amount: usd(500), other: receiver }],
      },
      {
        url: receiver,
        name: 'Bob',
        balance: 10_500n,
        assetCode: 'USD',
        assetScale: 2,
        movements: [{ at: 1, kind: 'received', amount: usd(500) }],
      },
    ],
    order: { from: sender, to: receiver, amount: usd(500) },
    client: () => ({ walletAddress: 'http://localhost:3000/shop', keyId: 'app-1', privateKey }),
    commands: [
      ['See what clients see first', `curl ${sender}`],
      ['Check the wallet', `npx open-payments-doctor --allow-private ${sender}`],
    ],
    log,
    design: { name: 'Wallet' },
  })
  const response = await show({ method: 'GET', url: '/', headers: [], body: new Uint8Array() })
  if (response === undefined) throw new Error('there is no page')
  return response
}

interface Picture {
  readonly name: string
  readonly width?: number
  readonly scheme?: 'dark'
  readonly of: () => Promise<HttpResponse>
}

const pictures: readonly Picture[] = [
  { name: 'consent-phone', of: () => consentTo(monthly) },
  { name: 'consent-desktop', width: 900, of: () => consentTo(monthly) },
  { name: 'consent-dark', scheme: 'dark', of: () => consentTo(monthly) },
  { name: 'consent-arabic', of: () => consentTo(monthly, { language: 'ar' }) },
  { name: 'consent-german', of: () => consentTo(monthly, { language: 'de' }) },
  {
    name: 'consent-account',
    of: () =>
      consentTo(
        { debitAmount: usd(4999), receiver: 'https://bank.example/incoming-payments/usd-1' },
        {},
        [],
      ),
  },
  { name: 'consent-any-amount', of: () => consentTo({}) },
  {
    name: 'consent-once',
    of: () =>
      consentTo({
        debitAmount: usd(12_500),
        receiver: 'https://bank.example/incoming-payments/usd-1',
      }),
  },
  { name: 'connected-apps', of: () => connectedApps() },
  { name: 'connected-apps-dark', scheme: 'dark', of: () => connectedApps() },
  { name: 'connected-app', of: connectedApp },
  { name: 'account-limits', of: () => limitsForAllApps(unreadable) },
  { name: 'limit-check', of: () => limitsForAllApps(lowered) },
  { name: 'already-answered', of: answered },
  { name: 'confirmation', of: confirmation },
  { name: 'login', of: refused },
  { name: 'start-page', width: 900, of: startPage },
  { name: 'start-page-phone', of: startPage },
  { name: 'start-page-dark', scheme: 'dark', of: startPage },
]

describe('in Chromium, the pages of the package', () => {
  if (!hasBrowser) return test.skip('skipped: run .ci/browser', () => {})

  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launched()
    page = await newPage(await browser.createBrowserContext())
  })
  afterAll(() => browser?.close())

  test.each(pictures)('look as in $name, and break no rule of axe', async (picture) => {
    const { name, width = 390, scheme = 'light', of } = picture
    const { body = '' } = await of()
    expect(body).toContain('<h1')
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    await page.setViewport({ width, height: 300, deviceScaleFactor: 1.75 })
    await page.setContent(body)
    expect(await violations(page)).toEqual([])
    if (writes)
      await page.screenshot({
        path: `docs/pictures/${name}.webp`,
        type: 'webp',
        quality: 60,
        fullPage: true,
      })
    await expectToFitAPhone(page)
  })
})
