import fc from 'fast-check'
import type {
  GrantView,
  ItemBudget,
  LimitStatus,
  OutgoingPaymentView,
  PaymentToConfirm,
} from 'open-payments-server'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { type ConnectedAppOptions, connectedAppScreen } from '../src/connected-app.js'
import {
  type ConnectedApp,
  type ConnectedAppsOptions,
  connectedAppsScreen,
  isPaying,
} from '../src/connected-apps.js'
import { html } from '../src/html.js'
import { page, type Screen } from '../src/layout.js'
import { limitOf } from '../src/limits.js'
import { localeFor, visible } from '../src/locale.js'
import { debitedAsset, periods } from '../src/owner-limits.js'
import { factsOf, factsOfLimit, item as granted, ownerLimit, wire } from './granted.js'
import { textOf } from './text.js'

const now = Date.UTC(2026, 11, 10)
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const item = {
  itemId: '1',
  type: 'outgoing-payment',
  actions: ['create', 'read'],
  identifier: 'https://wallet.example/alice',
  limits: { debitAmount: usd('5000'), interval: 'R/2026-12-01T00:00:00Z/P1M' },
} as const

function grantOf(more: Partial<GrantView> = {}): GrantView {
  return {
    grantId: 'grant',
    client: 'https://shop.example/app',
    clientKey: { kid: 'shop-1', thumbprint: 'thumbprint' },
    status: 'approved',
    access: [item],
    createdAt: 0,
    approvedAt: Date.UTC(2026, 10, 3),
    ...more,
  }
}

const budget = (spent: string, left: string): ItemBudget => ({
  item,
  isOpen: true,
  window: { start: Date.UTC(2026, 11, 1), end: Date.UTC(2027, 0, 1) },
  spent: { debitAmount: usd(spent), receiveAmount: null },
  left: { debitAmount: usd(left) },
})

const locale = localeFor({ headers: [] })
const alice = { url: item.identifier, publicName: 'Everyday', assetCode: 'USD', assetScale: 2 }
const base = { locale, now, accounts: [alice], token: html`` }

function seen(screen: Screen) {
  const { body = '' } = page(screen, { locale })
  return { body, text: textOf(body) }
}

/** The page of all apps, with one app. */
function shown(app: Partial<ConnectedApp>, options: Partial<ConnectedAppsOptions> = {}) {
  return seen(connectedAppsScreen([{ grant: grantOf(), ...app }], { ...base, ...options }))
}

/** The page of one app. */
function detailed(app: Partial<ConnectedApp>, options: Partial<ConnectedAppOptions> = {}) {
  return seen(connectedAppScreen({ grant: grantOf(), ...app }, { ...base, ...options }))
}

/** A payment of this account that waits for its owner. */
const waitingPayment: PaymentToConfirm = {
  paymentId: 'payment-1',
  walletAddress: item.identifier,
  client: 'https://shop.example/app',
  clientKey: { kid: 'shop-1', thumbprint: 'thumbprint' },
  grantId: 'grant',
  receiver: 'https://shop.example/incoming-payments/1',
  receiverWalletAddress: 'https://shop.example/<till>',
  debitAmount: usd('3000'),
  receiveAmount: usd('3000'),
  itemId: '1',
  createdAt: now,
  url: 'https://wallet.example/confirm/payment-1?a="b"',
  until: now + 900_000,
}

describe.each([
  ['all apps', shown],
  ['one app', detailed],
] as const)('what waits for the owner, on the page of %s', (_, open) => {
  test('comes first, with a link, and is not called spent', () => {
    const { body, text } = open({ budgets: [budget('4000', '1000')], waiting: [waitingPayment] })
    const waits = text.indexOf('Waits for your answer')
    expect(waits).toBeGreaterThan(0)
    expect(waits).toBeLessThan(text.indexOf('50.00 USD'))
    expect(text).toContain('30.00 USD to https://shop.example/<till>')
    expect(body).toContain('href="https://wallet.example/confirm/payment-1?a=&#34;b&#34;"')
    expect(text).toContain('10.00 USD of 50.00 USD spent')
    expect(text).toContain('10.00 USD left until')
    expect(text).toContain('30.00 USD waits for your answer')
  })

  test('names the receiver, if it is known', () => {
    const { receiver } = waitingPayment
    const receivers = new Map([
      [receiver, { name: 'Till <b>', walletAddress: 'https://shop.example/till' }],
    ])
    const { text } = open({ waiting: [waitingPayment] }, { receivers })
    expect(text).toContain('30.00 USD to Till <b> https://shop.example/till')
  })

  test('is the part of the bar after what is spent', () => {
    const { body } = open({ budgets: [budget('4000', '1000')], waiting: [waitingPayment] })
    expect(body).toContain('<rect width="20%" height="100%"/>')
    expect(body).toContain('<rect class="waits" x="20%" width="60%" height="100%"/>')
  })

  test('counts in its own window and item only', () => {
    const others = [
      { ...waitingPayment, createdAt: Date.UTC(2026, 10, 30) },
      { ...waitingPayment, itemId: '2' },
    ]
    const { text } = open({ budgets: [budget('4000', '1000')], waiting: others })
    expect(text).toContain('40.00 USD of 50.00 USD spent')
    expect(text).not.toContain('USD waits for your answer')
  })

  test('is not mentioned while nothing waits', () => {
    const { body, text } = open({ budgets: [budget('4000', '1000')], waiting: [] })
    expect(text).not.toContain('your answer')
    expect(body).not.toContain('class="waits"')
    expect(text).toContain('40.00 USD of 50.00 USD spent')
  })
})

describe('the order of connected apps', () => {
  const once = { ...item, limits: { debitAmount: usd('5000') } }
  const spentAll = {
    item: once,
    isOpen: true,
    spent: { debitAmount: usd('5000'), receiveAmount: null },
  }
  const usedUp: ConnectedApp = {
    grant: grantOf({ grantId: 'used', access: [once] }),
    display: { name: 'Old shop' },
    budgets: [{ ...spentAll, left: { debitAmount: usd('0') } }],
  }
  const active: ConnectedApp = {
    grant: grantOf({ grantId: 'active' }),
    display: { name: 'Magazine' },
    budgets: [budget('5000', '0')],
  }
  const waiting: ConnectedApp = {
    ...usedUp,
    grant: grantOf({ grantId: 'waiting', access: [once] }),
    display: { name: 'Bakery' },
    waiting: [waitingPayment],
  }

  test('begins with what waits for the owner, and ends with what can never pay again', () => {
    const { text, body } = seen(connectedAppsScreen([usedUp, active, waiting], base))
    const names = [...body.matchAll(/<h2[^>]*>(?:<bdi>)?([^<]*)/g)].map(([, name]) => name)
    expect(names).toEqual(['Bakery', 'Magazine', 'Used up', 'Old shop'])
    expect(text.match(/Pause payments/g)).toHaveLength(2)
  })

  test('offers nothing on the page of a used-up app but to remove it', () => {
    const one = (app: ConnectedApp) => {
      const { text, body } = seen(connectedAppScreen(app, base))
      const actions = [...body.matchAll(/name="do" value="(\w+)"/g)].map(([, action]) => action)
      return { text, actions }
    }
    expect(one(usedUp).actions).toEqual(['revoke'])
    expect(one(usedUp).text).toMatch(/Used up.*this app cannot pay any more/)
    expect(one(waiting).actions).toEqual(['lower', 'limit', 'pause', 'revoke'])
    expect(one(waiting).text).not.toContain('Used up')
  })

  test('has no such end while an app can pay again, whatever it has spent', () => {
    const some = { ...usedUp, budgets: [{ ...spentAll, left: { debitAmount: usd('1') } }] }
    const unknown: ConnectedApp = { grant: grantOf({ access: [once] }) }
    const { text } = seen(connectedAppsScreen([active, waiting, some, unknown], base))
    expect(text).not.toContain('Used up')
  })
})

describe('the page of connected apps', () => {
  test('shows the limit of an app, what it has spent, what is left, and its last payment', () => {
    const lastPayment = {
      debitAmount: usd('1200'),
      createdAt: Date.UTC(2026, 11, 4),
      status: 'completed',
    } as OutgoingPaymentView
    const { body, text } = shown({
      display: { name: 'Shop' },
      budgets: [budget('1200', '3800')],
      lastPayment,
    })
    for (const expected of [
      'Shop',
      'https://shop.example/app',
      'Up to 50.00 USD every month',
      '12.00 USD of 50.00 USD spent',
      '38.00 USD left until January 1, 2027',
      'Last payment: 12.00 USD on December 4, 2026',
      'Account: Everyday',
      'Details and payments',
    ]) {
      expect(text).toContain(expected)
    }
    expect(body).toMatch(
      /role="meter" [^>]*aria-valuenow="24" aria-label="[^"]*spent[^"]*"><rect width="24%"/,
    )
  })

  test.each<[string, Partial<ConnectedApp>, string]>([
    [
      'has spent more than a limit that was lowered',
      { budgets: [budget('6000', '0')] },
      '60.00 USD of 50.00 USD spent',
    ],
    [
      'cannot pay now',
      { budgets: [{ ...budget('0', '0'), isOpen: false }] },
      'It cannot pay at this time.',
    ],
    ['has not paid', { lastPayment: null }, 'No payment so far'],
    [
      'failed to pay',
      {
        lastPayment: {
          debitAmount: usd('1'),
          createdAt: 0,
          status: 'failed',
        } as OutgoingPaymentView,
      },
      'which failed',
    ],
    [
      'is paused',
      { grant: grantOf({ conditions: { pausedUntil: 253_402_300_799_999 } }) },
      'Paused ',
    ],
    [
      'is paused for a time',
      { grant: grantOf({ conditions: { pausedUntil: now + 3_600_000 } }) },
      'Paused until Thu, December 10, 2026, 01:00 UTC',
    ],
    ['may pay anything', { grant: grantOf({ access: [{ ...item, limits: {} }] }) }, 'Any amount'],
    [
      'learns who the owner is',
      { grant: grantOf({ subject: { id: 'me', format: 'uri' } }) },
      'know that you are me',
    ],
    [
      'has no address',
      { grant: grantOf({ client: 'urn:ietf:params:oauth:jwk-thumbprint:x' }) },
      'urn:ietf:params:oauth:jwk-thumbprint:x',
    ],
  ])('says that an app %s', (_, app, expected) => {
    expect(shown(app).text).toContain(expected)
  })

  test('fills the bar to the end and no further', () => {
    expect(shown({ budgets: [budget('6000', '0')] }).body).toContain('<rect width="100%"')
  })

  test('leads to the page of each app, and to older ones', () => {
    expect(shown({ grant: grantOf({ grantId: 'a&b' }) }).body).toContain(
      '<a href="?app=a%26b" aria-label="Details and payments: shop.example"',
    )
    const removal = '<a href="?app=a%26b#remove" aria-label="Remove access: shop.example"'
    expect(shown({ grant: grantOf({ grantId: 'a&b' }) }).body).toContain(removal)
    expect(detailed({}).body).toContain('<details id="remove">')
    expect(shown({}, { olderUrl: '?before=x' }).body).toContain(
      '<a href="?before=x">Older apps</a>',
    )
  })

  test('says that there is no app, and none that matches a search', () => {
    const none = (options: Partial<ConnectedAppsOptions> = {}) =>
      seen(connectedAppsScreen([], { ...base, ...options }))
    expect(none().text).toContain('No app has access to your account.')
    expect(none().body).not.toContain('role="search"')
    const { body, text } = none({ search: '"><img src=x>', searchedMax: 500 })
    expect(text).toContain('No connected app matches this search.')
    expect(text).toContain('Only the newest 500 apps were searched.')
    expect(body).toContain('value="&#34;&#62;&#60;img src=x&#62;"')
  })

  test('names the app and the account whose access was removed', () => {
    const removed = { grant: grantOf({ status: 'revoked' }), display: { name: 'Shop' } }
    expect(shown({}, { removed }).text).toContain('Shop no longer has access to Everyday.')
  })

  test('escapes what an app chose', () => {
    const name = '<img src=x>"'
    const access = [{ ...item, identifier: name, label: name, limits: { receiver: name } }]
    const app = { display: { name }, grant: grantOf({ client: name, access }) }
    for (const { body } of [shown(app), detailed(app)]) {
      expect(body).not.toContain('<img')
      expect(body.match(/img src=x/g)?.length).toBeGreaterThan(5)
    }
  })
})

describe('the page of one connected app', () => {
  const display = { name: 'Shop' }

  test('says everything that is granted, since when, and under what conditions', () => {
    const conditions = { paymentMax: usd('100'), receivers: ['https://r.example'] }
    const { text } = detailed({ display, grant: grantOf({ conditions }) })
    for (const expected of [
      'Shop https://shop.example/app',
      'Approved on November 3, 2026',
      'pay money from your account',
      'see the payments it made',
      `only for Everyday ${item.identifier}`,
      'at most 50.00 USD is debited from your account every month',
      'at most 1.00 USD in one payment only to https://r.example',
    ]) {
      expect(text).toContain(expected)
    }
  })

  test('lists the payments, with what became of each, and to whom', () => {
    const payment = {
      debitAmount: usd('1200'),
      sentAmount: usd('1100'),
      receiver: 'https://bank.example/incoming-payments/1',
      createdAt: Date.UTC(2026, 11, 4, 9),
    } as OutgoingPaymentView
    const payments = (['created', 'begun', 'completed', 'failed'] as const).map((status) => ({
      ...payment,
      status,
    }))
    const bob = { name: 'Bob', walletAddress: 'https://bank.example/bob' }
    const receivers = new Map([[payment.receiver, bob]])
    const { text } = detailed({}, { payments, receivers, olderUrl: '?app=x&before=y' })
    const at = 'Fri, December 4, 2026, 09:00 UTC'
    for (const expected of [
      `12.00 USD to Bob https://bank.example/bob ${at}, waits to be sent`,
      `12.00 USD to Bob https://bank.example/bob ${at}, is being sent`,
      `11.00 USD to Bob https://bank.example/bob ${at}, sent`,
      `12.00 USD to Bob https://bank.example/bob ${at}, failed after 11.00 USD was sent`,
      'Older payments',
    ]) {
      expect(text).toContain(expected)
    }
    const [first] = payments
    const unnamed = first && { ...first, receiverWalletAddress: 'https://bank.example/bob' }
    expect(detailed({}, { payments: unnamed && [unnamed] }).text).toContain(
      '12.00 USD to https://bank.example/bob',
    )
    expect(detailed({}, { payments: [] }).text).toContain('No payment so far')
    expect(detailed({}).body).not.toContain('<h2>Payments')
  })

  test.each([
    [
      'en',
      '15.00 USD of 25.00 USD sent, 10.00 USD being checked',
      'sent; 10.00 USD of it could not be confirmed',
      'failed after 25.00 USD was sent; 10.00 USD of it could not be confirmed',
    ],
    [
      'de',
      '15,00 USD von 25,00 USD gesendet, 10,00 USD in Prüfung',
      'gesendet; 10,00 USD davon ohne Bestätigung',
      'fehlgeschlagen, nachdem 25,00 USD gesendet war; 10,00 USD davon ohne Bestätigung',
    ],
    [
      'es',
      'enviado 15,00 USD de 25,00 USD, 10,00 USD en verificación',
      'enviado; 10,00 USD de ello sin confirmar',
      'falló tras enviar 25,00 USD; 10,00 USD de ello sin confirmar',
    ],
    ['ar', 'قيد التحقق', 'لم يتأكد وصول', 'فشلت بعد إرسال'],
  ] as const)('says in words that a part is in doubt: %s', (language, ...expected) => {
    const payment = {
      debitAmount: usd('2500'),
      receiver: 'https://bank.example/incoming-payments/1',
      createdAt: Date.UTC(2026, 11, 4, 9),
      inDoubt: { amount: usd('1000'), since: now, reason: 'no reply from peer 1' },
    } as OutgoingPaymentView
    const payments: OutgoingPaymentView[] = [
      { ...payment, status: 'begun', sentAmount: usd('1500') },
      { ...payment, status: 'completed', sentAmount: usd('2500') },
      { ...payment, status: 'failed', sentAmount: usd('2500') },
    ]
    const { text } = detailed({}, { payments, locale: localeFor({ headers: [] }, { language }) })
    for (const words of expected) expect(text).toContain(words)
    expect(text).not.toContain('peer 1')
  })

  const daily = { debitAmount: usd('1000'), payments: 3, interval: periods.everyDay }
  const limited = grantOf({ conditions: { limits: [daily, { payments: 2 }] } })

  test('shows the limits of the owner, what is left of each, and until when', () => {
    const window = { start: now, end: now + 86_400_000 }
    const left = { debitAmount: usd('400'), payments: 2 }
    const ownerLimits: readonly LimitStatus[] = [
      { source: 'owner', isOpen: true, window, left },
      { source: 'owner', isOpen: true, left: { payments: 0 } },
    ]
    const until = 'until Fri, December 11, 2026, 00:00 UTC'
    const { text } = detailed({ grant: limited, ownerLimits })
    for (const expected of [
      'Your limits at most 10.00 USD is debited from your account every day',
      'pays at most 3 times every day',
      `4.00 USD left ${until}`,
      `Payments left ${until}: 2`,
      'pays at most 2 times in all Payments left: 0',
    ]) {
      expect(text).toContain(expected)
    }
    const closed = { source: 'owner', isOpen: false, left: {} } as const
    expect(detailed({ grant: limited, ownerLimits: [closed] }).text).toContain('cannot pay at this')
    expect(detailed({ grant: limited }).text).not.toContain('left')
  })

  test('says what of a limit of the owner is not left because it waits for an answer', () => {
    const window = { start: now, end: now + 86_400_000 }
    const left = { debitAmount: usd('400'), payments: 2 }
    const ownerLimits: readonly LimitStatus[] = [{ source: 'owner', isOpen: true, window, left }]
    const text = (waiting: readonly PaymentToConfirm[]) =>
      detailed({ grant: limited, ownerLimits, waiting }).text
    const euros = { value: '70', assetCode: 'EUR', assetScale: 2 }
    const said = text([
      { ...waitingPayment, debitAmount: usd('200') },
      { ...waitingPayment, debitAmount: usd('100') },
      { ...waitingPayment, debitAmount: euros },
      { ...waitingPayment, createdAt: now - 1 },
    ])
    expect(said).toMatch(/4\.00 USD left until [^.]* UTC 3\.00 USD waits for your answer/)
    expect(said).toContain('0.70 EUR waits for your answer')
    expect(text([{ ...waitingPayment, createdAt: window.end }])).not.toContain('USD waits for')
  })

  test('offers a limit for each period that has none, and no fourth limit', () => {
    const { body, text } = detailed({ grant: limited })
    expect(text).toContain('Your limit, lower than 10.00 USD Your number of payments, less than 3')
    expect(text).toContain('Most that it may spend, in USD')
    expect(body.match(/<option value="[^"]*">[^<]*/g)).toEqual([
      `<option value="${periods.everyWeek}">every week`,
      `<option value="${periods.everyMonth}">every month`,
    ])
    const third = { payments: 9, interval: periods.everyMonth }
    const full = grantOf({ conditions: { limits: [daily, { payments: 1 }, third] } })
    expect(detailed({ grant: full }).body).not.toContain('<option')
    const reads = grantOf({ access: [{ ...item, actions: ['read'] }] })
    expect(detailed({ grant: reads }).body).not.toContain('value="limit"')
  })

  test('does not offer less than one payment', () => {
    const once = grantOf({
      access: [{ ...item, identifier: 'https://x.example', limits: {} }],
      conditions: { limits: [{ payments: 1 }] },
    })
    expect(detailed({ grant: once }).body).not.toContain('own-0-')
  })

  test.each([
    ['', 'own-1-payments', /<details open>(?:(?!<details).)*id="own-1-payments-problem"/s],
    [
      periods.everyWeek,
      'own-new-payments',
      /<details open>(?:(?!<details).)*<option value="[^"]*P1W" selected>/s,
    ],
  ])(
    'shows the error of a limit for %j at its field, with what was typed',
    (interval, field, form) => {
      const given = new URLSearchParams({ do: 'limit', interval, most: '"1', payments: '<2' })
      const outcome = { name: 'countUnreadable', field } as const
      const { body } = detailed({ grant: limited }, { outcome, given })
      expect(body).toContain(`<a href="#${field}">Please write the number of payments`)
      expect(body).toMatch(form)
      expect(body.match(/<details open>/g)).toHaveLength(1)
      expect(body).toMatch(new RegExp(`id="${field}"[^>]* value="&#60;2"\\s+aria-invalid="true"`))
      expect(body).toContain('value="&#34;1"')
    },
  )

  test('offers to remove one of several permissions, and not the only one', () => {
    expect(detailed({}).body).not.toContain('value="remove"')
    const access = [item, { ...item, itemId: '2' }]
    expect(detailed({ grant: grantOf({ access }) }).body.match(/value="remove"/g)).toHaveLength(2)
  })

  test('asks before it removes the access, and names the app and the account', () => {
    const { body, text } = detailed({ display })
    expect(body).not.toContain('<script')
    expect(text).toContain('Remove access Shop then has no access to Everyday any more')
    expect(text).toContain('Remove the access of Shop')
  })

  test('names the app and the accounts whose access was changed', () => {
    const outcome = 'changed'
    expect(detailed({ display }, { outcome }).text).toContain(
      'Your change to the access of Shop to Everyday has been saved.',
    )
    const other = { ...item, identifier: 'https://wallet.example/other' }
    const access = [item, other]
    expect(detailed({ grant: grantOf({ access }) }, { outcome }).text).toContain(
      'of shop.example to Everyday and https://wallet.example/other has been saved.',
    )
    const { identifier: _, ...quotes } = { ...item, type: 'quote', actions: ['read'] } as const
    expect(detailed({ grant: grantOf({ access: [quotes] }) }, { outcome }).text).toContain(
      'of shop.example to your account has been saved.',
    )
  })

  test('shows the error at its field, which is open, with what was typed', () => {
    const given = new URLSearchParams({ most: '"60' })
    const outcome = { name: 'notNarrower', field: 'limit-2' } as const
    const access = [item, { ...item, itemId: '2' }]
    const { body } = detailed({ grant: grantOf({ access }) }, { outcome, given })
    expect(body).toMatch(/<a href="#limit-2">.*<details open>.*id="limit-2-problem"/s)
    expect(body).toMatch(/id="limit-1" name="most"[^>]* value=""/)
    expect(body).toMatch(/id="limit-2" name="most"[^>]* value="&#34;60"\s+aria-invalid="true"/)
  })
})

test('nothing that is granted stays unsaid on the page of an app, and nothing becomes markup', () => {
  const given = fc.record({
    access: fc.array(granted, { minLength: 1, maxLength: 4 }),
    language: fc.constantFrom('en', 'de', 'es', 'ar'),
    name: wire,
    receiver: fc.record({ name: wire, walletAddress: wire }, { requiredKeys: [] }),
    subject: fc.option(wire),
    limits: fc.array(ownerLimit, { maxLength: 3 }),
  })
  fc.assert(
    fc.property(given, ({ access, language, name, receiver, subject, limits }) => {
      const items = access.map((each, index) => ({ ...each, itemId: `${index}` }))
      const options = { ...base, locale: localeFor({ headers: [] }, { language }) }
      const urls = access.flatMap(({ limits }) => limits?.receiver ?? [])
      const receivers = new Map(urls.map((url) => [url, receiver]))
      const grant = grantOf({
        access: items,
        conditions: { limits },
        ...(subject && { subject: { id: subject, format: 'uri' } }),
      })
      const app = { grant, display: { name } }
      const { body, text } = seen(
        connectedAppScreen(app, { ...options, receivers, outcome: 'changed' }),
      )
      const facts = [
        ...factsOf(access, options.locale),
        ...limits.flatMap((limit) => factsOfLimit(limit, options.locale)),
        name,
        ...(subject ? [subject] : []),
      ]
      for (const fact of facts) {
        expect(text).toContain(visible(fact).replaceAll(/[\s\u00a0\u202f]+/g, ' '))
      }
      const list = seen(connectedAppsScreen([app], { ...options, removed: app })).body
      for (const each of [body, list]) {
        expect(each.replace(/<title>.*?<\/title>/s, '')).not.toMatch(/<img|<\/b>x|[\u202a-\u202e]/)
      }
      const lowerable = items.filter((each) => limitOf(each) !== undefined).length
      const addable = items.some(isPaying) && limits.length < 3 ? 1 : 0
      const asset = debitedAsset(grant, options.accounts)
      const own = limits.filter(
        ({ debitAmount, payments }) => asset || debitAmount || payments !== 1,
      )
      const forms = 1 + lowerable + own.length + addable
      expect(body.match(/<\/details>/g) ?? []).toHaveLength(forms)
    }),
    { numRuns: runs(60) },
  )
})
