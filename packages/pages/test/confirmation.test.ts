import type { MayPay, RequestedPayment, SpendingLimit } from 'open-payments-server'
import {
  createSpendingWorld,
  euroReceiver,
  grantToPay,
  pay,
  shopReceiver,
  usd,
  withKey,
} from 'open-payments-test-support/spending'
import { errorOf } from 'open-payments-test-support/spending-client'
import { alice, bob } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, languages, type PagesOptions } from '../src/index.js'
import { followed } from './followed.js'
import { textOf } from './text.js'
import { ownerByCookie } from './visitors.js'

const minute = 60_000

/** A wallet with a payment that waits for alice, and its page. */
async function asked(more: Partial<PagesOptions> = {}, payment: object = {}) {
  const requested: RequestedPayment[] = []
  const host = { balance: 10_000, isBroken: false, limits: [] as readonly SpendingLimit[] }
  const mayPay: MayPay = (payment) => {
    requested.push(payment)
    const url = `https://wallet.example/confirm/${payment.outgoingPaymentId}`
    const until = world.clock.now() + 15 * minute
    if (!payment.isConfirmed) return { ok: false, refusal: 'confirmation_required', url, until }
    if (host.isBroken) throw new Error('no ledger')
    const isFunded = host.balance >= Number(payment.debitAmount.value)
    return isFunded ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
  }
  const world = createSpendingWorld({
    resources: { policy: { mayPay, accountLimits: () => host.limits } },
  })
  const { auth, resources, clock } = world
  world.clientKeys.displayOf = async () => ({ name: 'Shop <b>' })
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client)
  const request = () => pay(client, token, 1_250, payment, withKey('k'))
  expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
  const id = requested[0]?.outgoingPaymentId ?? ''
  const accounts = [
    { url: alice, owner: 'alice', publicName: 'Alice', assetCode: 'USD', assetScale: 2 },
  ]
  const pages = createPages({
    auth,
    resources,
    clock: { now: () => clock.now() },
    ...ownerByCookie,
    accountsOf: (owner) => accounts.filter((each) => each.owner === owner),
    ...more,
  })
  /** A browser of an owner, which posts the fields of the page that it was shown. */
  function as(owner: string, paymentId = id) {
    let fields: Record<string, string> = {}
    const send = async (method: string, body = '', more: readonly [string, string][] = []) => {
      const headers = [['cookie', owner] as const, ...more]
      const url = `/confirm/${paymentId}`
      const sent = new TextEncoder().encode(body)
      const serve = (url: string, as: string) =>
        pages.confirmation({ method: as, url, headers, body: sent })
      const response = await followed(await serve(url, method), url, (url) => serve(url, 'GET'))
      return { ...response, text: textOf(response.body ?? '') }
    }
    return {
      async open() {
        const response = await send('GET')
        const hidden = response.body?.matchAll(/name="(\w+)" value="([^"]*)"/g) ?? []
        const plain = (text = '') => text.replaceAll('&#34;', '"')
        fields = Object.fromEntries([...hidden].map(([, name, value]) => [name, plain(value)]))
        return response
      },
      post: (changes: Record<string, string>, headers: readonly [string, string][] = []) =>
        send('POST', `${new URLSearchParams({ ...fields, ...changes })}`, [...headers]),
    }
  }
  return { world, pages, id, grantId, as, request, host, requested }
}

describe('the page that confirms a payment', () => {
  test('says which app, how much, to whom, from which account and until when', async () => {
    const receiverOf = () => ({ name: 'Bob', walletAddress: bob })
    const { as } = await asked({ receiverOf })
    const { status, text } = await as('alice').open()
    expect(status).toBe(200)
    for (const part of [
      'Shop <b> asks you to confirm a payment',
      'https://shop.example',
      'The app chose its name.',
      'Pay Bob 12.50 USD',
      `ToBob ${bob}`,
      `FromAlice ${alice}`,
      'You can confirm until',
    ]) {
      expect(text).toContain(part)
    }
    expect(text).not.toContain('Arrives')
  })

  test('says what arrives if that is another amount, and the URL of an unknown receiver', async () => {
    const { as } = await asked({}, { incomingPayment: euroReceiver })
    const { text } = await as('alice').open()
    expect(text).toContain(`Tobank.example ${euroReceiver}`)
    expect(text).toContain('Arrives6.25 EUR')
  })

  test('shows the balance of the account, and no seconds in the time', async () => {
    const account = { url: alice, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }
    const { as, world } = await asked({ accountsOf: () => [{ ...account, balance: 12_345n }] })
    world.clock.advance(1_234)
    const { text } = await as('alice').open()
    expect(text).toContain('Balance: 123.45 USD')
    expect(text).toMatch(/until \w+, \w+ \d+, \d{4}, \d\d:\d\d UTC/)
  })

  test('says to its owner alone what became of a payment that was confirmed', async () => {
    const { as, world, id } = await asked()
    await as('alice').open()
    const alices = as('alice')
    await alices.open()
    await alices.post({ decision: 'confirm' })
    const { status, text } = await as('alice').open()
    expect([status, text]).toEqual([200, expect.stringContaining('Already decided')])
    expect(text).toMatch(/12\.50 USD to .*waits to be sent/)
    const { outgoingPayments } = world.resources
    expect(await outgoingPayments.begin(id)).toMatchObject({ ok: true })
    expect((await as('alice').open()).text).toContain('is being sent')
    const bobs = await as('bob').open()
    expect([bobs.status, bobs.text]).toEqual([404, expect.not.stringContaining('12.50')])
    const nobodys = await as('').open()
    expect([nobodys.status, nobodys.text]).toEqual([303, expect.not.stringContaining('12.50')])
  })

  test.each(['en', 'de', 'es', 'ar'] as const)('is in the language %s', async (language) => {
    const { as } = await asked({ ownerOf: () => ({ id: 'alice', language }) })
    const { text, body } = await as('alice').open()
    const texts = languages[language]
    expect(body).toContain(`lang="${language}" dir="${texts.direction}"`)
    for (const key of ['confirm', 'decline', 'rowTo'] as const) expect(text).toContain(texts[key])
    expect(text).toContain(texts.returns.replace('{app}', 'Shop <b>'))
  })

  test('makes the payment, also if the form is posted twice, and its client gets it', async () => {
    const { as, request, requested } = await asked()
    const alices = as('alice')
    await alices.open()
    const first = await alices.post({ decision: 'confirm' })
    expect([first.status, first.text]).toEqual([200, expect.stringContaining('Payment confirmed')])
    const second = await alices.post({ decision: 'confirm' })
    expect([second.status, second.text]).toEqual([
      200,
      expect.stringContaining('Payment confirmed'),
    ])
    for (const { text } of [first, second]) {
      expect(text).toMatch(/12\.50 USD to .*waits to be sent/)
      expect(text).toContain('You can return to Shop <b>.')
    }
    expect((await request()).status).toBe(201)
    expect(requested).toHaveLength(2)
    const reopened = await alices.open()
    expect([reopened.status, reopened.text]).toEqual([
      200,
      expect.stringContaining('Already decided'),
    ])
  })

  test.each(['en', 'de', 'es', 'ar'] as const)(
    'says in the language %s to which app the owner can return afterwards',
    async (language) => {
      for (const decision of ['confirm', 'decline']) {
        const { as } = await asked({ ownerOf: () => ({ id: 'alice', language }) })
        const alices = as('alice')
        await alices.open()
        const { text } = await alices.post({ decision })
        const named = languages[language].returnTo.replace('{app}', 'Shop <b>')
        expect(text).toContain(`${named} https://shop.example`)
      }
    },
  )

  test('declines the payment for good', async () => {
    const { as, request } = await asked()
    const alices = as('alice')
    await alices.open()
    for (let time = 1; time <= 2; time++) {
      const { status, text } = await alices.post({ decision: 'decline' })
      expect([status, text]).toEqual([200, expect.stringContaining('Payment declined')])
    }
    expect((await alices.post({ decision: 'confirm' })).text).toContain('Payment declined')
    expect(errorOf(await request())).toEqual([403, 'confirmation_declined'])
  })

  test('is for its owner alone, and sends others to the login', async () => {
    const { as, request } = await asked()
    const { status, text } = await as('bob').open()
    expect([status, text]).toEqual([403, expect.stringContaining('Not yours')])
    const anybody = await as('').open()
    expect([anybody.status, anybody.headers['location']]).toEqual([
      303,
      expect.stringMatching(/^\/login\?next=%2Fconfirm%2F/),
    ])
    const alices = as('alice')
    await alices.open()
    expect((await as('bob').post({ decision: 'confirm' })).status).toBe(403)
    expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
  })

  test('confirms only what it has shown, to its owner, by a form of its own', async () => {
    const { as, request } = await asked()
    const alices = as('alice')
    await alices.open()
    const shown = JSON.stringify({
      receiver: euroReceiver,
      debitAmount: usd(1),
      receiveAmount: usd(1),
    })
    for (const [changes, headers, status] of [
      [{ shown }, [], 400],
      [{ token: '' }, [], 400],
      [{ decision: 'approve' }, [], 400],
      [{}, [['sec-fetch-site', 'cross-site']], 403],
    ] as [Record<string, string>, [string, string][], number][]) {
      const answer = await alices.post({ decision: 'confirm', ...changes }, headers)
      expect(answer.status).toBe(status)
    }
    expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
  })

  test.each([
    ['the time is over', 'Too late', 410],
    ['the account cannot pay', 'Not enough money', 409],
    ['the grant was revoked', 'Payment not made', 409],
    ['the host fails', 'Something went wrong', 500],
  ])('says so if %s', async (change, title, status) => {
    const { as, world, grantId, host } = await asked()
    const alices = as('alice')
    await alices.open()
    if (change === 'the time is over') world.clock.advance(15 * minute)
    if (change === 'the account cannot pay') host.balance = 0
    if (change === 'the grant was revoked') await world.auth.grants.revoke(grantId)
    if (change === 'the host fails') host.isBroken = true
    const answer = await alices.post({ decision: 'confirm' })
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(title)])
    if (change !== 'the host fails') return
    host.isBroken = false
    expect((await alices.open()).status).toBe(200)
    expect((await alices.post({ decision: 'confirm' })).text).toContain('Payment confirmed')
  })

  test.each(['en', 'de', 'es', 'ar'] as const)(
    'says in %s that a payment above a limit of the owner waits further, and takes the next answer',
    async (language) => {
      const accountLimits = { of: async () => [], set: async () => true }
      const { as, host, request } = await asked({
        ownerOf: () => ({ id: 'alice', language }),
        connectedAppsUrl: '/apps',
        accountLimits,
      })
      host.limits = [{ debitAmount: usd(1_249) }]
      const alices = as('alice')
      await alices.open()
      const { status, text, body } = await alices.post({ decision: 'confirm' })
      const texts = languages[language]
      expect(status).toBe(409)
      for (const part of [texts.overLimitTitle, texts.overLimit, texts.waitsAnswer]) {
        expect(text).toContain(part)
      }
      expect(text).toContain(texts.waitsUntil.split('{time}')[1])
      expect(text).not.toContain(texts.notPaid)
      expect(body).toContain('href="/apps?limits"')
      expect(errorOf(await request())).toEqual([403, 'confirmation_required'])

      host.limits = []
      expect((await alices.open()).text).toContain(texts.confirm)
      expect((await alices.post({ decision: 'confirm' })).text).toContain(texts.confirmedTitle)
      expect((await request()).status).toBe(201)
    },
  )

  test('does not exist for another id, nor without the calls of the resource server', async () => {
    const { as, world } = await asked()
    expect((await as('alice', 'another').open()).status).toBe(404)
    const { toConfirm: _, ...outgoingPayments } = world.resources.outgoingPayments
    const without = await asked({ resources: { outgoingPayments } })
    expect((await without.as('alice').open()).status).toBe(404)
  })
})

describe('the page of a payment that its owner ordered in the own app', () => {
  const order = {
    ...{ walletAddress: alice, receiver: shopReceiver, debitAmount: usd(700) },
    data: { card: 'secret' },
    idempotencyKey: 'rent 2026-11',
  }

  async function ordered(more: Partial<PagesOptions> = {}, members: object = {}) {
    const wallet = await asked(more)
    const { outgoingPayments } = wallet.world.resources
    const create = () => outgoingPayments.create({ ...order, ...members })
    expect(await create()).toMatchObject({ refusal: 'confirmation_required' })
    const id = wallet.requested.at(-1)?.outgoingPaymentId
    return { ...wallet, create, as: (owner: string) => wallet.as(owner, id) }
  }

  test.each([
    ['that the host named', { resourceOwner: 'alice' }],
    ['of the account', {}],
  ])('is for the owner %s, names no app, and makes the payment', async (_, members) => {
    const { as, create } = await ordered({ sendUrl: '/send' }, members)
    const bobs = as('bob')
    expect((await bobs.open()).status).toBe(403)
    expect((await bobs.post({ decision: 'confirm' })).status).toBe(403)
    const alices = as('alice')
    const { status, text, body } = await alices.open()
    expect(status).toBe(200)
    const parts = ['Confirm your payment', '7.00 USD', `Tobank.example ${shopReceiver}`]
    for (const part of [...parts, `FromAlice ${alice}`]) expect(text).toContain(part)
    for (const part of ['Shop', 'shop.example', 'chose its name', 'return to the app', 'secret']) {
      expect(body).not.toContain(part)
    }
    const confirmed = await alices.post({ decision: 'confirm' })
    expect(confirmed.text).toMatch(/Payment confirmed.*7\.00 USD to/)
    expect(confirmed.text).not.toContain('return to')
    expect(confirmed.body).toContain('<a href="/send">Send more money</a>')
    expect(await create()).toMatchObject({ ok: true, changed: false })
    const [again, others] = [await alices.open(), await as('bob').open()]
    expect([again.status, again.text]).toEqual([200, expect.stringContaining('7.00 USD')])
    expect([others.status, others.text]).toEqual([404, expect.not.stringContaining('7.00')])
  })

  test('declines it for good', async () => {
    const { as, create } = await ordered()
    const alices = as('alice')
    await alices.open()
    expect((await alices.post({ decision: 'decline' })).text).toContain('Payment declined')
    expect(await create()).toMatchObject({ ok: false, refusal: 'confirmation_declined' })
  })

  test.each(['en', 'de', 'es', 'ar'] as const)('is in the language %s', async (language) => {
    const { as } = await ordered({ ownerOf: () => ({ id: 'alice', language }) })
    const { text } = await as('alice').open()
    const { confirmOwn, confirm, decline, returns } = languages[language]
    for (const part of [confirmOwn, confirm, decline]) expect(text).toContain(part)
    expect(text).not.toContain(returns)
  })
})
