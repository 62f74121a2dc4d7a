import { request } from 'node:http'
import { accountLimitsOn } from 'create-open-payments-server/wallet/account-limits'
import { createWithStartPage } from 'create-open-payments-server/wallet/start-page/index'
import type { Handler } from 'open-payments-server'
import {
  type CreatedWallet,
  noFee,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { decide } from 'open-payments-test-support/examples/demo'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'

let running: CreatedWallet
/** Whether the owner has to confirm a payment, whether the wallet is overloaded, and how much later it is. */
const scene = { mustConfirm: false, isBusy: false, laterMs: 0 }
beforeAll(async () => {
  running = await startCreatedWallet({
    async create(settings, database, ports) {
      const wallet = await createWithStartPage(settings, database, {
        ...ports,
        exchanges: noFee,
        mustConfirm: () => scene.mustConfirm,
        clock: { now: () => Date.now() + scene.laterMs },
        signatures: { clock: { now: () => Date.now() } },
      })
      const handle: Handler<string | Uint8Array> = async (request) =>
        scene.isBusy && request.url === '/outgoing-payments' ? overloaded : wallet.handle(request)
      return { wallet: { ...wallet, handle } }
    },
  })
})
afterEach(() => {
  Object.assign(scene, { mustConfirm: false, isBusy: false })
})
afterAll(() => running.stop())

const overloaded = {
  status: 503,
  headers: { 'content-type': 'application/json', 'retry-after': '1' },
  body: JSON.stringify({ error: { code: 'busy', description: 'Temporarily unavailable' } }),
}

const at = (path: string) => new URL(path, running.baseUrl).href
const html = { accept: 'text/html' }

/** What a person reads on a page. */
function textOf(page: string): string {
  return page
    .replace(/<(style|script).*?<\/\1>/gs, '')
    .replace(/<\/td>/g, ' ')
    .replace(/<[^>]*>/g, '')
    .replace(/\s+/g, ' ')
}

/** The text of the start page. */
const shown = async (path = '/') => textOf(await (await fetch(at(path), { headers: html })).text())

function post(fields: Readonly<Record<string, string>>, headers = {}): Promise<Response> {
  const body = new URLSearchParams(fields)
  return fetch(at('/start-page/pay'), { method: 'POST', redirect: 'manual', headers, body })
}

async function token(): Promise<string> {
  const [, found = ''] =
    /name="token" value="([^"]+)"/.exec(await (await fetch(at('/'))).text()) ?? []
  return found
}

const locationOf = ({ headers }: Response) => headers.get('location') ?? ''

/** Presses the button, and resolves to the URL of the consent page. */
const pressed = async () => locationOf(await post({ token: await token() }))

/** Presses the button, decides as Alice, and resolves to the URL to which the browser then returns. */
async function decided(decision: 'approve' | 'deny'): Promise<string> {
  return `${(await decide(await pressed(), decision)).location}`
}

/** Follows the redirect of the consent page, and resolves to the path of the start page. */
const returned = async (url: string) => locationOf(await fetch(url, { redirect: 'manual' }))

const balanceOf = async (owner: string) =>
  (await running.wallet.ledger.find(at(`/${owner}`)))?.balance ?? 0n

describe('the start page', () => {
  test('shows the accounts, and links to the pages of their owners', async () => {
    const response = await fetch(at('/'))
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ])
    const links = [...(await response.text()).matchAll(/href="([^"]+)"/g)].map(
      ([, url = '']) => url,
    )
    expect(links).toEqual(expect.arrayContaining([at('/alice'), at('/bob'), '/apps', '/keys']))
    for (const link of links) expect((await fetch(at(link))).status, link).toBe(200)
  })

  test.each(['/login', '/nothing'])(
    'is linked from the pages of owners, such as %s',
    async (path) => {
      const page = await (await fetch(at(path), { headers: html })).text()
      expect(page).toContain('<a href="/">Start page for developers</a>')
    },
  )

  test('says who can sign in with which password, as the login does', async () => {
    const hint = 'Sign in as alice or bob, with the password that .env or the terminal shows'
    for (const path of ['/', '/login']) expect(await shown(path)).toContain(hint)
  })

  test('pays with the consent of the owner, who sees whom, and shows the new balances', async () => {
    const [alice, bob] = [await balanceOf('alice'), await balanceOf('bob')]
    const { page: consent, location } = await decide(await pressed(), 'approve')
    for (const part of ['Demo shop', at('/shop'), 'Bob', at('/bob')]) {
      expect(textOf(consent)).toContain(part)
    }
    const page = await shown(await returned(`${location}`))
    expect(page).toContain('Alice has paid Bob 5.00 USD.')
    expect(page).toContain('− 5.00 USD sent to Bob')
    expect(page).toContain('+ 5.00 USD received')
    expect([await balanceOf('alice'), await balanceOf('bob')]).toEqual([alice - 500n, bob + 500n])
    expect(page).toMatch(/POST \/outgoing-payments.*? 201/)
    expect(await shown()).not.toContain('has paid')
  })

  test('pays once, however often the browser returns', async () => {
    const url = await decided('approve')
    const bob = await balanceOf('bob')
    const paths = await Promise.all([returned(url), returned(url)])
    paths.push(await returned(url))
    for (const path of paths) expect(await shown(path)).toContain('Alice has paid Bob')
    expect(await balanceOf('bob')).toBe(bob + 500n)
  })

  test('believes a redirect without a hash only until the owner has approved', async () => {
    const approved = await decided('approve')
    const payment = new URL(approved).searchParams.get('payment') ?? ''
    const before = await balanceOf('bob')
    const forged = at(
      `/start-page/paid?${new URLSearchParams({ payment, result: 'grant_rejected' })}`,
    )
    expect(await shown(await returned(forged))).toContain('Alice has denied')
    expect(await shown(await returned(approved))).toContain('Alice has paid')
    expect(await balanceOf('bob')).toBe(before + 500n)
    expect(await shown(await returned(forged))).toContain('Alice has paid')
  })

  test('says that the owner has denied', async () => {
    const bob = await balanceOf('bob')
    expect(await shown(await returned(await decided('deny')))).toContain('Alice has denied')
    expect(await balanceOf('bob')).toBe(bob)
  })

  test('says why a payment was refused, as the client and as the wallet knows it', async () => {
    const { sql } = running.wallet.database
    const url = await decided('approve')
    const balance = await balanceOf('alice')
    await sql("UPDATE accounts SET balance = 499 WHERE owner = 'alice'")
    const page = await shown(await returned(url))
    await sql(
      'UPDATE accounts SET balance = ? WHERE wallet_address = ?',
      `${balance}`,
      at('/alice'),
    )
    expect(page).toContain('The payment failed')
    expect(page).toContain('403 insufficient_funds')
    expect(page).toMatch(/POST \/outgoing-payments.*? 403.*? funds_insufficient the account/)
  })

  test('lists what any client is refused, with the reason, and escapes what it sent', async () => {
    await fetch(at('/"><img>?<script>'))
    const id = /data-id="(\d+)"/.exec(await (await fetch(at('/'))).text())?.[1]
    await fetch(at('/incoming-payments'), { method: 'POST' })
    const rows = await (await fetch(at(`/start-page/requests?after=${id}`))).text()
    expect(rows.match(/<tr/g)).toHaveLength(1)
    expect(rows).toMatch(/signature_\w+<\/code> .+<\/td>/)
    const all = await (await fetch(at('/start-page/requests?after=100000'))).text()
    expect(all.match(/<tr/g)?.length, 'after the wallet was started again').toBeGreaterThan(1)
    expect(all).not.toMatch(/<img|<script/)
    expect(all).not.toContain('/start-page/')
  })
})

describe('a payment that Alice has to confirm', () => {
  const payments = () => running.wallet.resources.outgoingPayments

  async function confirm(id: string) {
    const payment = await payments().toConfirm(id)
    if (payment === undefined) throw new Error(`${id} does not wait`)
    const { receiver, debitAmount, receiveAmount } = payment
    return payments().confirm(id, { resourceOwner: 'alice', receiver, debitAmount, receiveAmount })
  }

  /** Approves a payment that then waits, and returns the path of its page, and its id. */
  async function waiting() {
    scene.mustConfirm = true
    const path = await returned(await decided('approve'))
    const page = await (await fetch(at(path), { headers: html })).text()
    expect(textOf(page)).toContain('The payment waits for Alice: confirm or decline it')
    expect(textOf(page)).not.toContain('failed')
    const [, url = '', id = ''] = /href="([^"]+\/confirm\/([^"]+))"/.exec(page) ?? []
    expect(url).toBe(at(`/confirm/${id}`))
    expect((await fetch(url)).status).toBe(200)
    return { path, id }
  }

  test('is made with the same quote, once she has confirmed', async () => {
    const before = await balanceOf('bob')
    const { path, id } = await waiting()
    expect(await shown(path)).toContain('The payment waits for Alice')
    expect((await confirm(id)).ok).toBe(true)
    for (const visit of [path, path]) expect(await shown(visit)).toContain('Alice has paid Bob')
    expect(await balanceOf('bob')).toBe(before + 500n)
  })

  test('is continued by the page without a name of it, until it has ended', async () => {
    const { id } = await waiting()
    expect(await shown()).toContain('The payment waits for Alice')
    await confirm(id)
    expect(await shown()).toContain('Alice has paid Bob')
    expect(await shown()).not.toContain('Alice has paid Bob')
  })

  test('is made although the token and the quote expire while she decides', async () => {
    const { path, id } = await waiting()
    scene.laterMs += 11 * 60_000
    expect(await shown(path)).toContain('The payment waits for Alice')
    expect((await confirm(id)).ok).toBe(true)
    expect(await shown(path)).toContain('Alice has paid Bob')
  })

  test('is not made if she declines', async () => {
    const before = await balanceOf('bob')
    const { path, id } = await waiting()
    expect((await payments().decline(id, { resourceOwner: 'alice' })).ok).toBe(true)
    expect(await shown(path)).toContain('Alice has declined the payment. Nothing is paid.')
    expect(await balanceOf('bob')).toBe(before)
  })

  test('is not made if she does not answer in time', async () => {
    const { path } = await waiting()
    scene.laterMs += 16 * 60_000
    expect(await shown(path)).toContain('Alice has not answered in time. Nothing is paid.')
  })
})

describe('a payment that the wallet does not make now', () => {
  const limit = { debitAmount: { value: '1', assetCode: 'USD', assetScale: 2 } }
  const limits = () => accountLimitsOn(running.wallet.database)

  test.each([
    [
      'is overloaded',
      () => Object.assign(scene, { isBusy: true }),
      () => Object.assign(scene, { isBusy: false }),
      '503 busy',
    ],
    [
      'has a limit of its owner',
      () => limits().set(at('/alice'), [limit], []),
      () => limits().set(at('/alice'), [], [limit]),
      'not_permitted_now',
    ],
  ])('because it %s has not failed, and is made once it does', async (_, begin, end, reason) => {
    const before = await balanceOf('bob')
    const url = await decided('approve')
    await begin()
    const path = await returned(url)
    const page = await shown(path)
    await end()
    expect(page).toContain('The payment is not made yet')
    expect(page).toContain(reason)
    expect(page).not.toContain('The payment failed')
    expect(await balanceOf('bob')).toBe(before)
    expect(await shown(path)).toContain('Alice has paid Bob')
    expect(await balanceOf('bob')).toBe(before + 500n)
  })
})

describe('other sites', () => {
  test.each([
    ['without the token of the form', {}, {}],
    ['with another token', { token: '0'.repeat(64) }, {}],
    ['as a browser of another site says', undefined, { 'sec-fetch-site': 'cross-site' }],
    ['as a browser of another port says', undefined, { 'sec-fetch-site': 'same-site' }],
  ])('cannot press the button: %s', async (_, fields, headers) => {
    const { status, headers: answered } = await post(fields ?? { token: await token() }, headers)
    expect([status, answered.get('location')]).toEqual([403, null])
  })

  test('cannot complete a payment that the owner approved, without the hash for it', async () => {
    const url = new URL(await decided('approve'))
    const bob = await balanceOf('bob')
    const forged = new URL(url)
    forged.searchParams.set('hash', 'A'.repeat(43))
    expect((await fetch(forged, { redirect: 'manual' })).status).toBe(400)
    expect(await balanceOf('bob')).toBe(bob)
    expect(await shown(await returned(url.href))).toContain('has paid')
  })

  test('see no page under a name of theirs that leads to this machine', async () => {
    const ask = (host: string, path: string) =>
      running.wallet.handle({
        method: 'GET',
        url: path,
        headers: [
          ['host', host],
          ['accept', 'text/html'],
        ],
        body: new Uint8Array(),
      })
    for (const path of ['/', '/start-page/requests', '/start-page/paid']) {
      expect((await ask('evil.example', path)).status, path).toBe(404)
    }
    expect((await ask(new URL(running.baseUrl).host, '/')).status).toBe(200)
  })
})

describe('in production', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('there is no start page, and no app that it could act for', async () => {
    vi.stubEnv('NODE_ENV', 'production')
    const settings = {
      baseUrl: at('').slice(0, -1),
      sessionSecret: new Uint8Array(32),
      paymentDetailsSecret: new Uint8Array(32),
      demoPassword: 'x',
    }
    const { handle } = await createWithStartPage(settings, running.wallet.database, {
      onRefusal: () => {},
    })
    const headers: [string, string][] = [
      ['host', new URL(running.baseUrl).host],
      ['accept', 'text/html'],
    ]
    const ask = (method: string, url: string) =>
      handle({ method, url, headers, body: new Uint8Array() })
    const none = await ask('GET', '/')
    expect(none.status).toBe(404)
    expect(none.body).not.toContain('Start page')
    expect((await ask('GET', '/start-page/requests')).status).toBe(404)
    expect(await ask('GET', '/shop/jwks.json')).toMatchObject({ status: 200, body: '{"keys":[]}' })
  })
})

describe('the answers of a created wallet', () => {
  test.each(['/start-page/requests', '/favicon.ico', '/', '/login'])(
    'at %s can be framed, sniffed and run by nobody, and tell no path to others',
    async (path) => {
      const { status, headers } = await fetch(at(path), { headers: html })
      expect(status).toBe(200)
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('strict-origin')
    },
  )

  test.each(['/login', '/apps', '/keys', '/consent/unknown', '/confirm/unknown'])(
    'at %s are for its own name and those of this machine, not for a site that leads its name here',
    async (path) => {
      const { port } = new URL(running.baseUrl)
      const asked = (host: string) =>
        new Promise<number>((resolve, reject) => {
          const headers = { host: `${host}:${port}` }
          request({ hostname: 'localhost', port, path, headers }, (response) => {
            resolve(response.resume().statusCode ?? 0)
          })
            .on('error', reject)
            .end()
        })
      expect(await asked('evil.example')).toBe(421)
      for (const own of ['localhost', '127.0.0.1']) expect(await asked(own)).not.toBe(421)
    },
  )
})
