import { describe, expect, test } from 'vitest'
import type { Account, Accounts } from '../../examples/wallet/accounts.js'
import { consentPage } from '../../examples/wallet/consent-page.js'
import { cookieSession } from '../../examples/wallet/session.js'
import type { Limits } from '../../src/index.js'
import { createSpendingWorld, eur, usd } from '../support/spending.js'
import { alice, bob, carol, interactionId, withFinish } from '../support/world.js'

const accountOf = (owner: string, url: string, assetCode: string): Account => {
  return { owner, url, assetCode, assetScale: 2 }
}

/** Alice has an account in dollars, and one in euros. */
const all = [
  accountOf('alice', alice, 'USD'),
  accountOf('bob', bob, 'USD'),
  accountOf('alice', carol, 'EUR'),
]

/** The page of a client that names no account. */
async function asked(limits: Limits = {}, language = 'en') {
  const { auth, client } = createSpendingWorld()
  const item = { type: 'outgoing-payment', actions: ['create'], limits } as const
  const { body } = await client().request([item], withFinish)
  const id = interactionId(body.interact.redirect)
  const ownedBy: Accounts['ownedBy'] = (owner) => all.filter((each) => each.owner === owner)
  const session = cookieSession(new Uint8Array(32))
  const handle = consentPage(auth.interactions, { all, ownedBy }, session)
  const request = (method: string, fields: Record<string, string> = {}) =>
    handle({
      method,
      url: `/consent/${id}`,
      headers: [
        ['Cookie', session.cookieFor('alice').split(';')[0] ?? ''],
        ['Accept-Language', language],
      ],
      body: new TextEncoder().encode(`${new URLSearchParams(fields)}`),
    })
  return {
    shown: async () => (await request('GET')).body ?? '',
    approve: async (fields: object) =>
      (await request('POST', { decision: 'approve', ...fields })).status,
    granted: async () => (await auth.grants.get(id.split('.')[0] ?? ''))?.access,
  }
}

const optionsOf = (body: string) =>
  [...body.matchAll(/<option value="([^"]+)"/g)].map(([, url]) => url)

describe('the consent page for an app that names no account', () => {
  test.each<[string, Limits, readonly string[]]>([
    ['the limit is in euros', { debitAmount: eur(2500) }, [carol]],
    ['the limit is in dollars', { debitAmount: usd(2500) }, [alice]],
    ['the receiver gets euros', { receiveAmount: eur(2500) }, [alice, carol]],
    ['there is no limit', {}, [alice, carol]],
    ['no account fits', { debitAmount: { ...eur(1), assetCode: 'JPY' } }, []],
  ])(
    'offers the accounts of the owner that fit, and explains the others: %s',
    async (_, limits, fits) => {
      const page = await asked(limits)
      const body = await page.shown()
      expect(optionsOf(body)).toEqual(fits)
      for (const { owner, url } of all) {
        const isExplained = body.includes(`Not ${url}: the limit is in`)
        expect(isExplained).toBe(owner === 'alice' && !fits.includes(url))
      }
      expect(body.includes('value="approve"')).toBe(fits.length > 0)
      expect(body).toContain('value="deny"')

      for (const { url } of all.filter(({ url }) => !fits.includes(url))) {
        expect(await page.approve({ account: url })).toBe(url === bob ? 403 : 409)
      }
      expect(await page.approve({})).toBe(409)
      expect(await page.granted()).not.toMatchObject([{ identifier: expect.anything() }])
      const [account] = fits
      if (account === undefined) return
      expect(await page.approve({ account })).toBe(303)
      expect(await page.granted()).toMatchObject([{ identifier: account, limits }])
    },
  )

  test.each(['en', 'de', 'es', 'ar'])('asks and explains in %s', async (language) => {
    const body = await (await asked({ debitAmount: eur(2500) }, language)).shown()
    expect(body).toMatch(/<label for="account">[^<]{5,}<\/label>/)
    expect(body).toMatch(new RegExp(`<p>[^<]*${alice}[^<]*EUR[^<]*USD[^<]*</p>`))
  })
})
