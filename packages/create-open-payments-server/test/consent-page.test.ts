import type { Amount, Interactions, InteractionView } from 'open-payments-server'
import { expect, test } from 'vitest'
import { consentPage } from '../templates/wallet/src/consent-page.js'
import type { Account, Ledger } from '../templates/wallet/src/ledger.js'
import type { Login } from '../templates/wallet/src/login.js'

const accountOf = (name: string, assetCode: string): Account => {
  return {
    url: `https://wallet.example/${name}`,
    owner: 'alice',
    assetCode,
    assetScale: 2,
    balance: 0n,
  }
}
const accounts = [accountOf('dollars', 'USD'), accountOf('euros', 'EUR')]

/** The page of an app that names no account, and what it passes on. */
function pageFor(assetCode: string, refusal?: string) {
  const debitAmount: Amount = { value: '500', assetCode, assetScale: 2 }
  const item = { type: 'outgoing-payment', actions: ['create'], limits: { debitAmount } } as const
  const view: Partial<InteractionView> = {
    status: 'pending',
    client: 'https://shop.example',
    tokens: [{ access: [item] }],
    needAccount: [item],
    totals: [],
  }
  const approvals: unknown[] = []
  const interactions = {
    get: async () => view,
    async approve(_: string, approval: unknown) {
      approvals.push(approval)
      return refusal === undefined
        ? { ok: true, changed: true }
        : { ok: false, refusal, reason: '' }
    },
  } as Partial<Interactions> as Interactions
  const ledger: Partial<Ledger> = { ownedBy: async () => accounts }
  const login = { ownerOf: () => 'alice', isOwnForm: () => true, formField: () => '' }
  const handle = consentPage(interactions, ledger as Ledger, login as Partial<Login> as Login)
  const request = (method: string, form = '') =>
    handle({ method, url: '/consent/id', headers: [], body: new TextEncoder().encode(form) })
  return { request, approvals }
}

test.each([
  ['USD', ['https://wallet.example/dollars'], ['https://wallet.example/euros (EUR)']],
  ['JPY', [], ['https://wallet.example/dollars (USD)', 'https://wallet.example/euros (EUR)']],
])(
  'the created wallet lets the owner choose an account for a limit in %s',
  async (asset, fits, others) => {
    const { body = '' } = await pageFor(asset).request('GET')
    expect([...body.matchAll(/<option value="([^"]+)"/g)].map(([, url]) => url)).toEqual(fits)
    for (const other of others)
      expect(body).toContain(`Not ${other}: the limit is in another currency`)
    expect(body.includes('value="approve"')).toBe(fits.length > 0)
  },
)

test('the created wallet approves for the chosen account, and shows why it cannot', async () => {
  const account = accounts[0]?.url ?? ''
  const form = `${new URLSearchParams({ decision: 'approve', account })}`
  const page = pageFor('USD')
  expect((await page.request('POST', form)).status).toBe(200)
  const approval = { resourceOwner: 'alice', walletAddresses: accounts }
  expect(page.approvals).toEqual([{ ...approval, account }])

  const refused = pageFor('USD', 'asset_mismatch')
  const { status, body } = await refused.request('POST', 'decision=approve')
  expect(refused.approvals).toEqual([approval])
  expect([status, body]).toEqual([409, expect.stringContaining('choose one of its accounts')])
})
