import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import {
  type ConsentRefusal,
  type Handler,
  type InteractionView,
  type OutgoingPaymentView,
  toFetch,
} from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { toExpress } from 'open-payments-server/express'
import { toFastify } from 'open-payments-server/fastify'
import { toHono } from 'open-payments-server/hono'
import { publishedKeys, testKey } from 'open-payments-test-support/keys'
import { createSpendingWorld, usd } from 'open-payments-test-support/spending'
import { alice, bob, interactionId, withFinish } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, formTokens, type PagesOptions, seeOther } from '../src/index.js'
import { periods } from '../src/owner-limits.js'
import { followed } from './followed.js'
import { textOf } from './text.js'

const formKey = new Uint8Array(32).fill(7)
const accounts = [
  { url: alice, owner: 'alice', assetCode: 'USD', assetScale: 2 },
  { url: bob, owner: 'bob', assetCode: 'USD', assetScale: 2 },
]

/** The owner is named in the cookie: a test needs no login. */
const ownerOf: PagesOptions['ownerOf'] = ({ headers }) => {
  const [, id] = headers.find(([name]) => name.toLowerCase() === 'cookie') ?? []
  return id ? { id } : undefined
}
const host = {
  ownerOf,
  accountsOf: (id: string) => accounts.filter(({ owner }) => owner === id),
  signIn: (request: HttpRequest) =>
    seeOther(`/login?${new URLSearchParams({ next: request.url })}`),
  formKey,
}

type Fields = Readonly<Record<string, string>>

function visitor(handle: Handler, url: string, cookie = 'alice') {
  let token = ''
  const send = async (
    method: string,
    fields: Fields = {},
    headers: readonly (readonly [string, string])[] = [],
  ): Promise<HttpResponse> => {
    const body = new TextEncoder().encode(`${new URLSearchParams(fields)}`)
    const sent = { headers: [['Cookie', cookie], ...headers] as const, body }
    const answer = await handle({ method, url, ...sent })
    return followed(answer, url, (url) => handle({ method: 'GET', url, ...sent }))
  }
  return {
    send,
    async open() {
      const response = await send('GET')
      token = /name="token" value="(\w+)"/.exec(response.body ?? '')?.[1] ?? ''
      return { ...response, text: textOf(response.body ?? '') }
    },
    post: (fields: Fields, headers: readonly (readonly [string, string])[] = []) =>
      send('POST', { token, ...fields }, headers),
  }
}

type Asked = Awaited<ReturnType<typeof asked>>

async function asked(more: Partial<PagesOptions> = {}) {
  const world = createSpendingWorld()
  const { auth, resources } = world
  const item = {
    type: 'outgoing-payment',
    actions: ['create', 'read'],
    identifier: alice,
    limits: { debitAmount: usd(5000) },
  } as const
  const { body } = await world.client().request([item], withFinish)
  const id = interactionId(body.interact.redirect)
  const clock = { now: () => world.clock.now() }
  const pages = createPages({ auth, resources, clock, ...host, connectedAppsUrl: '/apps', ...more })
  const as = (owner: string) => visitor(pages.consent, `/wallet/consent/${id}`, owner)
  const apps = (owner = 'alice') => visitor(pages.connectedApps, '/apps', owner)
  return { world, pages, id, as, apps }
}

describe('the consent page', () => {
  test('asks the owner, and leads back to the app with the approval', async () => {
    const { as, world, id } = await asked()
    const alices = as('alice')
    const { status, text, headers } = await alices.open()
    expect([status, text]).toEqual([200, expect.stringContaining('Up to 50.00 USD in all')])
    expect(headers['content-security-policy']).toContain("form-action 'self' https: ")
    const answer = await alices.post({ decision: 'approve' })
    expect([answer.status, answer.headers['location']]).toEqual([
      303,
      expect.stringMatching(/^https:\/\/shop\.example\/.*interact_ref=/),
    ])
    const grant = await world.auth.grants.get(id.split('.')[0] ?? '')
    expect([grant?.status, grant?.resourceOwner]).toEqual(['approved', 'alice'])
  })

  test('and its redirect forbid caches and referrers; the page also frames, and scripts of others', async () => {
    const alices = (await asked()).as('alice')
    const shown = await alices.open()
    const answer = await alices.post({ decision: 'approve' })
    for (const { headers } of [shown, answer]) {
      const [cached, referrer] = [headers['cache-control'], headers['referrer-policy']]
      expect([cached, referrer]).toEqual(['no-store', 'strict-origin'])
    }
    expect(shown.headers['x-content-type-options']).toBe('nosniff')
    const policy = `${shown.headers['content-security-policy']}`.split('; ')
    const forbidden = ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]
    expect(policy).toEqual(expect.arrayContaining(forbidden))
    expect(shown.body).not.toContain('<script')
  })

  test('says after the approval what was decided, and leads back to the app, also after a denial', async () => {
    const { as, world, id } = await asked()
    const alices = as('alice')
    await alices.open()
    const first = (await alices.post({ decision: 'approve' })).headers['location']
    const { status, text, body, headers } = await alices.open()
    expect([status, text]).toEqual([410, expect.stringContaining('has been approved.')])
    expect(text).toContain('Back to shop.example')
    expect(body).not.toContain('value="deny"')
    expect(headers['content-security-policy']).toContain("form-action 'self' https: ")
    for (const decision of ['deny', 'maybe']) {
      const late = await alices.post({ decision })
      expect(textOf(late.body ?? '')).toContain('Back to shop.example')
      expect((await world.auth.interactions.get(id))?.status).toBe('approved')
    }
    const back = (await alices.post({ decision: 'return' })).headers['location'] ?? ''
    expect(back).toMatch(/^https:\/\/shop\.example\/.*interact_ref=/)
    expect(back).toBe(first)
    expect((await as('bob').open()).status).toBe(403)
    expect((await as('').open()).headers['location']).toMatch(/^\/login/)
  })

  test('decides nothing else after the approval, and repeats it for a double click', async () => {
    const { as, world, id } = await asked()
    const alices = as('alice')
    await alices.open()
    const status = async (fields: Fields) =>
      (await alices.post({ decision: 'approve', ...fields })).status
    expect(await status({ 'limit-0': '12.5' })).toBe(303)
    expect(await status({ 'limit-0': '12.50' })).toBe(303)
    expect(await status({ 'limit-0': '10' })).toBe(409)
    expect(await status({ 'limit-0': '20' })).toBe(409)
    expect(await status({ account: bob })).toBe(409)
    const view = await world.auth.interactions.get(id)
    expect(view?.access).toMatchObject([{ limits: { debitAmount: usd(1250) } }])
  })

  test('approves the lower limit that the owner typed', async () => {
    const { as, world, id } = await asked()
    const alices = as('alice')
    await alices.open()
    expect((await alices.post({ decision: 'approve', 'limit-0': ' 12.5 ' })).status).toBe(303)
    const grant = await world.auth.grants.get(id.split('.')[0] ?? '')
    expect(grant?.access).toMatchObject([{ limits: { debitAmount: usd(1250) } }])
  })

  test.each([
    ['50', 'A limit can only become lower.'],
    ['0', 'A limit of zero allows no payment.'],
    ['1.000,5', 'such as 12.50'],
    ['"><img src=x>', 'such as 12.50'],
  ])('does not approve the limit %s, and shows it again at its field', async (typed, expected) => {
    const { as, world, id } = await asked()
    const alices = as('alice')
    await alices.open()
    const { status, body = '' } = await alices.post({ decision: 'approve', 'limit-0': typed })
    expect([status, textOf(body)]).toEqual([400, expect.stringContaining(expected)])
    expect(body).toMatch(
      /href="#limit-0".*<details open>.*id="limit-0-problem".*aria-invalid="true"/s,
    )
    expect(body).toContain(
      `value="${typed.replace('">', '&#34;&#62;').replace('<', '&#60;').replace(/>$/, '&#62;')}"`,
    )
    expect((await world.auth.interactions.get(id))?.status).toBe('pending')
  })

  test('denies for the owner, also if the form is sent twice', async () => {
    const { as, world, id } = await asked()
    const alices = as('alice')
    await alices.open()
    for (let i = 0; i < 2; i++) {
      expect((await alices.post({ decision: 'deny' })).status).toBe(303)
    }
    expect((await world.auth.interactions.get(id))?.status).toBe('denied')
    const decided = await alices.open()
    expect([decided.status, decided.text]).toEqual([
      410,
      expect.stringContaining('This request has been denied.'),
    ])
    expect((await alices.post({ decision: 'return' })).headers['location']).toMatch(
      /^https:\/\/shop\.example\/.*result=grant_rejected/,
    )
    expect((await alices.post({ decision: 'approve' })).status).toBe(409)
    expect((await world.auth.interactions.get(id))?.status).toBe('denied')
  })

  test('decides nothing without the token of the page, of this owner and this request', async () => {
    const one = await asked()
    const alices = one.as('alice')
    await alices.open()
    const elsewhere = await formTokens(formKey).field('apps', 'alice')
    const foreign = /value="(\w+)"/.exec(`${elsewhere}`)?.[1] ?? ''
    for (const token of ['', foreign, `${foreign}0`, 'A'.repeat(64)]) {
      const { status, body } = await alices.post({ decision: 'approve', token })
      expect([status, body]).toEqual([400, expect.stringContaining('role="alert"')])
    }
    expect((await one.as('').post({ decision: 'approve' })).body).toContain('href="/login?')
    expect((await one.as('bob').post({ decision: 'approve' })).status).toBe(403)
    expect((await one.world.auth.interactions.get(one.id))?.status).toBe('pending')
  })

  test.each([
    ['same-origin', 303],
    ['none', 200],
    ['same-site', 403],
    ['cross-site', 403],
  ])('answers a form with the Sec-Fetch-Site %s with %i', async (site, expected) => {
    const alices = (await asked()).as('alice')
    await alices.open()
    const { status, body } = await alices.post({ decision: 'approve' }, [['sec-fetch-site', site]])
    expect(status).toBe(expected)
    // A form that no page has sent is shown again.
    if (site === 'none') expect(body).toContain('value="approve"')
  })

  test('asks again after a form without a decision, and refuses other methods', async () => {
    const alices = (await asked()).as('alice')
    await alices.open()
    for (const decision of ['', 'maybe', 'Approve']) {
      const { status, body } = await alices.post({ decision })
      expect([status, body]).toEqual([400, expect.stringContaining('href="#decision"')])
    }
    const { status, headers } = await alices.send('PUT')
    expect([status, headers['allow']]).toEqual([405, 'GET, HEAD, POST'])
    expect((await alices.send('HEAD')).status).toBe(200)
  })

  test('sends visitors to the login, others away, and knows no other request', async () => {
    const { as, pages, id } = await asked()
    const next = new URLSearchParams({ next: `/wallet/consent/${id}` })
    expect((await as('').open()).headers['location']).toBe(`/login?${next}`)
    expect(await as('bob').open()).toMatchObject({ status: 403 })
    for (const path of ['', '/unknown', '/%00', `/${id}x`]) {
      const { status, text } = await visitor(pages.consent, `/consent${path}`).open()
      expect([path, status, text]).toEqual([
        path,
        404,
        // It may have been approved once: nobody knows any more.
        expect.stringMatching(/nothing can be approved.*start again in the app/),
      ])
    }
  })

  test('is in the language and time zone of the owner', async () => {
    const german = await asked({
      ownerOf: () => ({ id: 'alice', name: 'Frau A.', language: 'de-CH', timeZone: 'Asia/Tokyo' }),
    })
    const { body, text } = await german.as('alice').open()
    expect(body).toContain('<html lang="de-CH" dir="ltr">')
    expect(text).toContain('Angemeldet als Frau A.')
    expect(text).toMatch(/GMT\+9/)
  })
})

describe('the signed-in owner', () => {
  const ended = seeOther('/login', { 'set-cookie': 'session=; Max-Age=0' })
  const signOut = () => ended
  const buttonOf = (body = '') => /name="sign-out" value="(\w+)"/.exec(body)?.[1] ?? ''

  test.each([
    ['consent', (each: Asked) => each.as('alice')],
    ['connected apps', (each: Asked) => each.apps()],
    ['keys', (each: Asked) => visitor(each.pages.keys, '/keys', 'alice')],
    ['an unknown request', (each: Asked) => visitor(each.pages.consent, '/consent/x', 'alice')],
  ])('is named on the page of %s, and signs out there', async (_, open) => {
    const page = open(await asked({ signOut }))
    const { body, text } = await page.open()
    expect(text).toContain('Signed in as alice Not you? Sign out')
    const fields = { 'sign-out': buttonOf(body) }
    const { status, headers, body: after } = await page.post(fields)
    expect([status, headers['set-cookie']]).toEqual([200, 'session=; Max-Age=0'])
    expect(after).toContain('href="/login"')
  })

  test('does not sign out by a form of another site, or with the token of another owner', async () => {
    let ends = 0
    const one = await asked({
      signOut: () => {
        ends += 1
        return ended
      },
    })
    const token = buttonOf((await one.apps('bob').open()).body)
    expect(token).toMatch(/^[\da-f]{64}$/)
    for (const given of ['', 'x', token, `${token}0`]) {
      const { status, body = '' } = await one.apps('alice').post({ 'sign-out': given })
      expect([status, textOf(body)]).toEqual([200, expect.stringContaining('Signed in as alice')])
    }
    const foreign = [['sec-fetch-site', 'cross-site']] as const
    const own = { 'sign-out': buttonOf((await one.apps('alice').open()).body) }
    expect((await one.apps('alice').post(own, foreign)).status).toBe(403)
    expect((await one.apps('').post(own)).body).toContain('href="/login?')
    expect(ends).toBe(0)
  })

  test('is led to the page of the host by a link', async () => {
    const { body } = await (await asked({ signOut: '/out?a=1&b="' })).as('alice').open()
    expect(body).toContain('<a href="/out?a=1&#38;b=&#34;">Not you? Sign out</a>')
    expect(body).not.toContain('name="sign-out"')
  })

  test('has a name that becomes no markup, and no way out without the option', async () => {
    const ownerOf = () => ({ id: 'alice', name: '<img src=x>\u202e' })
    const { body } = await (await asked({ ownerOf })).as('alice').open()
    expect(body).toContain('Signed in as <bdi>&#60;img src=x&#62;\ufffd</bdi>')
    expect(body).not.toContain('Sign out')
  })
})

describe('the receiver of a payment', () => {
  /** The consent page for a payment to Bob, in this wallet. */
  async function paidTo(more: Partial<PagesOptions> = {}) {
    const displayOf = async (url: string) => (url === bob ? { name: '<b>Bob</b>\u202e' } : {})
    const clientKeys = { ...publishedKeys(), displayOf }
    clientKeys.publish('https://shop.example', testKey('shop'))
    const world = createSpendingWorld({ auth: { clientKeys } })
    const { auth, resources, clock } = world
    const request = { walletAddress: bob, idempotencyKey: 'invoice 1' }
    const created = await resources.incomingPayments.create(request)
    if (!created.ok) throw new Error(created.reason)
    const { url: receiver } = created
    const limits = { receiver, debitAmount: usd(5000) }
    const item = {
      type: 'outgoing-payment',
      actions: ['create'],
      identifier: alice,
      limits,
    } as const
    const { body } = await world.client().request([item], withFinish)
    const id = interactionId(body.interact.redirect)
    const pages = createPages({ auth, resources, clock, ...host, ...more })
    const { text } = await visitor(pages.consent, `/consent/${id}`).open()
    return { receiver, text }
  }

  test('in this wallet has the name and the address of its account', async () => {
    const { receiver, text } = await paidTo()
    expect(text).toContain(`Only to<b>Bob</b> ${bob}`)
    expect(text).toContain(receiver)
  })

  test('has the name that the host knows', async () => {
    const receiverOf = async () => ({ name: 'Robert', walletAddress: bob })
    expect((await paidTo({ receiverOf })).text).toContain(`Only toRobert ${bob}`)
  })

  test('without a name is shown by its host, with the URL', async () => {
    const { receiver, text } = await paidTo({ receiverOf: () => undefined })
    expect(text).toContain(`Only towallet.example ${receiver}`)
  })
})

/** Pages about a view that no server would return, such as of another version. */
function pageOf(view: Partial<InteractionView>, decided: object = { ok: true }) {
  const complete = {
    id: 'id',
    grantId: 'grant',
    status: 'pending',
    client: 'https://shop.example',
    display: { uri: 'https://shop.example' },
    access: [],
    tokens: [],
    needAccount: [],
    totals: [],
    expiresAt: 0,
    ...view,
  } as InteractionView
  const decide = async () => decided
  const interactions = { get: async () => complete, approve: decide, deny: decide }
  const auth = { interactions, grants: {} } as unknown as PagesOptions['auth']
  return visitor(createPages({ auth, ...host }).consent, '/consent/id')
}

describe('the consent page, for any view', () => {
  test.each([
    'https://shop.example/back?a=1',
    'com.example.app:/back',
    "https://shop.example/';script-src *",
    'https://a;sandbox',
    "https://'unsafe-inline'",
    'https://*',
    'https://a,b',
    'no url',
  ])('has no part of the finish URI %s in its policy', async (finishUri) => {
    const { headers } = await pageOf({ finishUri }).open()
    expect(headers['content-security-policy']).toMatch(
      /form-action 'self'(?: https: http:\/\/localhost:\* http:\/\/127\.0\.0\.1:\*)?;/,
    )
    expect(headers['content-security-policy']).not.toMatch(/script-src|sandbox/)
  })

  test.each([
    ['expired', { status: 'interaction-expired' }],
    ['denied', { status: 'denied' }],
    ['has ended', { status: 'revoked' }],
    ['has ended', { status: 'cancelled' }],
    ['approved', { status: 'approved', issuedAt: 0 }],
  ] as const)('says that the request is %s with $status', async (word, view) => {
    const { status, body } = await pageOf(view).open()
    expect([status, body]).toEqual([410, expect.stringContaining(word)])
    expect(body).not.toContain('<form')
  })

  test.each(['en', 'de', 'es', 'ar'])('says in %s that an answer was not accepted', async (tag) => {
    const refusals: Readonly<Record<ConsentRefusal, true>> = {
      interaction_unknown: true,
      interaction_expired: true,
      interaction_over: true,
      decided_otherwise: true,
      identifier_required: true,
      not_the_owner: true,
      asset_mismatch: true,
      access_widened: true,
      nothing_granted: true,
      limits_contradicted: true,
    }
    for (const refusal of Object.keys(refusals)) {
      const page = pageOf({}, { ok: false, refusal, reason: 'text of a developer' })
      const language = [['accept-language', tag]] as const
      await page.open()
      for (const decision of ['approve', 'deny', 'return']) {
        const { status, headers, body } = await page.post({ decision }, language)
        expect(status, refusal).toBeGreaterThanOrEqual(400)
        expect(headers['content-language']).toBe(tag)
        expect(body).not.toContain('developer')
      }
    }
  })

  test.each(['identifier_required', 'asset_mismatch'])(
    'asks for another account after %s',
    async (refusal) => {
      const page = pageOf({}, { ok: false, refusal, reason: '' })
      await page.open()
      const { status, body } = await page.post({ decision: 'approve' })
      expect([status, body]).toEqual([400, expect.stringContaining('Please choose an account')])
    },
  )
})

describe('the page of connected apps', () => {
  /** Alice has approved an app, which has paid 12 dollars. */
  async function connected() {
    const spending = await asked()
    const { as, world, id } = spending
    const alices = as('alice')
    await alices.open()
    await alices.post({ decision: 'approve' })
    return { ...spending, grantId: id.split('.')[0] ?? '', grants: world.auth.grants }
  }

  test('lowers, pauses, resumes and ends the access of an app', async () => {
    const { pages, apps, grants, grantId } = await connected()
    const page = apps()
    const changed = `?app=${grantId}&done=changed`
    const { text } = await page.open()
    expect(text).toContain('0.00 USD of 50.00 USD spent')
    expect(text).toContain('No payment so far')
    const change = async (fields: Fields) => {
      const { status, headers } = await page.post({ grant: grantId, ...fields })
      return [status, headers['location']]
    }
    expect(await change({ do: 'lower', item: '1', most: '12.5' })).toEqual([303, changed])
    expect((await page.open()).text).toContain('of 12.50 USD spent')
    expect(await change({ do: 'lower', item: '1', most: '\u0661\u0660\u066b\u0665' })).toEqual([
      303,
      changed,
    ])
    expect((await page.open()).text).toContain('of 10.50 USD spent')
    expect(await change({ do: 'pause' })).toEqual([303, changed])
    expect((await page.open()).text).toContain('Paused')
    expect(await change({ do: 'resume' })).toEqual([303, changed])
    for (const idle of [{ do: 'resume' }, { do: 'remove', item: '9' }, { do: 'remove' }]) {
      expect(await change(idle)).toEqual([303, `?app=${grantId}`])
    }
    expect((await page.open()).text).toContain('Pause payments')
    const detail = await visitor(pages.connectedApps, `/apps${changed}`).open()
    expect(detail.text).toContain(`access of shop.example to ${alice} has been saved.`)
    expect(await change({ do: 'revoke' })).toEqual([303, `?removed=${grantId}`])
    const removed = await visitor(pages.connectedApps, `/apps?removed=${grantId}`).open()
    expect(removed.text).toContain(`shop.example no longer has access to ${alice}.`)
    expect((await page.open()).text).toContain('No app has access')
    expect((await grants.get(grantId))?.status).toBe('revoked')
  })

  test('adds limits of the owner, lowers them, and shows what is left', async () => {
    const { apps, pages, grants, grantId } = await connected()
    const page = apps()
    const detail = () => visitor(pages.connectedApps, `/apps?app=${grantId}`).open()
    await page.open()
    const limit = async (fields: Fields) => {
      const { status, headers } = await page.post({ grant: grantId, do: 'limit', ...fields })
      return [status, headers['location']]
    }
    const changed = [303, `?app=${grantId}&done=changed`]
    const monthly = periods.everyMonth
    expect(await limit({ interval: monthly, most: '20', payments: '4' })).toEqual(changed)
    expect(await limit({ interval: monthly, most: '20', payments: '4' })).toEqual(changed)
    expect(await limit({ interval: '', payments: '9' })).toEqual(changed)
    expect(await limit({ interval: monthly, most: '15', payments: '' })).toEqual(changed)
    const limits = [{ debitAmount: usd(1500), payments: 4, interval: monthly }, { payments: 9 }]
    expect((await grants.get(grantId))?.conditions).toEqual({ limits })
    const { text } = await detail()
    expect(text).toMatch(
      /at most 15\.00 USD is debited .* every month .*15\.00 USD left until .*UTC/,
    )
    expect(text).toMatch(/Payments left until .*: 4 .*Payments left: 9/)
    const done = await visitor(pages.connectedApps, `/apps${changed[1]}`).open()
    expect(done.text).toContain(`access of shop.example to ${alice} has been saved.`)
  })

  test.each([
    ['en', 'Your limits have changed meanwhile'],
    ['de', 'Ihre Limits haben sich inzwischen'],
    ['es', 'Sus límites han cambiado'],
    ['ar', 'تغيرت حدودك'],
  ])('tells an owner in %s that the limits have changed meanwhile', async (tag, expected) => {
    const { world, grants, grantId } = await connected()
    const other = { resourceOwner: 'alice', conditions: { limits: [{ payments: 2 }] } }
    const racing = {
      ...grants,
      async amend(...args: Parameters<typeof grants.amend>) {
        await grants.amend(grantId, other)
        return grants.amend(...args)
      },
    }
    const auth = { interactions: world.auth.interactions, grants: racing }
    const own = createPages({ auth, resources: world.resources, ...host })
    const page = visitor(own.connectedApps, `/apps?app=${grantId}`)
    await page.open()
    const fields = { grant: grantId, do: 'limit', interval: periods.everyDay, payments: '3' }
    const { status, body = '' } = await page.post(fields, [['accept-language', tag]])
    expect([status, textOf(body)]).toEqual([400, expect.stringContaining(expected)])
    expect(body).toMatch(/<details open>(?:(?!<details).)* value="3"/s)
    expect((await grants.get(grantId))?.conditions).toEqual(other.conditions)
  })

  test('reads a limit in the language in which it writes amounts', async () => {
    const { apps, grants, grantId } = await connected()
    const page = apps()
    await page.open()
    const { status } = await page.post({ grant: grantId, do: 'lower', item: '1', most: '12,5' }, [
      ['accept-language', 'de'],
    ])
    expect(status).toBe(303)
    expect((await grants.get(grantId))?.access[0]?.limits?.debitAmount).toEqual(usd(1250))
  })

  test.each(['junk', '', '\u0000', 'a'.repeat(500), '__proto__', '../x'])(
    'shows the first apps for the cursor %j, which is none',
    async (before) => {
      const errors: unknown[] = []
      const { as, pages } = await asked({ onError: (error) => void errors.push(error) })
      const alices = as('alice')
      await alices.open()
      await alices.post({ decision: 'approve' })
      const url = `/apps?${new URLSearchParams({ before })}`
      const { status, text } = await visitor(pages.connectedApps, url).open()
      expect([status, errors]).toEqual([200, []])
      expect(text).toContain('0.00 USD of 50.00 USD spent')
    },
  )

  test.each([
    ['a higher limit', { do: 'lower', item: '1', most: '60' }, 'A limit can only become lower.'],
    ['no amount', { do: 'lower', item: '1', most: '1e3' }, 'such as 12.50'],
    ['the mark of another language', { do: 'lower', item: '1', most: '1.000,5' }, 'such as 12.50'],
    [
      'a limit of zero',
      { do: 'lower', item: '1', most: '0' },
      'A limit of zero allows no payment.',
    ],
    ['more than 64 bits', { do: 'lower', item: '1', most: '9'.repeat(25) }, 'such as 12.50'],
    ['too many digits', { do: 'lower', item: '1', most: '1.234' }, 'such as 12.50'],
    ['another item', { do: 'lower', item: '2', most: '1' }, 'Nothing was changed'],
    ['an empty limit of the owner', { do: 'limit', interval: '' }, 'Please write an amount,'],
    [
      'a limit of an unknown period',
      { do: 'limit', interval: 'R/2026-01-01T00:00:00Z/PT1M', payments: '1' },
      'Nothing was changed',
    ],
    [
      'no payments at all',
      { do: 'limit', interval: '', payments: '0' },
      'A limit of zero allows no payment.',
    ],
    ['nothing to do', {}, 'Nothing was changed'],
    ['the removal of the only item', { do: 'remove', item: '1' }, 'Nothing was changed'],
    ['another token', { do: 'revoke', token: 'x' }, 'Please answer again'],
  ])('changes nothing for %s', async (_, fields, expected) => {
    const { apps, grants, grantId } = await connected()
    const before = await grants.get(grantId)
    const page = apps()
    await page.open()
    const { status, body = '' } = await page.post({ grant: grantId, ...fields })
    expect([status, textOf(body)]).toEqual([400, expect.stringContaining(expected)])
    expect(await grants.get(grantId)).toEqual(before)
  })

  test('finds apps by their name and their address, and says what it did not find', async () => {
    const { pages } = await connected()
    const searched = async (search: string) => {
      const url = `/apps?${new URLSearchParams({ search })}`
      return (await visitor(pages.connectedApps, url).open()).text
    }
    for (const search of ['shop', ' SHOP.example ', '', ' ']) {
      expect(await searched(search), search).toContain('0.00 USD of 50.00 USD spent')
    }
    for (const search of ['bank', '.*', '\0', 'x'.repeat(5_000)]) {
      expect(await searched(search), search).toContain('No connected app matches this search.')
    }
  })

  test('shows what an app has paid, and older payments on another page', async () => {
    const { world, pages, grantId } = await connected()
    const { list } = world.resources.outgoingPayments
    const paid = (n: number) => ({ ...payment, paymentId: `${n}`, createdAt: n })
    const payment = {
      status: 'completed',
      sentAmount: usd(1200),
      debitAmount: usd(1200),
      receiver: 'https://bank.example/incoming-payments/1',
    } as OutgoingPaymentView
    expect((await list({ grantId, last: 20 })).result).toEqual([])
    const asked: object[] = []
    const resources = {
      outgoingPayments: {
        ...world.resources.outgoingPayments,
        list: async (query: object) => {
          asked.push(query)
          const pagination = { hasPreviousPage: true, hasNextPage: false, startCursor: 'a&b' }
          return { pagination, result: [paid(1), paid(2)] }
        },
      },
    }
    const own = createPages({ auth: world.auth, resources, ...host })
    const detail = await visitor(own.connectedApps, `/apps?app=${grantId}`).open()
    expect(detail.text).toContain('12.00 USD to bank.example')
    expect(detail.body).toContain(`?app=${grantId}&#38;before=a%26b`)
    await visitor(own.connectedApps, `/apps?app=${grantId}&before=a%26b`).open()
    expect(asked).toContainEqual({ grantId, last: 20, cursor: 'a&b' })
    const junk = await visitor(pages.connectedApps, `/apps?app=${grantId}&before=junk`).open()
    expect([junk.status, junk.text]).toEqual([200, expect.stringContaining('No payment so far')])
  })

  test('shows the page of an app to its owner alone, and of no app that has ended', async () => {
    const { pages, apps, grants, grantId } = await connected()
    const open = (owner: string, id: string) =>
      visitor(pages.connectedApps, `/apps?${new URLSearchParams({ app: id })}`, owner).open()
    expect((await open('alice', grantId)).status).toBe(200)
    for (const id of [grantId, '', 'unknown', '\0']) {
      expect((await open('bob', id)).status, id).toBe(404)
    }
    await grants.revoke(grantId)
    expect((await open('alice', grantId)).status).toBe(404)
    const url = `/apps?removed=${grantId}`
    expect((await visitor(pages.connectedApps, url, 'bob').open()).text).not.toContain('shop')
    expect((await apps().open()).text).toContain('No app has access')
  })

  test('shows to their owner alone the apps whose access has ended, page by page', async () => {
    const { world, pages, apps, grants, grantId } = await connected()
    const ended = (query = '', owner = 'alice') =>
      visitor(pages.connectedApps, `/apps?ended${query}`, owner).open()
    expect((await apps().open()).body).toContain('<a href="?ended">Apps whose access has ended</a>')
    expect((await ended()).text).toContain('No app has lost its access so far.')
    await grants.revoke(grantId)
    const { status, text } = await ended('=&before=junk')
    expect([status, text]).toEqual([200, expect.stringContaining('by you or this wallet')])
    expect(text).toContain('at most 50.00 USD is debited from your account in all')
    expect((await ended('', 'bob')).text).toContain('No app has lost its access so far.')
    expect((await ended('', '')).headers['location']).toMatch(/^\/login/)

    const asked: object[] = []
    const history: typeof grants.history = async (query) => {
      asked.push(query)
      const { result } = await grants.history({ resourceOwner: 'alice', last: 1 })
      const pagination = { hasPreviousPage: true, hasNextPage: false, startCursor: 'a&b' }
      return { result, pagination }
    }
    const auth = { interactions: world.auth.interactions, grants: { ...grants, history } }
    const own = createPages({ auth, ...host })
    const first = await visitor(own.connectedApps, '/apps?ended').open()
    expect(first.body).toContain('<a href="?ended=&#38;before=a%26b">Older apps</a>')
    await visitor(own.connectedApps, '/apps?ended=&before=a%26b').open()
    const query = { resourceOwner: 'alice', last: 20 }
    expect(asked).toEqual([query, { ...query, cursor: 'a&b' }])
  })

  test('goes on over empty pages of a list, and stops after some with a link to older ones', async () => {
    const { world, grants } = await connected()
    const [grant] = (await grants.list({ resourceOwner: 'alice' })).result
    if (grant === undefined) throw new Error('no grant')
    const sparse = (emptyPages: number) => {
      let reads = 0
      const list = async () => {
        reads += 1
        const isEmpty = reads <= emptyPages
        const pagination = { hasNextPage: false, hasPreviousPage: isEmpty, startCursor: `${reads}` }
        return { result: isEmpty ? [] : [grant], pagination }
      }
      const { interactions } = world.auth
      const auth = { interactions, grants: { ...grants, list, history: list } }
      const { connectedApps } = createPages({ auth, ...host })
      return (query: string) => visitor(connectedApps, `/apps?${query}`).open()
    }
    for (const query of ['', 'search=shop', 'ended']) {
      const { text, body } = await sparse(7)(query)
      expect(text, query).toContain('shop')
      expect(body, query).not.toContain('Older apps')
    }
    for (const query of ['', 'ended']) {
      const { text, body } = await sparse(1_000)(query)
      expect(body, query).toMatch(/before=\d+">Older apps/)
      expect(text, query).not.toContain('No app')
    }
    expect((await sparse(1_000)('search=shop')).text).toContain('Only the newest 0 apps')
  })

  test('neither shows nor changes the apps of another owner', async () => {
    const { apps, grants, grantId } = await connected()
    const bobs = apps('bob')
    expect((await bobs.open()).text).toContain('No app has access')
    const field = await formTokens(formKey).field('apps', 'bob')
    const token = /value="(\w+)"/.exec(`${field}`)?.[1] ?? ''
    for (const grant of [grantId, '', 'unknown', '\0']) {
      expect((await bobs.post({ token, grant, do: 'revoke' })).status).toBe(404)
    }
    expect((await apps('').open()).headers['location']).toMatch(/^\/login/)
    expect((await grants.get(grantId))?.status).toBe('approved')
  })
})

describe('around the servers', () => {
  const noLimits = { of: async () => [], set: async () => true }
  const nothing: Handler = async () => ({ status: 404, headers: {}, body: '{}', unmatched: true })
  const get = (handle: Handler, url: string, accept: string, method = 'GET') =>
    handle({ method, url, headers: [['Accept', accept]], body: new Uint8Array() })
  const html = 'text/html,application/xhtml+xml,*/*;q=0.8'

  test('a browser gets a page where the servers have nothing, and a client their response', async () => {
    const { pages } = await asked({ design: { name: 'Our Bank' } })
    const handle = pages.around(nothing)
    const { status, headers, body = '' } = await get(handle, '/nowhere', html)
    expect([status, headers['content-type']]).toEqual([404, 'text/html; charset=utf-8'])
    expect(textOf(body)).toMatch(/Our Bank.*There is no page at this address/)
    expect((await get(handle, '/nowhere', 'application/json')).body).toBe('{}')
    expect((await get(handle, '/nowhere', html, 'POST')).body).toBe('{}')
    expect((await get(pages.notFound, '/nowhere', '*/*')).status).toBe(404)
  })

  test('the page for nothing leads to all pages of an owner', async () => {
    const more = { connectedAppsUrl: '/apps', keysUrl: '/keys', accountLimits: noLimits }
    const { pages } = await asked(more)
    const { body = '' } = await get(pages.around(nothing), '/limits', html)
    const links = [...body.matchAll(/<nav.*?<\/nav>/gs)].flatMap(([nav]) => [
      ...nav.matchAll(/href="([^"]*)"/g),
    ])
    expect(links.map(([, url]) => url)).toEqual(['/apps', '/apps?limits', '/keys'])
    expect(body).not.toContain('aria-current="page"')
  })

  test('other requests for which the servers have nothing are left to the host, unread', async () => {
    const { pages, world } = await asked()
    const { mayMatch } = pages.around(world.auth.handle)
    const lines = [
      ['POST', '/elsewhere', false],
      ['POST', '/auth', true],
      ['GET', '/elsewhere', true],
      ['GET', '/favicon.ico', true],
    ] as const
    for (const [method, url, expected] of lines) {
      expect([method, url, mayMatch?.({ method, url })]).toEqual([method, url, expected])
    }
    expect(pages.around(nothing).mayMatch?.({ method: 'POST', url: '/elsewhere' })).toBe(true)
  })

  test('the icon needs no servers, and is the only thing that they do not get', async () => {
    const { pages, world } = await asked()
    const refuse: Handler = () => expect.fail('no request is expected')
    for (const url of ['/favicon.ico', '/favicon.ico?v=1']) {
      const { status, headers, body } = await get(pages.around(refuse), url, 'image/*')
      expect([status, headers['content-type']]).toEqual([200, 'image/svg+xml'])
      expect(body).toMatch(/^<svg /)
    }
    const { body } = await get(pages.around(world.handle), '/alice', html)
    expect(JSON.parse(body ?? '')).toMatchObject({ id: alice, publicName: 'Alice' })
  })
})

describe('the options', () => {
  const auth = {} as PagesOptions['auth']

  test.each<[object, string]>([
    [{ formKey: new Uint8Array(31) }, 'formKey must be a Uint8Array of at least 32 bytes'],
    [{ ownerOf: undefined }, 'ownerOf must be a function'],
    [{ color: 'red' }, 'color is not known'],
    [{ receiverOf: 'Bob' }, 'receiverOf must be a function'],
    [{ signOut: true }, 'signOut must be a URL or a function'],
    [{ languages: { en: {} } }, 'languages.en.direction must be ltr or rtl'],
  ])('%j are refused', (options, message) => {
    expect(() => createPages({ auth, ...host, ...options } as PagesOptions)).toThrow(message)
  })

  test('replace what a page shows, and its design', async () => {
    const { as } = await asked({
      design: { name: 'Our "Bank"', css: ':root{--accent:#123456}' },
      screens: { notice: (name) => ({ title: name, content: name as never }) },
    })
    const { body, text } = await as('alice').open()
    expect(text).toContain('Our "Bank"')
    expect(body).toContain('--accent:#123456')
    expect((await as('bob').open()).body).toContain('<main>notYours</main>')
  })

  test('get the error of a hook, for which the page is a 500', async () => {
    const errors: unknown[] = []
    const error = new Error('no database')
    const { as } = await asked({
      accountsOf: () => Promise.reject(error),
      onError: (each) => void errors.push(each),
    })
    const { status, body } = await as('alice').open()
    expect([status, errors]).toEqual([500, [error]])
    expect(body).not.toContain('no database')
  })
})

describe.each<[string, (handle: Handler) => Promise<Server> | Server]>([
  ['Express', (handle) => createServer(express().use('/consent', toExpress(handle)))],
  [
    'Fastify',
    async (handle) => {
      const app = fastify()
      await app.register(toFastify(handle), { prefix: '/consent' })
      await app.ready()
      return app.server
    },
  ],
  [
    'Hono',
    (handle) =>
      createServer(getRequestListener(new Hono().all('/consent/*', toHono(handle)).fetch)),
  ],
  ['Fetch', (handle) => createServer(getRequestListener(toFetch(handle)))],
])('mounted with %s', (_, serverOf) => {
  test('the consent page asks and decides', async () => {
    const { pages, id } = await asked()
    const server = await serverOf(pages.consent)
    server.listen(0, 'localhost')
    await once(server, 'listening')
    const url = `http://localhost:${(server.address() as AddressInfo).port}/consent/${id}`
    const headers = { cookie: 'alice' }
    const text = await (await fetch(url, { headers })).text()
    const token = /name="token" value="(\w+)"/.exec(text)?.[1] ?? ''
    const body = new URLSearchParams({ token, decision: 'approve' })
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual' })
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toContain('interact_ref=')
    server.close()
    server.closeAllConnections()
  })
})
