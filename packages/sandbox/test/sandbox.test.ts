import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AuthenticatedClient,
  isPendingGrant,
  OpenPaymentsClientError,
} from '@interledger/open-payments'
import type { InteractionView } from 'open-payments-server'
import { failure, tokenWithoutConsent, usd } from 'open-payments-test-support/official-client'
import { describe, expect, test } from 'vitest'
import { choiceFor } from '../src/consent.js'
import { type Fault, type Sandbox, startSandbox } from '../src/index.js'
import {
  answer,
  askToPay,
  clientFor,
  finishUri,
  invoiceOf,
  payerOf,
  visit,
} from './support/payer.js'
import { shareSandbox } from './support/shared.js'

let sandbox: Sandbox
let client: AuthenticatedClient
shareSandbox({ approve: ['all'], deny: ['fumi'] }, (own, app) => {
  sandbox = own
  client = app
})

const addressOf = (name: string) => sandbox.account(name).walletAddress

describe('a payment between the wallets', () => {
  test.each([
    ['in one currency', 'alice', 'dana', '2500', '2500'],
    ['from dollars to euros', 'alice', 'emil', '2500', '2700'],
    ['from yen to euros', 'chie', 'emil', '1000', undefined],
    ['between accounts of one wallet', 'alice', 'bruno', '100', '108'],
  ])('%s arrives exactly', async (_, from, to, value, debited) => {
    const invoice = await invoiceOf(client, addressOf(to), value)
    const payer = await payerOf(client, addressOf(from))
    const payment = await payer.pay(invoice.id)
    if (debited !== undefined) expect(payment.debitAmount.value).toBe(debited)
    await expect.poll(async () => (await invoice.read()).completed).toBe(true)
    expect((await invoice.read()).receivedAmount?.value).toBe(value)
    await expect
      .poll(async () => (await payer.read(payment.id)).sentAmount)
      .toEqual(payment.debitAmount)
  })
})

test('the button of the page pays from one wallet to the other, with the consent of the owner', async () => {
  const html = { accept: 'text/html' }
  const open = async (url: string) => (await fetch(url, { headers: html })).text()
  const [, token = ''] = /name="token" value="([^"]+)"/.exec(await open(sandbox.url)) ?? []
  const press = (headers: Record<string, string>) => {
    const body = new URLSearchParams({ token })
    return fetch(`${sandbox.url}/pay`, { method: 'POST', redirect: 'manual', headers, body })
  }
  const [{ url: origin }] = sandbox.wallets
  for (const site of ['cross-site', 'same-site']) {
    expect((await press({ ...html, 'sec-fetch-site': site })).status).toBe(403)
  }
  const pressed = await press(html)
  const { location } = await visit(pressed.headers.get('location') ?? '')
  const paid = await fetch(`${location}`, { headers: html, redirect: 'manual' })
  const page = await open(new URL(paid.headers.get('location') ?? '', origin).href)
  expect(page.replace(/<[^>]+>/g, '')).toMatch(/Alice has paid Dana 5.00.USD\./)
})

describe('consent by rule', () => {
  test('approves at the first visit of the page, which redirects to the client', async () => {
    const { interact } = await askToPay(client, addressOf('alice'))
    const { status, location } = await visit(interact.redirect)
    expect([status, location?.href.startsWith(finishUri)]).toEqual([303, true])
    expect(location?.searchParams.get('interact_ref')).toBeTruthy()
    const consent = `approved by rule: all, for ${addressOf('alice')}`
    expect(sandbox.requests().at(-1)).toMatchObject({ status: 303, consent })
    expect(sandbox.requests().at(-1)).not.toHaveProperty('reason')
  })

  test('denies what a rule names, which outweighs all', async () => {
    const { interact, continue: next } = await askToPay(client, addressOf('fumi'))
    const { location } = await visit(interact.redirect)
    const reason = 'denied by rule: fumi'
    expect(sandbox.requests().at(-1)).toMatchObject({ status: 303, consent: reason, reason })
    const interact_ref = location?.searchParams.get('interact_ref') ?? ''
    const where = { url: next.uri, accessToken: next.access_token.value }
    expect(await failure(client.grant.continue(where, { interact_ref }))).toMatchObject({
      status: 401,
      code: 'request_denied',
    })
  })

  const subjectOf = (id: string) => ({ subject: { sub_ids: [{ format: 'uri', id }] } })
  const inAsset = (assetCode: string, identifier?: string) => {
    const limits = { debitAmount: { value: '100', assetCode, assetScale: 2 } }
    const item = { type: 'outgoing-payment', actions: ['create'], limits }
    return { access_token: { access: [{ ...item, ...(identifier && { identifier }) }] } }
  }
  test.each([
    ['the subject of another wallet', 'not this owner', () => subjectOf(addressOf('dana'))],
    [
      'a subject that is no account',
      'not this owner',
      () => subjectOf(`${sandbox.wallets[0].url}/nobody`),
    ],
    [
      'payments in a currency that no account has',
      'no account of this wallet is in XTS with scale 2',
      () => inAsset('XTS'),
    ],
    [
      'payments in a currency that the account does not have',
      'alice is in USD',
      () => inAsset('EUR', addressOf('alice')),
    ],
  ])('denies %s, because no owner here can approve it', async (_, reason, request) => {
    const redirect = await interactionOf(request())
    const { status, location } = await visit(redirect)
    expect([status, location?.href.startsWith(finishUri)]).toEqual([303, true])
    expect(sandbox.requests().at(-1)).toMatchObject({
      status: 303,
      reason: expect.stringMatching(`^denied, although the rule all approves: .*${reason}`),
    })
    expect(location?.searchParams.get('result')).toBe('grant_rejected')
    const again = await visit(redirect)
    expect([again.status, again.location]).toEqual([410, undefined]) // it says what was decided
  })
})

test.each([
  ['alice', 'dana'],
  ['dana', 'alice'],
])(
  'a limit that %s sets on the page of limits applies to all apps, and to payments to the other wallet',
  async (from, to) => {
    const own = await startSandbox({ port: 0, approve: ['all'], outboundTimeoutMs: 60_000 })
    const { walletAddress } = own.account(from)
    const page = new URL('/apps?limits', walletAddress)
    expect(await (await fetch(own.url, { headers: { accept: 'text/html' } })).text()).toContain(
      'href="/apps?limits"',
    )
    const post = (
      url: URL,
      fields: Readonly<Record<string, string>>,
      headers: Readonly<Record<string, string>> = {},
    ) => {
      const body = new URLSearchParams(fields)
      return fetch(url, { method: 'POST', redirect: 'manual', headers, body })
    }
    const login = await fetch(page, { redirect: 'manual' })
    const loginUrl = new URL(login.headers.get('location') ?? '', page)
    const { token, cookie: browser } = await questionAt(loginUrl)
    const signedIn = await post(loginUrl, { owner: from, token }, { cookie: browser })
    expect(new URL(signedIn.headers.get('location') ?? '', page)).toEqual(page)
    const cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
    const headers = { cookie }
    const save = async (interval: string, most: string) => {
      const text = await (await fetch(page, { headers })).text()
      const [, token = ''] = /name="token" value="([^"]+)"/.exec(text) ?? []
      const form = { token, account: walletAddress, do: 'limit', interval, most }
      const checked = (await post(page, form, headers)).headers.get('location') ?? ''
      const check = await fetch(new URL(checked, page), { headers })
      const question = await check.text()
      const [, shown] = /name="shown" value="([^"]+)"/.exec(question) ?? []
      if (shown === undefined) return check.status
      const [, answer = ''] = /name="token" value="([^"]+)"/.exec(question) ?? []
      const saved = { token: answer, shown: shown.replaceAll('&#34;', '"'), do: 'save' }
      return (await post(page, saved, headers)).status
    }

    await own.moveClock({ now: '2100-01-01T12:00:00Z' }) // no day ends during the test
    const payerAs = async (name: string) => payerOf(await clientFor(own, name), walletAddress)
    const [app, other] = [await payerAs('app'), await payerAs('bruno')]
    const receiver = await clientFor(own)
    const pay = async (payer: typeof app, value: string) => {
      const { id } = await invoiceOf(receiver, own.account(to).walletAddress, value)
      return payer.pay(id)
    }
    const daily = 'R/2024-01-01T00:00:00Z/P1D'
    const refused = { status: 403, code: 'not_permitted_now' }
    expect(await save(daily, '25')).toBe(303)
    await pay(app, '2000')
    expect(await failure(pay(other, '501'))).toMatchObject(refused)
    await pay(other, '400')
    expect(await save(daily, '24')).toBe(303)
    expect(await failure(pay(other, '1'))).toMatchObject(refused)
    // By the clock that was moved, the sign-in is too old to raise a limit.
    expect(await save(daily, '25')).toBe(403)
    await own.advance('P1D')
    await pay(await payerAs('bruno'), '2400') // earlier tokens have expired
    await own.stop()
  },
)

test('without a rule, visitors act as the owner on the page for consent, and choose whose other pages they see', async () => {
  const own = await startSandbox({ port: 0, outboundTimeoutMs: 60_000 })
  const [{ url }] = own.wallets
  const { redirect } = (await askToPay(await clientFor(own), own.account('alice').walletAddress))
    .interact
  const page = await fetch(redirect)
  const cookie = page.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const text = await page.text()
  expect(text).not.toContain('Balance') // an account can pay without limit
  const [, token = ''] = /name="token" value="([^"]+)"/.exec(text) ?? []
  const body = new URLSearchParams({ token, decision: 'approve' })
  const approved = await fetch(redirect, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie },
    body,
  })
  expect(approved.headers.get('location')).toContain('interact_ref')

  const asked = await fetch(`${url}/apps`, { redirect: 'manual' })
  expect([asked.status, asked.headers.get('location')]).toEqual([303, '/login?next=%2Fapps'])
  const login = `${url}/login?next=%2Fapps`
  const { text: question, cookie: browser, token: signInToken } = await questionAt(login)
  expect(question).toContain('value="alice"')
  const form = {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: browser },
    body: new URLSearchParams({ owner: 'alice', token: signInToken }),
  }
  const signedIn = await fetch(login, form as RequestInit)
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/apps'])
  for (const path of ['/keys', '/send']) {
    const toPath = await fetch(`${url}/login?next=${encodeURIComponent(path)}`, form as RequestInit)
    expect(toPath.headers.get('location')).toBe(path)
  }
  const session = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const apps = await fetch(`${url}/apps`, { headers: { cookie: session } })
  expect(apps.status).toBe(200)
  for (const site of ['cross-site', 'same-site', 'none']) {
    const foreign = { ...form, headers: { cookie: browser, 'sec-fetch-site': site } }
    expect((await fetch(login, foreign as RequestInit)).headers.get('set-cookie')).toBeNull()
  }
  const tokenless = { ...form, body: new URLSearchParams({ owner: 'alice' }) }
  expect((await fetch(login, tokenless as RequestInit)).headers.get('set-cookie')).toBeNull()
  const { cookie: another } = await questionAt(login)
  const elsewhere = { ...form, headers: { cookie: another } }
  expect((await fetch(login, elsewhere as RequestInit)).headers.get('set-cookie')).toBeNull()
  await own.stop()
})

/** Opens the login in a new browser. */
async function questionAt(login: URL | string) {
  const response = await fetch(login)
  const text = await response.text()
  const cookie = response.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  return { text, cookie, token: /name="token" value="([^"]+)"/.exec(text)?.[1] ?? '' }
}

/** Requests what needs consent at the first wallet, and returns the URL of the page. */
async function interactionOf(request: object): Promise<string> {
  const { authServer } = await client.walletAddress.get({ url: addressOf('alice') })
  const finish = { method: 'redirect', uri: finishUri, nonce: 'a-nonce' }
  const interact = { start: ['redirect'], finish }
  const grant = await client.grant.request({ url: authServer }, {
    ...request,
    interact,
  } as unknown as Parameters<AuthenticatedClient['grant']['request']>[1])
  if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
  return grant.interact.redirect
}

describe('a fault', () => {
  const plant = (fault: Fault) => sandbox.fault(fault)

  test('loses the response of a payment that was made', async () => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    const payer = await payerOf(client, addressOf('alice'))
    plant({ fault: 'lost-response', operation: 'createOutgoingPayment' })
    await expect(payer.pay(invoice.id)).rejects.toThrow(OpenPaymentsClientError)
    await expect.poll(async () => (await invoice.read()).completed).toBe(true)
    const lost = sandbox.requests().filter(({ fault }) => fault === 'lost-response')
    expect(lost.map(({ status }) => status)).toEqual([undefined])
  })

  test('delays a response', async () => {
    plant({ fault: 'slow', delayMs: 200, operation: 'getWalletAddress' })
    await client.walletAddress.get({ url: addressOf('alice') })
    expect(sandbox.requests().at(-1)).toMatchObject({ fault: 'slow', status: 200 })
    expect(sandbox.requests().at(-1)?.ms).toBeGreaterThanOrEqual(200)
    expect(sandbox.faults()).toEqual([])
  })

  test('makes a wallet unavailable for some requests', async () => {
    const [{ url: wallet }] = sandbox.wallets
    plant({ fault: 'unavailable', wallet, times: 2, retryAfterSeconds: 7 })
    const statuses = []
    for (const name of ['dana', 'alice', 'alice', 'alice']) {
      const { status, headers } = await fetch(addressOf(name))
      statuses.push([status, headers.get('retry-after'), headers.get('vary')])
    }
    expect(statuses).toEqual([
      [200, null, null],
      [503, '7', 'Authorization'],
      [503, '7', 'Authorization'],
      [200, null, null],
    ])
  })

  test('rotates the key of a client until the fault is removed', async () => {
    const old = await clientFor(sandbox, 'bruno')
    await invoiceOf(old, addressOf('dana'), '100')
    const { key, id } = plant({ fault: 'rotated-key', account: 'bruno' })
    expect(sandbox.account('bruno').keyId).toBe(key?.keyId)
    await expect(invoiceOf(old, addressOf('dana'), '100')).rejects.toMatchObject({ status: 400 })
    await invoiceOf(await clientFor(sandbox, 'bruno'), addressOf('dana'), '100')
    sandbox.clearFaults(id)
    await invoiceOf(old, addressOf('dana'), '100')
  })

  test('expires the grant of a request', async () => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    plant({ fault: 'expired-grant' })
    expect(await failure(invoice.read())).toMatchObject({ status: 401, code: 'invalid_token' })
    expect(sandbox.requests().at(-1)).toMatchObject({ fault: 'expired-grant', status: 401 })
    expect(sandbox.requests().at(-1)?.reason).toBeTruthy()
  })

  test('lets the next payment lack funds', async () => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    const payer = await payerOf(client, addressOf('alice'))
    plant({ fault: 'insufficient-funds' })
    const { id } = await payer.quote(invoice.id)
    for (let count = 0; count < 2; count += 1) {
      await expect(payer.create(id)).rejects.toMatchObject({ status: 403 })
      expect(sandbox.requests().at(-1)).toMatchObject({ refusal: 'funds_insufficient' })
    }
    await payer.pay(invoice.id)
    await expect.poll(async () => (await invoice.read()).completed).toBe(true)
  })

  test.each([
    ['failed-payment', '2700', 'alice', 'emil', '0', '0'],
    ['partial-payment', '2501', 'alice', 'emil', '1250', '1351'],
    ['partial-payment', '2501', 'alice', 'dana', '1250', '1250'],
    ['partial-payment', '1', 'alice', 'dana', '0', '0'],
  ] as const)(
    'lets the next payment end as %s of %s from %s to %s',
    async (fault, value, from, to, received, sent) => {
      const invoice = await invoiceOf(client, addressOf(to), value)
      const payer = await payerOf(client, addressOf(from))
      plant({ fault })
      const { id, failed } = await payer.pay(invoice.id)
      expect(failed).toBe(false)
      await sandbox.advance(1)
      expect(await payer.read(id)).toMatchObject({
        failed: true,
        sentAmount: { value: sent },
        metadata: { cancellationReason: 'the payment failed' },
      })
      expect(await invoice.read()).toMatchObject({
        completed: false,
        receivedAmount: { value: received },
      })
      await payer.pay(invoice.id)
      await sandbox.advance(1)
      expect((await invoice.read()).completed).toBe(true)
    },
  )

  test('lets a client send too many requests', async () => {
    plant({ fault: 'too-many-requests', operation: 'createIncomingPayment' })
    const refused = invoiceOf(client, addressOf('dana'), '100')
    expect(await failure(refused)).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(sandbox.requests().at(-1)).toMatchObject({ fault: 'too-many-requests', status: 429 })
    await invoiceOf(client, addressOf('dana'), '100')
    plant({ fault: 'too-many-requests', operation: 'getWalletAddress', retryAfterSeconds: 7 })
    const { status, headers } = await fetch(addressOf('alice'))
    expect([status, headers.get('retry-after')]).toEqual([429, '7'])
  })

  test.each([
    ['confirms', undefined],
    ['declines', 'confirmation_declined'],
    ['never answers', 'confirmation_expired'],
  ])('lets the next payment wait for its owner, who %s it', async (answered, code) => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    const payer = await payerOf(client, addressOf('alice'))
    const { id } = await payer.quote(invoice.id)
    plant({ fault: 'confirmation-required' })
    const refused = await payer.create(id).catch((error: OpenPaymentsClientError) => error)
    expect(refused).toMatchObject({ status: 403, code: 'confirmation_required' })
    const { url } = (refused as OpenPaymentsClientError).details as { readonly url: string }
    await expect(payer.create(id)).rejects.toMatchObject({ code: 'confirmation_required' })
    if (answered === 'never answers') await sandbox.advance('PT15M')
    else {
      const decision = answered === 'confirms' ? 'confirm' : 'decline'
      const { text, status } = await answer(url, decision)
      expect([status, text]).toEqual([200, expect.stringContaining('asks you to confirm')])
    }
    if (code === undefined) {
      await expect.poll(async () => (await invoice.read()).completed).toBe(true)
      expect((await payer.create(id)).debitAmount).toEqual(usd('100'))
    } else if (code === 'confirmation_declined') {
      await expect(payer.create(id)).rejects.toMatchObject({ status: 403, code })
    } else {
      await expect(payer.create(id)).rejects.toMatchObject({ status: 401 }) // its token, too
      const shown = await fetch(url, { redirect: 'manual' })
      expect([shown.status, shown.headers.get('location')]).toEqual([
        303,
        expect.stringContaining('/login'),
      ])
    }
  })

  test.each([
    [{ fault: 'fire' }, 'fault must be one of'],
    [{ fault: '__proto__' }, 'fault must be one of'],
    [{ fault: 'constructor' }, 'fault must be one of'],
    [{ fault: 'toString', times: 2 }, 'fault must be one of'],
    [{ fault: 'slow', delay: 1 }, 'slow has no member delay'],
    [{ fault: 'slow', delayMs: 0 }, 'delayMs must be an integer from 1'],
    [{ fault: 'unavailable', times: 5000 }, 'times must be an integer from 1 to 1000'],
    [{ fault: 'slow', operation: 'pay' }, 'operation must be one of'],
    [{ fault: 'slow', wallet: 'http://localhost' }, 'wallet must be http://localhost:'],
    [{ fault: 'rotated-key' }, 'rotated-key needs an account'],
    [{ fault: 'rotated-key', account: 'nobody' }, 'no account is named nobody'],
  ])('is refused with the reason if it is invalid: %j', (fault, message) => {
    expect(() => plant(fault as Fault)).toThrow(message)
    expect(sandbox.faults()).toEqual([])
  })
})

describe('the clock', () => {
  test('lets grants expire while clients sign with the real time', async () => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    await sandbox.advance('P1D')
    expect(sandbox.now().getTime()).toBeGreaterThan(Date.now() + 86_000_000)
    expect(await failure(invoice.read())).toMatchObject({ status: 401 })
    const created = await invoiceOf(client, addressOf('dana'), '100')
    expect((await created.read()).createdAt.slice(0, 10)).toBe(
      sandbox.now().toISOString().slice(0, 10),
    )
  })

  test('lets what was begun before end before', async () => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    const payer = await payerOf(client, addressOf('alice'))
    const { expiresAt } = await invoice.read()
    await payer.pay(invoice.id)
    const now = new Date(Date.parse(`${expiresAt}`) + 1).toISOString()
    await sandbox.moveClock({ now })
    const { authServer } = await client.walletAddress.get({ url: addressOf('dana') })
    const accessToken = await tokenWithoutConsent(client, authServer, [
      { type: 'incoming-payment', actions: ['read'] },
    ])
    expect(await client.incomingPayment.get({ url: invoice.id, accessToken })).toMatchObject({
      completed: true,
      receivedAmount: usd('100'),
    })
  })

  test('stands after a small step back, as the wallets show', async () => {
    const own = await startSandbox({ port: 0 })
    try {
      await own.advance('PT30S')
      const before = own.now().getTime()
      await own.moveClock({ reset: true })
      const stood = own.now().getTime()
      expect(stood).toBeGreaterThanOrEqual(before)
      await sleep(20)
      expect(own.now().getTime()).toBe(stood)
      const shown = (await (await fetch(`${own.url}/clock`)).json()) as { offsetMs: number }
      expect(shown.offsetMs).toBeGreaterThan(0)
      await own.advance('P1D')
      await own.moveClock({ reset: true })
      expect(own.now().getTime()).toBeLessThan(before + 86_000_000)
    } finally {
      await own.stop()
    }
  })

  test.each([
    [{}, 'expected {'],
    [{ advance: 'P1D', reset: true }, 'a change of the clock has one member'],
    [{ advance: '1D' }, 'advance must be'],
    [{ advance: 5 }, 'advance must be'],
    [{ advanceMs: -1 }, 'advanceMs must be an integer from 0'],
    [{ now: '2020-01-01T00:00:00Z' }, 'now must be an instant after the current one'],
    [{ reset: false }, 'reset must be true'],
    [{ advance: 'P200Y' }, 'at most 100 years'],
  ])('does not move by %j, and says why', async (change, message) => {
    await expect(sandbox.moveClock(change as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining(message),
    })
  })
})

test.each([
  [{ prot: 0 }, 'unknown option prot: did you mean port?'],
  [{ database: 'none' }, 'unknown option database: the options are port, host'],
  [{ approve: 'all' }, "approve must be a list of strings, such as ['all']"],
  [{ deny: [1] }, 'deny must be a list of strings'],
  [{ host: 1 }, 'host must be a string'],
])('The sandbox does not start with %j, and says why', async (options, message) => {
  await expect(startSandbox(options as never)).rejects.toMatchObject({
    code: 'ERR_INVALID_OPTION',
    message: expect.stringContaining(message),
  })
})

test('A sandbox whose port is in use names the option', async () => {
  const port = Number(new URL(sandbox.url).port)
  await expect(startSandbox({ port })).rejects.toMatchObject({
    code: 'ERR_PORT_IN_USE',
    message: `another program uses port ${port}: choose another with the option port`,
  })
})

describe('the controls over HTTP', () => {
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })

  test('move the clock and plant faults, and remove them', async () => {
    const moved = await post('/clock', { advance: 'PT1H' })
    expect(await moved.json()).toMatchObject({ offsetMs: 3_600_000 })
    const planted = await post('/faults', { fault: 'unavailable', times: 3 })
    const { id, left } = (await planted.json()) as { id: string; left: number }
    expect([planted.status, left]).toEqual([201, 3])
    expect((await fetch(addressOf('alice'))).status).toBe(503)
    const removed = await fetch(`${sandbox.url}/faults/${id}`, { method: 'DELETE' })
    expect(await removed.json()).toEqual({ faults: [] })
    expect((await fetch(addressOf('alice'))).status).toBe(200)
  })

  test('show both wallets, and their requests with the reasons of refusals', async () => {
    await fetch(`${sandbox.wallets[1].resourceServer}/incoming-payments`, { method: 'POST' })
    const described = await (await fetch(sandbox.url)).json()
    expect(described).toMatchObject(
      JSON.parse(JSON.stringify({ accounts: sandbox.describe().accounts })),
    )
    const { requests } = described as { requests: object[] }
    expect(requests.at(-1)).toMatchObject({
      operation: 'createIncomingPayment',
      status: 401,
      wallet: sandbox.wallets[1].url,
      reason: expect.any(String),
    })
  })

  test('have what a client should have signed, if its signature does not verify', async () => {
    const before = await clientFor(sandbox, 'chie')
    await invoiceOf(before, addressOf('dana'), '100')
    const input = `("@method" "@target-uri");created=${Math.floor(Date.now() / 1000)};keyid="chie-1"`
    const url = `${sandbox.wallets[1].resourceServer}/incoming-payments?wallet-address=x`
    const signed = (signature: string) => ({
      'signature-input': `sig1=${input}`,
      signature: `sig1=:${signature}:`,
      authorization: 'GNAP opa_unknown',
    })
    await fetch(url, { headers: signed('A'.repeat(86).concat('==')) })
    expect(sandbox.requests().at(-1)).not.toHaveProperty('signatureBase') // it lacks a component
    const body = JSON.stringify({
      access_token: { access: [{ type: 'quote', actions: ['create'] }] },
      client: addressOf('chie'),
    })
    const digest = createHash('sha-256').update(body).digest('base64')
    const components = input.replace(')', ' "content-digest")')
    const { status } = await fetch(sandbox.wallets[0].authServer, {
      method: 'POST',
      headers: {
        'content-digest': `sha-256=:${digest}:`,
        'content-type': 'application/json',
        'signature-input': `sig1=${components}`,
        signature: `sig1=:${'A'.repeat(86)}==:`,
      },
      body,
    })
    expect(status).toBe(401)
    expect(sandbox.requests().at(-1)).toMatchObject({
      refusal: 'signature_invalid',
      signatureBase: [
        '"@method": POST',
        `"@target-uri": ${sandbox.wallets[0].authServer}`,
        `"content-digest": sha-256=:${digest}:`,
        `"@signature-params": ${components}`,
      ].join('\n'),
    })
  })

  test('have the reason of a page that refuses a form', async () => {
    const apps = `${sandbox.wallets[0].url}/apps`
    const { port } = new URL(apps)
    const headers = { cookie: `sandbox_owner-${port}=alice` }
    const body = new URLSearchParams({ do: 'revoke', grant: 'unknown' })
    expect((await fetch(apps, { method: 'POST', headers, body })).status).toBe(400)
    const reason = expect.stringMatching(/^the page says: \w[^<&]*$/)
    expect(sandbox.requests().at(-1)).toMatchObject({ status: 400, reason })
    expect((await fetch(`${sandbox.wallets[0].url}/consent/unknown`)).status).toBe(404)
    expect(sandbox.requests().at(-1)).toMatchObject({ status: 404, reason })
  })

  test('show a page to browsers, which escapes what clients send', async () => {
    await fetch(`${sandbox.wallets[0].url}/"><script>alert(1)</script>`)
    await fetch(`${sandbox.wallets[0].url}/alice?<img>`)
    const page = await fetch(sandbox.url, { headers: { accept: 'text/html' } })
    const html = await page.text()
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(html).toContain(addressOf('alice'))
    expect(html).not.toMatch(/<img>|<script>alert/)
  })

  test('send each further request to the page that asks for it', async () => {
    const { id } = sandbox.requests().at(-1) ?? {}
    await fetch(`${addressOf('alice')}?followed`)
    const url = `${sandbox.url}/requests?after=${id}`
    const rows = await (await fetch(url, { headers: { accept: 'text/html' } })).text()
    expect(rows.match(/<tr/g)).toHaveLength(1)
    expect(rows).toContain('followed')
  })

  test.each([
    ['a path that does not exist', 404, () => fetch(`${sandbox.url}/nothing`)],
    ['another method', 405, () => fetch(`${sandbox.url}/clock`, { method: 'DELETE' })],
    ['a body that is no JSON', 400, () => post('/clock', undefined)],
    ['an invalid change', 400, () => post('/clock', { advance: 'soon' })],
    ['a form of another site', 415, () => post('/clock', {}, { 'content-type': 'text/plain' })],
    [
      'a fault that is not planted',
      404,
      () => fetch(`${sandbox.url}/faults/99`, { method: 'DELETE' }),
    ],
  ])('refuse %s with an error', async (_, status, send) => {
    const response = await send()
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { description: expect.any(String) } })
  })
})

/** Sends a request with any Host, and resolves to its status and headers. */
async function ask(port: string, host: string, method: string, path: string, body = '') {
  const { request } = await import('node:http')
  return new Promise<{ status?: number; headers: object }>((resolve, reject) => {
    const isJson = /^\/(?:sandbox|auth)/.test(path)
    const type = isJson ? 'application/json' : 'application/x-www-form-urlencoded'
    const headers = { host, 'content-type': type, 'sec-fetch-site': 'same-origin' }
    request({ hostname: 'localhost', port, method, path, headers }, (response) => {
      const { statusCode: status, headers } = response.resume()
      resolve({ ...(status !== undefined && { status }), headers })
    })
      .on('error', reject)
      .end(body)
  })
}

describe('another host, such as one that a site has bound to this machine', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/sandbox'],
    ['POST', '/sandbox/pay', 'token='],
    ['POST', '/sandbox/clock', '{"advance":"P1D"}'],
    ['GET', '/apps'],
    ['POST', '/login', 'owner=alice'],
    ['GET', '/keys'],
  ])('gets nothing but a refusal for %s %s', async (method, path, body = '') => {
    for (const { url } of sandbox.wallets) {
      const { port } = new URL(url)
      const response = await ask(port, `evil.example:${port}`, method, path, body)
      expect(response.status).toBe(421)
      expect(response.headers).not.toHaveProperty('set-cookie')
    }
  })

  test('cannot visit the page for consent, which a rule would approve', async () => {
    const { redirect } = (await askToPay(client, addressOf('alice'))).interact
    const { port, pathname } = new URL(redirect)
    expect((await ask(port, `evil.example:${port}`, 'GET', pathname)).status).toBe(421)
    expect((await visit(redirect)).location?.origin).toBe(new URL(finishUri).origin)
  })

  test('is refused, too, if the sandbox listens on an address that other machines reach', async () => {
    const open = await startSandbox({ port: 0, host: '127.0.0.1' })
    const { port } = new URL(open.url)
    const statusFor = async (host: string, path: string) =>
      (await ask(port, `${host}:${port}`, 'GET', path)).status
    for (const path of ['/sandbox', '/keys', '/apps']) {
      expect(await statusFor('evil.example', path)).toBe(421)
      for (const own of ['localhost', '127.0.0.1']) {
        expect(await statusFor(own, path)).not.toBe(421)
      }
    }
    await open.stop()
  })

  test('reaches what is public or signed, under the name of a container', async () => {
    const { port } = new URL(sandbox.url)
    expect((await ask(port, `sandbox:${port}`, 'GET', '/alice')).status).toBe(200)
    expect((await ask(port, `sandbox:${port}`, 'POST', '/auth', '{}')).status).toBe(401)
  })
})

describe('a rule for a request that names no account', () => {
  const account = (name: string, assetCode: string) => ({
    url: `https://wallet.example/${name}`,
    owner: name,
    publicName: name,
    assetCode,
    assetScale: 2,
    balance: 0n,
  })
  const accounts = [account('alice', 'USD'), account('bruno', 'EUR'), account('app', 'USD')]
  const viewOf = (assetCode?: string) => {
    const debitAmount = { value: '1', assetCode, assetScale: 2 }
    const limits = assetCode === undefined ? {} : { limits: { debitAmount } }
    const item = { type: 'outgoing-payment', actions: ['create'], ...limits }
    const client = 'https://wallet.example/app'
    return { client, access: [item], needAccount: [item] } as unknown as InteractionView
  }

  test.each([
    ['the account that it approves by name', { approve: ['bruno'] }, undefined, 'bruno', 'approve'],
    ['the same before all', { approve: ['all', 'bruno'] }, undefined, 'bruno', 'approve'],
    ['the first that it approves', { approve: ['all'] }, undefined, 'alice', 'approve'],
    [
      'no account that it denies',
      { approve: ['all'], deny: ['alice'] },
      undefined,
      'bruno',
      'approve',
    ],
    ['the first that it fits', { approve: ['all'] }, 'EUR', 'bruno', 'approve'],
    ['no account that it does not fit', { approve: ['bruno'] }, 'USD', 'alice', undefined],
    ['any account if it names the client', { approve: ['app'] }, undefined, 'alice', 'approve'],
    ['an account that it does not deny', { deny: ['alice'] }, undefined, 'bruno', undefined],
    ['nobody if it denies all', { deny: ['all'] }, undefined, 'alice', 'deny'],
    [
      'nobody if it denies the client',
      { approve: ['all'], deny: ['app'] },
      undefined,
      'alice',
      'deny',
    ],
  ])('chooses %s', (_, rules, assetCode, name, decision) => {
    const { account, ruling } = choiceFor(viewOf(assetCode), rules, accounts)
    expect([account?.owner, ruling?.decision]).toEqual([name, decision])
  })
})
