import type { MayPay } from 'open-payments-server'
import {
  createSpendingWorld,
  euroReceiver,
  grantToPay,
  newQuote,
  quoteToken,
  shopReceiver,
  usd,
} from 'open-payments-test-support/spending'
import { alice, bob } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, languages, type PagesOptions } from '../src/index.js'
import { textOf } from './text.js'
import { ownerByCookie } from './visitors.js'

const minute = 60_000

/** A wallet whose owners send money, to the shop and to Bob. */
function wallet(more: Partial<PagesOptions> = {}, mayPay: MayPay = () => ({ ok: true })) {
  const world = createSpendingWorld({ resources: { policy: { mayPay } } })
  const { auth, resources, clock } = world
  const looked: string[] = []
  const pages = createPages({
    auth,
    resources,
    clock: { now: () => clock.now() },
    ...ownerByCookie,
    accountsOf: (owner) => [
      { url: owner === 'alice' ? alice : bob, assetCode: 'USD', assetScale: 2 },
    ],
    send: {
      async receiverFor(to) {
        looked.push(to)
        if (to.includes('nobody')) return undefined
        return to.includes('/incoming-payments/') ? to : shopReceiver
      },
    },
    ...more,
  })

  /** A browser of an owner, with the page that it shows. */
  function as(owner: string) {
    async function request(method: string, url: string, body = '') {
      const headers = owner ? [['cookie', owner] as const] : []
      return pages.send({ method, url, headers, body: new TextEncoder().encode(body) })
    }
    async function open(query = '') {
      const url = `/send${query}`
      const { status, headers, body = '' } = await request('GET', url)
      const hidden = `${body}`.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)
      const fields = Object.fromEntries([...hidden].map(([, name, value]) => [name, value ?? '']))
      return { status, headers, url, body: `${body}`, text: textOf(`${body}`), fields }
    }
    type Opened = Awaited<ReturnType<typeof open>>
    /** Posts the form of a page, and follows the redirect. */
    async function post(page: Opened, typed: Readonly<Record<string, string>> = {}) {
      const sent = new URLSearchParams({ ...page.fields, ...typed })
      const { status, headers } = await request('POST', page.url, `${sent}`)
      const { location = '' } = headers
      if (status !== 303 || !location.startsWith('?'))
        return { ...(await open()), status, location }
      return { ...(await open(location)), location }
    }
    const typed = { account: owner === 'alice' ? alice : bob, to: 'shop.example/till', amount: '' }
    const check = async (given: Readonly<Record<string, string>> = {}) =>
      post(await open(), { ...typed, ...given })
    return { open, post, check }
  }

  const paid = async () => (await resources.outgoingPayments.list({ walletAddress: alice })).result
  return { world, looked, as, paid, outgoingPayments: resources.outgoingPayments }
}

describe('the page on which an owner sends money', () => {
  test('shows the price before anything is paid, and pays exactly that', async () => {
    const { as, paid, looked, outgoingPayments } = wallet()
    const { check, post, open } = as('alice')
    const price = await check({ to: '$shop.example/till', amount: '12.50' })
    expect([price.status, looked]).toEqual([200, ['https://shop.example/till']])
    for (const part of [
      'Please check the payment',
      'Pay bank.example 12.50 USD',
      `From${alice}`,
      'valid until',
    ]) {
      expect(price.text).toContain(part)
    }
    expect(await paid()).toEqual([])
    const after = await post(price)
    expect(after.text).toContain('The payment is being made')
    expect(await paid()).toMatchObject([{ debitAmount: usd(1_250), receiver: shopReceiver }])
    const [payment] = await paid()
    expect(payment).not.toHaveProperty('client')
    const id = payment?.paymentId ?? ''
    await outgoingPayments.begin(id)
    await outgoingPayments.reportSent(id, { sentAmount: usd(1_250), deliveredAmount: usd(1_250) })
    expect((await open(after.location)).text).toContain('The payment has been made')
  })

  test('pays once after a double click, a reload and Back, also when the price has expired', async () => {
    const { world, as, paid } = wallet()
    const { check, post } = as('alice')
    const price = await check({ amount: '1' })
    await Promise.all([post(price), post(price)])
    world.clock.advance(10 * minute)
    expect((await post(price)).text).toContain('The payment is being made')
    expect(await paid()).toHaveLength(1)
  })

  test('pays what a request for money asks, if no amount is written', async () => {
    const { as } = wallet()
    const { check } = as('alice')
    const price = await check({ to: euroReceiver })
    expect(price.text).toContain('10.00 USD')
    expect(price.text).toContain('Arrives5.00 EUR')
  })

  test.each([
    ['to', { to: ' ' }, 'Please write a wallet address'],
    ['to', { to: 'http://shop.example/till' }, 'Please write a wallet address'],
    ['to', { to: 'javascript:alert(1)' }, 'Please write a wallet address'],
    ['to', { to: 'shop.example/nobody' }, 'Nobody can be paid at this address'],
    ['to', { to: 'bank.example/incoming-payments/gone' }, 'This receiver cannot be paid'],
    ['amount', { amount: 'ten' }, 'Please write an amount, such as 25.00 USD'],
    ['amount', { amount: '0' }, 'Please write an amount, such as 25.00 USD'],
    ['amount', { to: euroReceiver, amount: '0.01' }, 'nothing would arrive'],
  ])(
    'says beside the field %s what is wrong with %j, and keeps what was typed',
    async (field, given, text) => {
      const { as, paid } = wallet()
      const { check } = as('alice')
      const refused = await check(given)
      expect(refused.status).toBe(400)
      expect(refused.text).toContain(text)
      expect(refused.body).toContain(`href="#${field}"`)
      expect(refused.body).toContain(`aria-describedby="${field}-problem ${field}-hint"`)
      for (const typed of Object.values(given)) expect(refused.body).toContain(`value="${typed}"`)
      expect(await paid()).toEqual([])
    },
  )

  test('shows a new price when the old one has expired, and pays nothing', async () => {
    const { world, as, paid } = wallet()
    const { check, post, open } = as('alice')
    const price = await check({ amount: '7' })
    world.clock.advance(10 * minute)
    for (const page of [await post(price), await open(price.location)]) {
      expect([page.status, page.text]).toEqual([400, expect.stringContaining('no longer valid')])
      expect(page.body).toContain('value="7"')
    }
    expect(await paid()).toEqual([])
  })

  test.each(Object.entries(languages))(
    'no longer says in %s that nothing was paid, once it cannot know that',
    async (language, texts) => {
      const { world, as, paid, outgoingPayments } = wallet({
        ownerOf: () => ({ id: 'alice', language }),
      })
      const { check, post, open } = as('alice')
      const price = await check({ amount: '7' })
      const after = await post(price)
      const id = (await paid())[0]?.paymentId ?? ''
      await outgoingPayments.begin(id)
      await outgoingPayments.reportSent(id, { sentAmount: usd(700), deliveredAmount: usd(700) })
      world.clock.advance(400 * 86_400_000)
      await world.resources.sweep()
      expect(await outgoingPayments.get(id)).toBeUndefined()
      for (const page of [await open(after.location), await post(price)]) {
        expect(page.text).toContain(texts.sendGone)
        for (const untrue of [texts.sendRefused, texts.notPaid]) {
          expect(page.text).not.toContain(untrue)
        }
      }
      expect(await paid()).toEqual([])
    },
  )

  test('says that the account cannot pay, and leads to the confirmation that the host demands', async () => {
    const broke = wallet({}, () => ({ ok: false, refusal: 'funds_insufficient' }))
    const poor = broke.as('alice')
    const refused = await poor.post(await poor.check({ amount: '7' }))
    expect(refused.text).toContain('Your account cannot pay this amount')
    const url = 'https://wallet.example/confirm/1'
    const until = Date.UTC(2026, 10, 21, 13)
    const asks = wallet({}, () => ({ ok: false, refusal: 'confirmation_required', url, until }))
    const { check, post } = asks.as('alice')
    const waiting = await post(await check({ amount: '7' }))
    expect(waiting.text).toContain('This payment needs your confirmation')
    expect(waiting.body).toContain(`href="${url}"`)
    expect(await asks.paid()).toEqual([])
  })

  test('shows and pays no quote of a client or of another owner', async () => {
    const { world, as, paid } = wallet()
    const client = world.client()
    await grantToPay(world, client)
    const { body } = await newQuote(client, await quoteToken(client), { debitAmount: usd(5) })
    const ofClient = `?quote=${String(body.id).split('/').at(-1)}`
    expect((await as('alice').open(ofClient)).status).toBe(403)
    const price = await as('alice').check({ amount: '5' })
    const mallory = as('mallory')
    expect((await mallory.open(price.location)).status).toBe(403)
    expect((await mallory.post(price)).text).not.toContain('being made')
    expect(
      (await as('alice').post({ ...price, fields: { ...price.fields, token: '' } })).text,
    ).toContain('Please answer again')
    expect(await paid()).toEqual([])
  })

  test('needs a session, and the option', async () => {
    const { headers } = await wallet().as('').open()
    expect(headers['location']).toBe(`/login?${new URLSearchParams({ next: '/send' })}`)
    const without = wallet({ send: undefined } as unknown as Partial<PagesOptions>)
    expect((await without.as('alice').open()).status).toBe(404)
  })

  test('runs no script, and is filled by a link', async () => {
    const { as } = wallet()
    const { headers, body } = await as('alice').open('?to=%3Cb%3E&amount=3')
    expect(headers['content-security-policy']).not.toContain('script-src')
    expect(body).toContain('value="&#60;b&#62;"')
    expect(body).toContain('value="3"')
  })
})
