import fc from 'fast-check'
import type { GrantView } from 'open-payments-server'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { type EndedAppsOptions, endedAppsScreen } from '../src/ended-apps.js'
import { page } from '../src/layout.js'
import { localeFor, visible } from '../src/locale.js'
import { factsOf, item as granted, wire } from './granted.js'
import { textOf } from './text.js'

const alice = 'https://wallet.example/alice'
const grant: GrantView = {
  grantId: 'grant',
  client: 'https://shop.example/app',
  clientKey: { kid: 'shop-1', thumbprint: 'thumbprint' },
  clientName: 'Shop',
  status: 'revoked',
  access: [
    {
      type: 'outgoing-payment',
      actions: ['create', 'read'],
      identifier: alice,
      limits: { debitAmount: { value: '5000', assetCode: 'USD', assetScale: 2 } },
    },
  ],
  createdAt: 0,
  approvedAt: Date.UTC(2026, 10, 3),
  endedAt: Date.UTC(2026, 11, 4),
  endedBy: 'host',
}
const locale = localeFor({ headers: [] })
const accounts = [{ url: alice, publicName: 'Everyday', assetCode: 'USD', assetScale: 2 }]

function shown(grants: readonly GrantView[], options: Partial<EndedAppsOptions> = {}) {
  const screen = endedAppsScreen(grants, { locale, now: 0, accounts, ...options })
  const { body = '' } = page(screen, { locale })
  return { body, text: textOf(body) }
}

describe('the page of ended apps', () => {
  test('says which app had which access, from when until when', () => {
    const { body, text } = shown([grant])
    for (const expected of [
      'Shop https://shop.example/app Account: Everyday',
      'Approved on November 3, 2026 Ended on December 4, 2026 by you or this wallet',
      'What it was allowed to do pay money from your account',
      'at most 50.00 USD is debited from your account in all',
    ]) {
      expect(text).toContain(expected)
    }
    expect(body).not.toContain('<form')
  })

  test.each([
    ['the app', { status: 'cancelled', endedBy: 'client' }, 'by the app'],
    ['the owner', { status: 'revoked', endedBy: 'host' }, 'by you or this wallet'],
    ['time', { status: 'expired', endedBy: undefined }, 'because its time was over'],
  ] as const)('says that %s has ended the access', (_, { status, endedBy }, expected) => {
    const { endedBy: _endedBy, ...rest } = grant
    const { text } = shown([{ ...rest, status, ...(endedBy && { endedBy }) }])
    expect(text).toMatch(new RegExp(`Ended on December 4, 2026,? ${expected}`))
  })

  test('names an app without a name by its host', () => {
    const { clientName: _clientName, ...unnamed } = grant
    expect(shown([unnamed]).body).toMatch(/<h2 [^>]*><bdi>shop\.example<\/bdi>/)
  })

  test('leads to older ones, and says if there is none', () => {
    expect(shown([grant], { olderUrl: '?ended=&before=x' }).body).toContain(
      '<a href="?ended=&#38;before=x">Older apps</a>',
    )
    expect(shown([]).text).toContain('No app has lost its access so far.')
  })

  test('leaves nothing unsaid that was granted, in each language, and nothing becomes markup', () => {
    const given = fc.record({
      access: fc.array(granted, { minLength: 1, maxLength: 4 }),
      language: fc.constantFrom('en', 'de', 'es', 'ar'),
      clientName: wire,
      subject: wire,
    })
    fc.assert(
      fc.property(given, ({ access, language, clientName, subject }) => {
        const spoken = localeFor({ headers: [] }, { language })
        const subjectId = { id: subject, format: 'uri' } as const
        const ended = { ...grant, access, clientName, subject: subjectId }
        const { body, text } = shown([ended], { locale: spoken })
        for (const fact of [...factsOf(access, spoken), clientName, subject]) {
          expect(text).toContain(visible(fact).replaceAll(/[\s\u00a0\u202f]+/g, ' '))
        }
        expect(body.replace(/<title>.*?<\/title>/s, '')).not.toMatch(/<img|<\/b>x|[\u202a-\u202e]/)
      }),
      { numRuns: runs(40) },
    )
  })
})
