import { accountLimitsOn } from 'create-open-payments-server/wallet/account-limits'
import { openAccount } from 'create-open-payments-server/wallet/ledger'
import { createLogin } from 'create-open-payments-server/wallet/login'
import type { Database } from 'create-open-payments-server/wallet/sql'
import { migrate } from 'create-open-payments-server/wallet/tables'
import { createWallet } from 'create-open-payments-server/wallet/wallet'
import fc from 'fast-check'
import { formTokens } from 'open-payments-pages'
import type { SpendingLimit } from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import { emptyPglite } from 'open-payments-test-support/databases'
import { databaseOn } from 'open-payments-test-support/examples/created-wallet'
import { usd } from 'open-payments-test-support/spending'
import { afterAll, beforeAll, expect, test } from 'vitest'

const url = 'https://wallet.example/alice'

let database: Database
beforeAll(async () => {
  database = databaseOn(await emptyPglite())
  await migrate(database)
  await openAccount(database, { url, ...usd(0), owner: 'alice', balance: 100n })
})
afterAll(() => database?.close())

const every = (unit: string) => `R/2024-01-01T00:00:00Z/P1${unit}`

const value = fc.bigInt({ min: 1n, max: amountValueMax })
const limit: fc.Arbitrary<SpendingLimit> = fc.record(
  {
    debitAmount: value.map((each) => ({ ...usd(0), value: `${each}` })),
    payments: fc.integer({ min: 1, max: 1_000_000_000 }),
    interval: fc.oneof(fc.string(), fc.constant(`'; DROP TABLE account_limits; --`)),
  },
  { requiredKeys: [] },
)
const limits = fc.array(limit, { maxLength: 3 })

test('An account has no limits until its owner sets some', async () => {
  expect(await accountLimitsOn(database).of('https://wallet.example/nobody')).toEqual([])
})

test('Limits replace exactly those that they were read from, whatever their texts and amounts', async () => {
  const settings = accountLimitsOn(database)
  await fc.assert(
    fc.asyncProperty(limits, limits, async (next, other) => {
      const before = await settings.of(url)
      const isStale = JSON.stringify(other) !== JSON.stringify(before)
      expect(await settings.set(url, next, other)).toBe(!isStale)
      expect(await settings.of(url)).toEqual(isStale ? before : next)
      expect(await settings.set(url, next, await settings.of(url))).toBe(true)
      expect(await settings.of(url)).toEqual(next)
      expect(await settings.of(`${url}2`)).toEqual([])
    }),
    { numRuns: 50 },
  )
})

test('Of two that replace the same limits at the same time, one is told to read them again', async () => {
  const settings = accountLimitsOn(database)
  const before = await settings.of(url)
  const both = [1, 2].map((payments) => settings.set(url, [{ payments }], before))
  const done = await Promise.all(both)
  expect(done.toSorted()).toEqual([false, true])
  expect(await settings.of(url)).toEqual([{ payments: done[0] ? 1 : 2 }])
})

const secret = new Uint8Array(32)
const settings = {
  baseUrl: 'https://wallet.example',
  demoPassword: '',
  sessionSecret: secret,
  paymentDetailsSecret: secret,
}
const euros = { value: '1', assetCode: 'EUR', assetScale: 2 }

test.each<[string, readonly SpendingLimit[]]>([
  ['another asset', [{ debitAmount: euros }]],
  ['another scale', [{ debitAmount: { ...usd(1), assetScale: 3 } }]],
  ['a negative amount', [{ debitAmount: usd('-1') }]],
  ['an amount above the maximum', [{ debitAmount: usd(amountValueMax + 1n) }]],
  ['no payment', [{ payments: 0 }]],
  ['an interval that repeats nothing', [{ payments: 1, interval: 'x' }]],
  ['four limits', ['D', 'W', 'M', 'Y'].map((unit) => ({ payments: 1, interval: every(unit) }))],
])('A limit in the table that is none permits no payment: %s', async (_, bad) => {
  const { outgoingPayments } = createWallet(settings, database).resources
  const kept = accountLimitsOn(database)
  expect(await kept.set(url, [{ debitAmount: usd(1) }], await kept.of(url))).toBe(true)
  expect(await outgoingPayments.limitsOf({ walletAddress: url })).toMatchObject([{ isOpen: true }])
  expect(await kept.set(url, bad, await kept.of(url))).toBe(true)
  // The payment is counted by the same limits.
  await expect(outgoingPayments.limitsOf({ walletAddress: url })).rejects.toThrow('accountLimits')
})

const huge = '9'.repeat(30)
const three: readonly SpendingLimit[] = [
  { debitAmount: usd(2400), payments: 5 },
  { payments: 9, interval: every('D') },
  { payments: 20, interval: every('W') },
]
type Form = Readonly<Record<string, string>>

test.each<[field: string | undefined, form: Form]>([
  ['0-most', { most: '0' }],
  ['0-most', { most: '-1' }],
  ['0-most', { most: huge }],
  ['0-most', { most: '1 EUR', assetCode: 'EUR' }],
  ['0-most', { most: "1'; DROP TABLE accounts; --" }],
  ['0-payments', { payments: '0' }],
  ['0-payments', { payments: '-1' }],
  ['0-payments', { payments: '1.5' }],
  ['0-payments', { payments: huge }],
  [undefined, { interval: every('M'), payments: '1' }],
])('The page says at the field %j what is wrong, and saves nothing: %j', async (field, form) => {
  const { status, body } = await sent(form)
  expect(status).toBe(400)
  expect(body).toContain('Nothing was changed')
  const wrong = [...body.matchAll(/id="account-0-(\S+)"[^>]*aria-invalid="true"/g)]
  expect(wrong.map(([, id]) => id)).toEqual(field === undefined ? [] : [field])
})

test.each<Form>([{ most: '24.01' }, { payments: '6' }, { interval: every('D'), payments: '10' }])(
  'The page asks for a new sign-in before it raises a limit: %j',
  async (form) => {
    const { status, body } = await sent(form)
    expect(status).toBe(403)
    expect(body).toContain('sign in again')
  },
)

/** Sends the form of the page of limits, and returns where it leads. It saves nothing. */
async function sent(form: Form) {
  const login = { ...createLogin(settings), ownerOf: () => ({ id: 'alice' }) }
  const { pages } = createWallet(settings, database, { login })
  const kept = accountLimitsOn(database)
  expect(await kept.set(url, three, await kept.of(url))).toBe(true)
  const token = await formTokens(secret).value('account-limits', 'alice')
  const fields = { token, account: url, do: 'limit', interval: '', ...form }
  const headers = [['Host', new URL(url).host]] as const
  const posted = new TextEncoder().encode(`${new URLSearchParams(fields)}`)
  const sent = { method: 'POST', url: '/apps?limits', headers, body: posted }
  const { headers: answer } = await pages.connectedApps(sent)
  const shown = {
    method: 'GET',
    url: `/apps${answer['location']}`,
    headers,
    body: new Uint8Array(),
  }
  const { status, body = '' } = await pages.connectedApps(shown)
  expect(await kept.of(url)).toEqual(three)
  return { status, body }
}
