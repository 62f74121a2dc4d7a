import { describe, expect, test } from 'vitest'
import type { GrantView, ItemBudget, OutgoingPaymentView } from '../../../src/index.js'
import {
  type ConnectedApp,
  type ConnectedAppsOptions,
  connectedAppsScreen,
} from '../src/connected-apps.js'
import { html } from '../src/html.js'
import { page } from '../src/layout.js'
import { localeFor } from '../src/locale.js'
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

function shown(app: Partial<ConnectedApp>, options: Partial<ConnectedAppsOptions> = {}) {
  const locale = localeFor({ headers: [] })
  const base = { locale, now, token: html`` }
  const screen = connectedAppsScreen([{ grant: grantOf(), ...app }], { ...base, ...options })
  const { body = '' } = page(screen, { locale })
  return { body, text: textOf(body) }
}

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
      'Approved on November 3, 2026',
      'It may also: see the payments it made.',
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
      'has conditions',
      {
        grant: grantOf({
          conditions: { paymentMax: usd('100'), receivers: ['https://r.example'] },
        }),
      },
      'at most 1.00 USD in one payment only to https://r.example',
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

  test('offers to remove one of several permissions, and not the only one', () => {
    expect(shown({}).body).not.toContain('value="remove"')
    const access = [item, { ...item, itemId: '2' }]
    expect(shown({ grant: grantOf({ access }) }).body.match(/value="remove"/g)).toHaveLength(2)
  })

  test('asks before it removes the access, without a script', () => {
    const { body, text } = shown({ display: { name: 'Shop' } })
    expect(body).not.toContain('<script')
    expect(text).toContain('Remove access The app then has no access any more')
    expect(text).toContain('Remove the access of Shop')
  })

  test('says that there is no app, and leads to older ones', () => {
    const locale = localeFor({ headers: [] })
    const screen = connectedAppsScreen([], { locale, now, token: html`` })
    expect(textOf(screen.content)).toContain('No app has access to your account.')
    expect(shown({}, { olderUrl: '?before=x' }).body).toContain(
      '<a href="?before=x">Older apps</a>',
    )
  })

  test('escapes what an app chose', () => {
    const name = '<img src=x>"'
    const access = [{ ...item, identifier: name, label: name, limits: { receiver: name } }]
    const { body } = shown({ display: { name }, grant: grantOf({ client: name, access }) })
    expect(body).not.toContain('<img')
    expect(body.match(/img src=x/g)?.length).toBeGreaterThan(5)
  })
})
