import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { internet, type Network } from 'open-payments-programs'
import type { CreatedWallet } from 'open-payments-test-support/created-wallet'
import { testKey } from 'open-payments-test-support/keys'
import { decideAsOwner } from 'open-payments-test-support/owner-browser'
import { runs } from 'open-payments-test-support/runs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { amountOf, durationMs, money } from '../src/money.js'
import { redacted } from '../src/wire.js'
import { testWallet, workplace } from './support/workplace.js'

describe('amounts', () => {
  const value = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n })
  const scale = fc.integer({ min: 0, max: 255 })

  test('are exact: what is printed is read as the same amount', () => {
    fc.assert(
      fc.property(value, scale, (units, assetScale) => {
        const amount = { value: `${units}`, assetCode: 'USD', assetScale }
        expect(amountOf(money(amount), amount, '--amount')).toEqual(amount)
      }),
      { numRuns: runs(500) },
    )
  })

  test('may have fewer decimals than their asset, and never more', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 9 }),
        scale,
        (whole, decimals, assetScale) => {
          const text = `${whole + 1}.${'0'.repeat(decimals)}`
          const read = () => amountOf(text, { assetCode: 'USD', assetScale }, '--amount')
          if (decimals > assetScale) {
            expect(read).toThrow(`${decimals} decimals`)
            return
          }
          const units = BigInt(whole + 1) * 10n ** BigInt(assetScale)
          if (units < 2n ** 64n) expect(read().value).toBe(`${units}`)
          else expect(read).toThrow('at most')
        },
      ),
      { numRuns: runs(500) },
    )
  })

  test.each(['', '-1', '1e3', '1,00', '.5', '1.', '0', '0.00', '0x10', 'NaN', '1.00 EUR', '١'])(
    '%j is refused',
    (text) => {
      expect(() => amountOf(text, { assetCode: 'USD', assetScale: 2 }, '--amount')).toThrow(
        '--amount',
      )
    },
  )
})

test('durations have a unit and a limit', () => {
  expect(['90s', '10m', '1h', '7d'].map((text) => durationMs(text, '--wait'))).toEqual([
    90_000, 600_000, 3_600_000, 604_800_000,
  ])
  for (const text of ['', '1', '0s', '1w', '-1h', '1.5h', '367d', '99999999d']) {
    expect(() => durationMs(text, '--wait'), text).toThrow('--wait')
  }
})

test('tokens, references and shared secrets are redacted, and amounts are not', () => {
  const amount = { value: '100', assetCode: 'USD', assetScale: 2 }
  const access_token = {
    value: 'token',
    manage: 'https://a.example',
    access: [{ limits: { debitAmount: amount } }],
  }
  const body = {
    access_token,
    continue: { access_token: { value: 'token' } },
    interact_ref: 'r',
    list: [{ access_token }],
  }
  const text = JSON.stringify(redacted(body))
  expect(text).not.toContain('token"}')
  expect(text.match(/\(secret\)/g)).toHaveLength(4)
  expect(redacted(amount)).toEqual(amount)
})

const alice = 'https://wallet.example/alice'

/** Every server responds with 404. */
const refusing: Network = {
  fetch: async () => new Response('', { status: 404 }),
  addresses: async () => ['1.1.1.1'],
}

describe('the command line', () => {
  const place = workplace()
  afterAll(place.remove)

  test.each([
    ['no receiver', ['pay', '--from', alice, '--yes']],
    ['a receiver and a quote', ['pay', alice, '--quote', alice, '--from', alice, '--yes']],
    ['two amounts', ['pay', alice, '--from', alice, '--amount', '1', '--receive', '1', '--yes']],
    ['no account that pays', ['pay', alice, '--yes']],
    ['no confirmation, where nobody can be asked', ['pay', alice, '--from', alice]],
    ['an unknown option', ['request', alice, '--colour']],
    ['an amount in words', ['pay', alice, '--from', alice, '--amount', 'five', '--yes']],
    ['a limit in words', ['grant', alice, '--debit', 'five']],
    ['a wallet address that is no URL', ['request', 'alice']],
    ['an expiry without a unit', ['request', alice, '--expires', '10']],
    ['an interval without an amount', ['grant', alice, '--interval', 'R/P1M']],
    ['a time-out of 0', ['read', alice, '--timeout', '0']],
    ['payments of another kind', ['list', alice, '--access', 'quote']],
  ])('refuses %s with the exit code 2, before a request', async (_, args) => {
    const network: Network = { ...internet, fetch: () => expect.fail('no request is expected') }
    const { code, out, err } = await place.run([...args, '--client', 'https://shop.example'], {
      network,
    })
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^arguments: .+\nSee open-payments \w+ --help\.\n$/)
    expect(existsSync(place.keyFile), 'a new key').toBe(false)
  })

  test('refuses to revoke a grant that is not kept', async () => {
    const { code, err } = await place.run(['grant', '--revoke', 'grant-1'])
    expect([code, err]).toEqual([2, expect.stringContaining('no grant grant-1 is kept')])
  })

  test.each([
    ['pay', alice, '--from', alice, '--yes'],
    ['grant', alice],
    ['request', alice],
    ['read', alice],
    ['list', alice],
  ])('leaves no new key behind if all requests of %s are refused', async (...args) => {
    const client = ['--client', 'https://shop.example']
    const { code, err } = await place.run([...args, ...client], { network: refusing })
    expect([code, existsSync(place.keyFile)]).toEqual([1, false])
    expect(err).toContain(`The new key in ${place.keyFile} is removed again`)
  })

  test('keeps the new key of a command that is refused if something is made with it', async () => {
    const page = ['--register', 'https://wallet.example/keys', '--no-open', '--wait', '1s']
    const { code, err } = await place.run(['key', alice, ...page], { network: refusing })
    expect([code, existsSync(place.keyFile)]).toEqual([3, true])
    expect(err).toContain(`What exists: the key in ${place.keyFile}`)
    rmSync(place.keyFile)
  })

  test('says what is wrong before it asks for --yes', async () => {
    const { err } = await place.run(['pay', alice, '--from', alice, '--amount', 'five'])
    expect(err).toContain('--amount must be a decimal number')
  })

  test.each([
    [['pya', alice, '--from', alice], 'unknown command pya: did you mean pay?'],
    [['refund'], 'unknown command refund'],
    [[], 'a command is required'],
    [['--halp'], 'unknown option --halp: did you mean --help?'],
  ])('%j is no command', async (args, message) => {
    const { code, out, err } = await place.run(args)
    expect([code, out, err]).toEqual([2, '', `${message}\nSee open-payments --help.\n`])
  })

  test.each(['pay', 'request', 'grant', 'key', 'read', 'list'])('explains %s', async (command) => {
    const { code, out } = await place.run([command, '--help'])
    expect([code, out]).toEqual([0, expect.stringMatching(/^Usage: open-payments/)])
    for (const line of out.split('\n')) expect(line.length, line).toBeLessThanOrEqual(120)
  })

  test('does not connect to private addresses that only a wallet names', async () => {
    const document = { id: 'https://1.1.1.1/alice', assetCode: 'USD', assetScale: 2 }
    const network: Network = {
      ...internet,
      fetch: async () =>
        Response.json({
          ...document,
          authServer: 'http://localhost:1',
          resourceServer: 'http://localhost:1',
        }),
    }
    const { code, err } = await place.run(['request', 'https://1.1.1.1/alice'], { network })
    expect([code, err]).toEqual([2, expect.stringContaining('--allow-private')])
  })
})

describe('a key', () => {
  test('is created once, for its owner alone, and printed without its private part', async () => {
    const place = workplace()
    const network: Network = { ...internet, fetch: async () => Response.json({ keys: [] }) }
    const one = await place.run(['key', 'http://localhost/alice'], { network })
    const two = await place.run(['key'], { network })
    expect(one.out).toBe(two.out)
    expect(Object.keys(JSON.parse(one.out)).sort()).toEqual([
      'alg',
      'crv',
      'kid',
      'kty',
      'use',
      'x',
    ])
    expect(place.key()).toMatchObject({
      walletAddressUrl: 'http://localhost/alice',
      keyId: JSON.parse(one.out).kid,
    })
    expect(statSync(place.keyFile).mode & 0o777).toBe(0o600)
    place.remove()
  })

  test('may be a PEM file or a JWK, and is refused otherwise', async () => {
    const place = workplace()
    const file = join(place.folder, 'key')
    const { privateKey, x } = testKey('shop')
    const key = ['--key', file, '--key-id', 'shop-1']
    for (const content of [
      privateKey.export({ type: 'pkcs8', format: 'pem' }),
      JSON.stringify(privateKey.export({ format: 'jwk' })),
    ]) {
      writeFileSync(file, content, { mode: 0o644 })
      const { out, err } = await place.run(['key', ...key])
      expect(JSON.parse(out)).toMatchObject({ x, kid: 'shop-1' })
      expect(err).toContain(`chmod 600 ${file}`)
      expect((await place.run(['key', alice, ...key])).err).toContain(`--client ${alice}`)
      expect(readFileSync(file, 'utf8')).toBe(content)
    }
    expect(await place.run(['key', '--key', file])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--key-id'),
    })
    for (const content of ['nothing', '{', '{}', '{"privateKey":"x","keyId":"1"}']) {
      writeFileSync(file, content)
      expect((await place.run(['key', ...key])).code, content).toBe(2)
    }
    place.remove()
  })
})

describe('against a created wallet', () => {
  let wallet: CreatedWallet
  let from: string
  let bob: string
  const place = workplace()
  beforeAll(async () => {
    wallet = await testWallet()
    from = `${wallet.baseUrl}/alice`
    bob = `${wallet.baseUrl}/bob`
    await place.register(wallet)
  })
  afterAll(async () => {
    await wallet.stop()
    place.remove()
  })

  test('a payment to a wallet address without an amount requests no grant', async () => {
    const sent: string[] = []
    const network: Network = {
      ...internet,
      fetch(input, init) {
        sent.push(init?.method ?? 'GET')
        return fetch(input, init)
      },
    }
    const { code, err } = await place.run(['pay', bob, '--from', from, '--yes'], { network })
    expect([code, err]).toEqual([2, expect.stringContaining('--amount or --receive is required')])
    expect(sent).toEqual(['GET', 'GET'])
    expect(err).not.toContain('What exists')
  })

  test('a payment to a wallet address is priced, approved and sent', async () => {
    const { code, out, err } = await place.run([
      'pay',
      bob,
      '--from',
      from,
      '--amount',
      '10.00',
      '--yes',
    ])
    expect([code, out]).toEqual([0, expect.stringMatching(/\/outgoing-payments\/\S+\n$/)])
    expect(err).toContain(`10.00 USD is debited from ${from}`)
    expect(err).toContain('10.00 USD is sent')
    const { body } = await place.json(['read', out.trim()])
    expect(body).toMatchObject({ ok: true, failed: false, sentAmount: { value: '1000' } })
  })

  test('the grant for a payment names its receiver, so that the consent page says to whom', async () => {
    const bodies: string[] = []
    const network: Network = {
      ...internet,
      fetch(input, init) {
        if (init?.body) bodies.push(Buffer.from(init.body as Uint8Array).toString())
        return fetch(input, init)
      },
    }
    const asked = (await place.run(['request', bob, '--amount', '1.00'])).out.trim()
    const args = ['pay', asked, '--from', from, '--yes']
    expect((await place.run(args, { network })).code).toBe(0)
    const limits = bodies
      .map((body) => JSON.parse(body))
      .flatMap((body) => body.access_token?.access ?? [])
      .flatMap((item) => item.limits ?? [])
    expect(limits).toMatchObject([{ receiver: asked, debitAmount: { value: '100' } }])
  })

  test('an incoming payment is requested, paid with what it asks for, and seen to arrive', async () => {
    const asked = await place.run([
      'request',
      bob,
      '--amount',
      '2.50',
      '--expires',
      '1h',
      '--description',
      'Tea',
    ])
    const invoice = asked.out.trim()
    const paid = await place.json(['pay', invoice, '--from', from, '--yes'])
    expect(paid).toMatchObject({
      code: 0,
      body: { payment: { receiveAmount: { value: '250' }, failed: false } },
    })
    const { body } = await place.json(['read', invoice])
    expect(body).toMatchObject({
      completed: true,
      receivedAmount: { value: '250' },
      metadata: { description: 'Tea' },
    })
    expect(JSON.stringify(body)).not.toMatch(/"sharedSecret":"(?!\(secret\))/)
    const { out } = await place.run(['list', bob])
    expect(out).toContain(`${invoice}  2.50 USD of 2.50 USD  completed`)
  })

  test('an amount to receive is in the asset of the receiver', async () => {
    const args = [
      'pay',
      `${wallet.baseUrl}/carol`,
      '--from',
      from,
      '--receive',
      '5.00 EUR',
      '--yes',
    ]
    const { code, body } = await place.json(args)
    expect([code, body.payment.receiveAmount]).toEqual([
      0,
      { value: '500', assetCode: 'EUR', assetScale: 2 },
    ])
  })

  test('watching an incoming payment prints what arrives, until it is completed', async () => {
    let paid: Promise<{ readonly code: number }> | undefined
    const network: Network = {
      ...internet,
      async fetch(input, init) {
        const answer = await fetch(input, init)
        if (init?.method !== 'POST' || !String(input).endsWith('/incoming-payments')) return answer
        const { id } = (await answer.clone().json()) as { id: string }
        paid = place.run(['pay', id, '--from', from, '--yes'])
        return answer
      },
    }
    const { code, err } = await place.run(['request', bob, '--amount', '1', '--watch'], { network })
    expect([code, err]).toEqual([0, expect.stringContaining('1.00 USD is received')])
    expect((await paid)?.code).toBe(0)
  })

  test('a kept grant pays without the owner, until its limit; then the owner is asked again', async () => {
    const asked: string[] = []
    const browse = (url: string) => {
      asked.push(url)
      return decideAsOwner(url)
    }
    const granted = await place.json(['grant', from, '--debit', '5.00', '--interval', 'R12/P1M'], {
      browse,
    })
    const { id } = granted.body.grant
    expect(granted.body.grant.access[0].limits).toMatchObject({
      debitAmount: { value: '500' },
      interval: expect.stringMatching(/^R12\/\d{4}-.*Z\/P1M$/),
    })
    expect(statSync(join(place.folder, 'open-payments', 'grants', `${id}.json`)).mode & 0o777).toBe(
      0o600,
    )
    const pay = ['pay', bob, '--from', from, '--amount', '3.00', '--yes']
    expect((await place.json(pay, { browse })).body).toMatchObject({ ok: true, grant: id })
    expect(asked).toHaveLength(1)
    const second = await place.run([...pay], { browse })
    expect([second.code, second.err]).toEqual([
      0,
      expect.stringMatching(
        `The kept grant ${id} does not permit .* less than this payment; 2.00 USD is left; the next window begins at 2`,
      ),
    ])
    expect(asked).toHaveLength(2)
    expect((await place.run(['grant', '--list'])).out).toContain(
      `${id}  ${from}  outgoing-payment  at most 5.00 USD`.replace(
        'outgoing-payment  at',
        'outgoing-payment at',
      ),
    )
    expect((await place.run(['list', from, '--access', 'outgoing-payment'])).out).toContain(
      '3.00 USD of 3.00 USD',
    )
    expect((await place.run(['grant', '--revoke', id])).code).toBe(0)
    expect((await place.run(['grant', '--list'])).out).not.toContain(id)
  })

  test('an expired token is rotated before it is used', async () => {
    const { body } = await place.json(['grant', from, '--debit', '5.00'])
    const file = join(place.folder, 'open-payments', 'grants', `${body.grant.id}.json`)
    const kept = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...kept, expiresAt: 1 }))
    const { code, err } = await place.run(['pay', bob, '--from', from, '--amount', '1.00', '--yes'])
    expect([code, err]).toEqual([0, expect.stringContaining('rotate token')])
    expect(JSON.parse(readFileSync(file, 'utf8')).token).not.toBe(kept.token)
    await place.run(['grant', '--revoke', body.grant.id])
  })

  test('a lost response to the payment is repeated with the same quote, and pays once', async () => {
    const payments: string[] = []
    const network: Network = {
      ...internet,
      async fetch(input, init) {
        const answer = await fetch(input, init)
        if (init?.method !== 'POST' || !String(input).endsWith('/outgoing-payments')) return answer
        payments.push(((await answer.clone().json()) as { id: string }).id)
        if (payments.length > 1) return answer
        const cause = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
        throw new TypeError('fetch failed', { cause })
      },
    }
    const args = ['pay', bob, '--from', from, '--amount', '1.23', '--yes']
    const { body } = await place.json(args, { network })
    expect(payments).toEqual([body.payment.id, body.payment.id])
  })

  test('a response that is cut off is lost, too', async () => {
    let isCutOff = false
    const network: Network = {
      ...internet,
      async fetch(input, init) {
        const answer = await fetch(input, init)
        if (isCutOff || init?.method !== 'POST' || !String(input).endsWith('/outgoing-payments')) {
          return answer
        }
        isCutOff = true
        const body = new ReadableStream({ pull: (stream) => stream.error(new Error('reset')) })
        return new Response(body, answer)
      },
    }
    const args = ['pay', bob, '--from', from, '--amount', '1.23', '--yes']
    const { code } = await place.run(args, { network })
    expect([code, isCutOff]).toEqual([0, true])
  })

  test.each([
    ['pays another', { receiver: 'https://other.example/incoming-payments/1' }, 'pays https'],
    [
      'debits more',
      { debitAmount: { value: '124', assetCode: 'USD', assetScale: 2 } },
      'more than',
    ],
    [
      'debits another asset',
      { debitAmount: { value: '1', assetCode: 'EUR', assetScale: 2 } },
      'the asset',
    ],
  ])('a quote that %s is not paid', async (_, change, message) => {
    const network: Network = {
      ...internet,
      async fetch(input, init) {
        const answer = await fetch(input, init)
        if (!String(input).endsWith('/quotes')) return answer
        return Response.json({ ...((await answer.json()) as object), ...change }, answer)
      },
    }
    const args = ['pay', bob, '--from', from, '--amount', '1.23', '--yes']
    const { code, body } = await place.json(args, { network })
    expect([code, body.error]).toEqual([
      1,
      expect.objectContaining({ step: 'quote', message: expect.stringContaining(message) }),
    ])
  })

  test('other requests to the listener for the redirect do nothing', async () => {
    const statuses: number[] = []
    const { code, out } = await place.run(['grant', from, '--debit', '1.00'], {
      async browse(url) {
        const returned = await decideAsOwner(url, 'approve', false)
        const { origin, pathname } = returned ?? new URL(url)
        for (const [method, path] of [
          ['GET', '//'],
          ['GET', '/'],
          ['POST', pathname],
        ] as const) {
          statuses.push((await fetch(`${origin}${path}`, { method })).status)
        }
        await fetch(returned ?? '')
      },
    })
    expect([code, statuses]).toEqual([0, [404, 404, 404]])
    await place.run(['grant', '--revoke', out.trim()])
  })

  test('an interruption says what exists, and the quote is then paid once', async () => {
    const interruption = new AbortController()
    const stopped = await place.json(['pay', bob, '--from', from, '--amount', '1.00', '--yes'], {
      browse: () => interruption.abort(),
      interrupted: interruption.signal,
    })
    expect([stopped.code, stopped.body.error.message]).toEqual([130, 'interrupted'])
    const [, quote = ''] = /pay --quote (\S+)/.exec(stopped.body.exists.join('\n')) ?? []
    expect(stopped.body.exists.join('\n')).toContain(`the quote ${quote}, with no payment`)
    const resume = ['pay', '--quote', quote, '--from', from, '--yes']
    const [one, two] = [await place.json(resume), await place.json(resume)]
    expect([one.code, two.code]).toEqual([0, 0])
    expect(two.body.payment.id).toBe(one.body.payment.id)
  })

  test('the price is confirmed before the owner is asked', async () => {
    const browse = () => expect.fail('nothing may be opened')
    const { code, body } = await place.json(['pay', bob, '--from', from, '--amount', '1.00'], {
      browse,
      ask: async () => false,
    })
    expect([code, body.error.step]).toEqual([1, 'confirmation'])
  })

  test('an interruption at the question for the price is no answer', async () => {
    const interruption = new AbortController()
    const ask = async () => {
      interruption.abort()
      return false
    }
    const interrupted = interruption.signal
    const args = ['pay', bob, '--from', from, '--amount', '1.00']
    const { code, body } = await place.json(args, { ask, interrupted })
    expect([code, body.error.message]).toEqual([130, 'interrupted'])
  })

  test('a payment that failed is said to have failed', async () => {
    const network: Network = {
      ...internet,
      async fetch(input, init) {
        const answer = await fetch(input, init)
        if (init?.method !== 'GET' || !/\/outgoing-payments\/\S/.test(String(input))) return answer
        const sentAmount = { value: '0', assetCode: 'USD', assetScale: 2 }
        return Response.json({ ...((await answer.json()) as object), failed: true, sentAmount })
      },
    }
    const args = ['pay', bob, '--from', from, '--amount', '1.00', '--yes']
    const { code, body } = await place.json(args, { network })
    expect([code, body.error.message]).toEqual([1, 'the payment failed; 0.00 USD was sent'])
    expect(body.exists.join('\n')).toMatch(/the outgoing payment \S+, which failed/)
  })

  describe('a payment that its owner must confirm', () => {
    const args = () => ['pay', bob, '--from', from, '--amount', '60.00', '--yes']
    const isConsent = (url: string) => new URL(url).pathname.startsWith('/consent/')

    test('is sent after the owner has confirmed it on the page that opens', async () => {
      const pages: string[] = []
      const { code, body } = await place.json(args(), {
        browse(url) {
          pages.push(url)
          return decideAsOwner(url)
        },
      })
      expect([code, pages.map(isConsent)]).toEqual([0, [true, false]])
      expect(body.payment.sentAmount.value).toBe('6000')
    })

    test('is refused if the owner declines it', async () => {
      const { code, body } = await place.json(args(), {
        browse: (url) => decideAsOwner(url, isConsent(url) ? 'approve' : 'deny'),
      })
      expect([code, body.error.code]).toEqual([1, 'confirmation_declined'])
      const exists = body.exists.join('\n')
      expect(exists).toMatch(/the quote \S+, whose payment was refused for good/)
      expect(exists).not.toContain('To finish')
    })

    test('is left for later if nobody confirms it in time, and is then sent once', async () => {
      const { body: kept } = await place.json(['grant', from, '--debit', '60.00'])
      let page = ''
      const browse = (url: string) => {
        page = url
      }
      const stopped = await place.json([...args(), '--wait', '1s'], { browse })
      expect([stopped.code, stopped.body.error.hint]).toEqual([
        3,
        expect.stringMatching(/^The owner can confirm it until \d{4}-/),
      ])
      const [, quote = ''] = /pay --quote (\S+)/.exec(stopped.body.exists.join('\n')) ?? []
      await decideAsOwner(page)
      const resume = ['pay', '--quote', quote, '--from', from, '--yes']
      const [one, two] = [await place.json(resume), await place.json(resume)]
      expect([one.code, two.code]).toEqual([0, 0])
      expect(two.body.payment.id).toBe(one.body.payment.id)
      await place.run(['grant', '--revoke', kept.grant.id])
    })
  })

  test('a denial ends with the exit code 1', async () => {
    const { code, body } = await place.json(['grant', from, '--debit', '1.00'], {
      browse: (url) => decideAsOwner(url, 'deny'),
    })
    expect([code, body.error.message]).toEqual([1, expect.stringContaining('denied')])
  })

  test('a redirect with a wrong hash does not continue the grant', async () => {
    const { code, body } = await place.json(['grant', from, '--debit', '1.00'], {
      async browse(url) {
        const returned = await decideAsOwner(url, 'approve', false)
        returned?.searchParams.set('hash', createHash('sha256').update('other').digest('base64'))
        await fetch(returned ?? '')
      },
    })
    expect([code, body.error]).toEqual([
      1,
      expect.objectContaining({ step: 'consent', message: expect.stringContaining('hash') }),
    ])
  })

  test('nobody is waited for longer than --wait', async () => {
    const args = ['grant', from, '--debit', '1.00', '--wait', '1s', '--no-open']
    const { code, body } = await place.json(args)
    expect([code, body.error.message]).toEqual([3, 'nobody decided within 1 s'])
  })

  test('a refusal states the step, the status, the code and the description', async () => {
    const { code, body } = await place.json(['request', `${wallet.baseUrl}/nobody`])
    expect([code, body.error]).toEqual([
      1,
      expect.objectContaining({
        step: 'wallet address',
        status: 404,
        code: expect.any(String),
        description: expect.any(String),
      }),
    ])
  })

  test('no output contains a token, a private key or a reference', async () => {
    const references: string[] = []
    const browse = async (url: string) => {
      const returned = await decideAsOwner(url)
      references.push(returned?.searchParams.get('interact_ref') ?? '')
    }
    const outputs = [
      await place.run(['pay', bob, '--from', from, '--amount', '1.00', '--yes', '--verbose'], {
        browse,
      }),
      await place.run(['grant', from, '--debit', '1.00', '--verbose', '--json'], { browse }),
      await place.run(['grant', '--list', '--json']),
      await place.run(['request', bob, '--verbose', '--json']),
      await place.run(['key', '--json']),
    ]
    const folder = join(place.folder, 'open-payments', 'grants')
    const grants = readdirSync(folder).map((name) =>
      JSON.parse(readFileSync(join(folder, name), 'utf8')),
    )
    const secrets = [
      ...references,
      ...grants.flatMap(({ token, continuation }) => [token, continuation.token]),
    ]
    expect(secrets.length).toBeGreaterThan(5)
    const [, body = ''] = /KEY-----\s+(\S+)/.exec(place.key().privateKey) ?? []
    for (const { out, err } of outputs) {
      for (const secret of [...secrets, body]) expect((out + err).includes(secret)).toBe(false)
    }
    expect(outputs[0]?.err).toContain('> signature-input: sig1=')
    const shown = await place.run(['grant', from, '--debit', '1.00', '--show-token'])
    const [id] = shown.out.split('\n')
    expect(shown.out).toContain(JSON.parse(readFileSync(join(folder, `${id}.json`), 'utf8')).token)
  })

  test('the page for keys is opened with the key, and the program waits until it is published', async () => {
    const other = workplace()
    const opened: URL[] = []
    const { code, err } = await other.run(['key', from, '--register', `${wallet.baseUrl}/keys`], {
      async browse(url) {
        opened.push(new URL(url))
        await wallet.publish(from, JSON.parse(opened[0]?.searchParams.get('key') ?? ''))
      },
    })
    expect([code, err]).toEqual([0, expect.stringContaining(`${from} publishes the key`)])
    expect(opened[0]?.searchParams.get('account')).toBe(from)
    other.remove()
  })
})
