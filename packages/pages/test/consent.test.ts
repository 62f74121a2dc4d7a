import fc from 'fast-check'
import type { AccessItem, Amount, InteractionView, TokenItem } from 'open-payments-server'
import { describe, expect, test } from 'vitest'
import { type ConsentOptions, consentScreen } from '../src/consent.js'
import { html } from '../src/html.js'
import { page } from '../src/layout.js'
import { limitOf } from '../src/limits.js'
import { languages, localeFor, visible } from '../src/locale.js'
import type { TextKey } from '../src/texts.js'
import { actions, factsOf, item, totalsOf, wire } from './granted.js'
import { textOf } from './text.js'

const alice = 'https://wallet.example/alice'
const now = Date.UTC(2026, 10, 25)
const usd = (value: string): Amount => ({ value, assetCode: 'USD', assetScale: 2 })

export function viewOf(
  access: readonly TokenItem[],
  more: Partial<InteractionView> = {},
): InteractionView {
  const labels = [...new Set(access.map(({ label }) => label))]
  return {
    id: 'id',
    grantId: 'grant',
    status: 'pending',
    client: 'https://shop.example/app',
    clientKey: { kid: 'shop-1', thumbprint: 'thumbprint' },
    display: { uri: 'https://shop.example' },
    access,
    tokens: labels.map((label) => ({
      ...(label !== undefined && { label }),
      access: access.filter((item) => item.label === label),
    })),
    needAccount: access.filter(
      ({ type, identifier }) => type === 'outgoing-payment' && identifier === undefined,
    ),
    totals: totalsOf(access),
    expiresAt: now + 600_000,
    ...more,
  }
}

function shown(
  view: InteractionView,
  language = 'en',
  options: Partial<ConsentOptions> = {},
): { readonly body: string; readonly text: string } {
  const locale = localeFor({ headers: [] }, { language })
  const accounts = [{ url: alice, assetCode: 'USD', assetScale: 2 }]
  const base = { locale, now, accounts, token: html`` }
  const { body = '' } = page(consentScreen(view, { ...base, ...options }), { locale })
  return { body, text: textOf(body) }
}

const monthly = { interval: 'R12/2026-12-01T00:00:00Z/P1M', debitAmount: usd('2500') }
const pay = (limits?: AccessItem['limits']): AccessItem => ({
  type: 'outgoing-payment',
  actions: ['create', 'read'],
  identifier: alice,
  ...(limits && { limits }),
})

describe('the consent page', () => {
  test('says who asks, how much, how often, the sum, the account and the end', () => {
    const display = { uri: 'https://shop.example', name: 'Shop' }
    const { text } = shown(viewOf([pay(monthly)], { display }))
    for (const expected of [
      'Shop asks to pay from your account',
      'https://shop.example/app',
      'The app chose its name.',
      'Up to 25.00 USD every month, 12 times',
      'In totalat most 300.00 USD',
      `From${alice}`,
      'StartsDecember 1, 2026',
      'EndsDecember 1, 2027',
      'It may also:see the payments it made',
    ]) {
      expect(text).toContain(expected)
    }
  })

  test.each<[string, AccessItem, string[]]>([
    [
      'no interval',
      pay({ debitAmount: usd('2500') }),
      ['Up to 25.00 USD in all', 'when you end it'],
    ],
    [
      'no end',
      pay({ debitAmount: usd('1'), interval: 'R/2026-12-01T00:00:00Z/P1W' }),
      ['every week', 'no maximum'],
    ],
    ['no limit', pay(), ['Any amount There is no limit', 'could spend all the money']],
    [
      'a limit on what arrives',
      pay({ receiveAmount: usd('2500') }),
      ['Up to 25.00 USD for the receiver', 'Fees and exchange rates'],
    ],
    [
      'one window',
      pay({ ...monthly, interval: 'R1/2026-12-01T00:00:00Z/P1M' }),
      ['Up to 25.00 USD until January 1, 2027'],
    ],
    [
      'times that are over',
      pay({ ...monthly, interval: 'R1/2025-12-01T00:00:00Z/P1M' }),
      ['These times are over'],
    ],
    [
      'a receiver',
      pay({ receiver: 'https://b.example/1', ...monthly }),
      ['Only tob.example https://b.example/1'],
    ],
    [
      'no payments',
      { type: 'incoming-payment', actions: ['create'], identifier: alice },
      ['asks for access to your account', 'create payment requests for you', `only for ${alice}`],
    ],
  ])('tells the truth about access with %s', (_, item, expected) => {
    const { text } = shown(viewOf([item]))
    for (const each of expected) expect(text).toContain(each)
  })

  test.each<[string, AccessItem['limits'], boolean]>([
    ['what the account pays', { debitAmount: usd('2500') }, true],
    ['what the account pays every month', monthly, true],
    ['what arrives', { receiveAmount: usd('2500') }, false],
    ['nothing', {}, false],
  ])('says that fees are included if the limit counts: %s', (_, limits, isIncluded) => {
    for (const tag of ['en', 'de', 'es', 'ar'] as const) {
      const { text } = shown(viewOf([pay(limits)]), tag)
      expect(text.includes(languages[tag].feesIncluded)).toBe(isIncluded)
    }
  })

  test('names the receiver and its wallet address, and the granted URL in the details', () => {
    const receiver = 'https://wallet.example/incoming-payments/1'
    const bob = { name: 'Bob', walletAddress: 'https://wallet.example/bob' }
    const { text } = shown(viewOf([pay({ receiver, ...monthly })]), 'en', {
      receivers: new Map([[receiver, bob]]),
    })
    expect(text).toContain('Only toBob https://wallet.example/bob')
    expect(text).toContain(`only to Bob https://wallet.example/bob ${receiver}`)
  })

  test.each<[string, Amount | undefined, AccessItem['limits'], string]>([
    ['exactly what its receiver asks for', usd('2500'), {}, 'Pay Bob 25.00 USD, once'],
    ['less than its receiver asks for', usd('9900'), {}, 'Up to 25.00 USD in all'],
    ['to a receiver that names no amount', undefined, {}, 'Up to 25.00 USD in all'],
    [
      'the same number of another asset',
      { ...usd('2500'), assetCode: 'EUR' },
      {},
      'Up to 25.00 USD in all',
    ],
    ['again every month', usd('2500'), monthly, 'Up to 25.00 USD every month'],
  ])('calls a request one payment only if it is: %s', (_, amount, limits, expected) => {
    const receiver = 'https://wallet.example/incoming-payments/1'
    const bob = {
      name: 'Bob',
      walletAddress: 'https://wallet.example/bob',
      ...(amount && { amount }),
    }
    const access = [pay({ receiver, debitAmount: usd('2500'), ...limits })]
    const { text } = shown(viewOf(access), 'en', { receivers: new Map([[receiver, bob]]) })
    expect(text).toContain(expected)
    expect(text).toContain('Only toBob https://wallet.example/bob')
    const isOnce = expected.startsWith('Pay ')
    expect(text.includes('Lower the limit')).toBe(!isOnce)
    expect(text.includes('when you end it')).toBe(!isOnce && limits?.interval === undefined)
  })

  test('says what an app may do in the words of an owner, and names each action in the details', () => {
    const all = (
      type: 'incoming-payment' | 'outgoing-payment' | 'quote',
      names: readonly string[],
    ) => ({ type, identifier: alice, actions: names }) as AccessItem
    const own = ['create', 'complete', 'read', 'list']
    const access = [
      all('outgoing-payment', ['create', 'read', 'list']),
      all('incoming-payment', own),
      all('quote', ['create', 'read']),
    ]
    const { body } = shown(viewOf(access))
    const [, list = ''] = /It may also:<\/p><ul>(.*?)<\/ul>/s.exec(body) ?? []
    expect([...list.matchAll(/<bdi>(.*?)<\/bdi>/g)].map(([, words]) => words)).toEqual([
      'see the payments it made',
      'create payment requests for you',
      'ask what a payment would cost',
    ])
    expect(textOf(body)).toContain('list the payment requests it made')
    const wide = shown(viewOf([pay(), all('incoming-payment', [...own, 'list-all'])]))
    expect(wide.text).toContain('see every payment request of your account')
  })

  test('says that a request is only about who the owner is', () => {
    const { text } = shown(viewOf([], { subject: { id: alice, format: 'uri' } }))
    expect(text).toContain('shop.example asks who you are')
    expect(text).toContain(`know that you are ${alice}`)
  })

  test('adds up the limits of several tokens, and names them in the details', () => {
    const { text } = shown(viewOf(['rent', 'food'].map((label) => ({ ...pay(monthly), label }))))
    expect(text).toContain('Up to 50.00 USD every month, 12 times')
    expect(text).toContain('2 with this limit each, added up here')
    expect(text).toMatch(/“rent”.*25\.00 USD.*“food”.*25\.00 USD/)
  })

  test('shows the name of the app beside its verified address, and never instead', () => {
    const name = 'https://bank.example'
    const { text } = shown(viewOf([pay()], { display: { uri: 'https://shop.example', name } }))
    expect(text).toMatch(/https:\/\/bank\.example asks .*https:\/\/shop\.example\/app/)
  })

  test.each<[string, Amount | undefined, number]>([
    ['dollars', usd('1'), 1],
    ['no limit', undefined, 2],
    ['yen', { value: '1', assetCode: 'JPY', assetScale: 0 }, 0],
  ])('offers the accounts that fit, and explains the others: %s', (_, debitAmount, count) => {
    const { identifier: _account, ...item } = pay(debitAmount && { debitAmount })
    const accounts = [
      { url: alice, assetCode: 'USD', assetScale: 2, publicName: 'Daily' },
      { url: 'https://wallet.example/euros', assetCode: 'EUR', assetScale: 2 },
    ]
    const { body, text } = shown(viewOf([item]), 'en', { accounts })
    expect(body.match(/type="radio"/g) ?? []).toHaveLength(count)
    expect(body.match(/ checked/g) ?? []).toHaveLength(Math.min(count, 1))
    expect(text.match(/Not (?:Daily|https:[^:]*): the limit is in/g) ?? []).toHaveLength(2 - count)
    expect(body.includes('value="approve"')).toBe(count > 0)
    expect(body).toContain('value="deny"')
  })

  test('shows the balance of an account to its owner, also of one that is overdrawn', () => {
    const accounts = [
      { url: alice, assetCode: 'USD', assetScale: 2, publicName: 'Daily', balance: 123_456n },
      { url: 'https://wallet.example/more', assetCode: 'USD', assetScale: 2, balance: -5n },
    ]
    expect(shown(viewOf([pay()]), 'en', { accounts }).text).toContain(
      `FromDaily ${alice} Balance: 1,234.56 USD`,
    )
    const { identifier: _, ...open } = pay()
    const { text } = shown(viewOf([open]), 'en', { accounts })
    expect(text).toContain('Balance: 1,234.56 USD')
    expect(text).toContain('Balance: -0.05 USD')
  })

  test('has a field for each limit that the owner can lower, and says to which token it belongs', () => {
    expect(shown(viewOf([pay()])).body).not.toContain('limit-')
    const one = shown(viewOf([pay(monthly)]))
    expect(one.text).toContain('Lower the limitYour limit, lower than 25.00 USD ')
    const labels = ['rent', 'food']
    const { body, text } = shown(viewOf(labels.map((label) => ({ ...pay(monthly), label }))))
    expect(body.match(/<input id="limit-\d"/g)).toEqual([
      '<input id="limit-0"',
      '<input id="limit-1"',
    ])
    expect(text).toMatch(/lower than 25.00 USD ?With the key that it calls “food”/)
  })

  test('lets a host replace a section', () => {
    const also = () => html`<p>our own</p>`
    const { text } = shown(viewOf([pay(monthly)]), 'en', { sections: { also } })
    expect(text).toContain('our own')
    expect(text).not.toContain('It may also')
  })
})

test('nothing that is granted stays unsaid, and nothing from the network becomes markup', () => {
  const given = fc.record({
    access: fc.array(item, { maxLength: 6 }),
    language: fc.constantFrom('en', 'de', 'es', 'ar'),
    name: fc.option(wire),
    client: wire,
    subject: fc.option(wire),
    receiver: fc.option(fc.record({ name: wire, walletAddress: wire }, { requiredKeys: [] })),
  })
  fc.assert(
    fc.property(given, ({ access, language, name, client, subject, receiver }) => {
      const view = viewOf(access, {
        client,
        display: { uri: client, ...(name && { name }) },
        ...(subject && { subject: { id: subject, format: 'uri' } }),
      })
      const urls = access.flatMap(({ limits }) => limits?.receiver ?? [])
      const receivers = new Map(receiver === null ? [] : urls.map((url) => [url, receiver]))
      const { body, text } = shown(view, language, { receivers })
      const locale = localeFor({ headers: [] }, { language })
      const says = (expected: string) =>
        expect(text).toContain(visible(expected).replaceAll(/[\s\u00a0\u202f]+/g, ' '))
      says(client)
      if (name) says(name)
      if (subject) says(subject)
      if (urls.length > 0) {
        if (receiver?.name) says(receiver.name)
        if (receiver?.walletAddress) says(receiver.walletAddress)
      }
      for (const fact of factsOf(access, locale)) says(fact)
      expect(body.replace(/<title>.*?<\/title>/s, '')).not.toMatch(/<img|[\u202a-\u202e\u2069]/)
      const details = access.some((each) => limitOf(each) !== undefined) ? 2 : 1
      // The elements are those of the page, whatever the network says.
      expect(body.match(/<details>/g) ?? []).toHaveLength(details)
      expect(body.match(/<\/details>/g) ?? []).toHaveLength(details)
    }),
    { numRuns: 150 },
  )
})

test('every language says every action in its own words', () => {
  const said = Object.values(languages).map(
    (texts) =>
      new Set(
        Object.entries(actions).flatMap(([type, all]) =>
          all.map((each) => texts[`${type}.${each}` as TextKey]),
        ),
      ),
  )
  for (const each of said) expect(each.size).toBe(14)
  expect(new Set(said.flatMap((each) => [...each])).size).toBe(4 * 14)
})
