import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  type Address,
  type Client,
  createClient,
  type GrantRequest,
  type IssuedGrant,
  type PendingGrant,
  verifyFinish,
} from 'open-payments-client'
import {
  type CreatedWallet,
  plainWallet,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { decide } from 'open-payments-test-support/examples/demo'
import { testKey } from 'open-payments-test-support/keys'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

// The rows of docs/clients.md: what this library answers to a mistake, and what the caller of the client is told.
const page = readFileSync('docs/clients.md', 'utf8')
const [, after = ''] = page.split('## What `open-payments-client` tells of other wallets')
const [section = ''] = after.split('\n## ')
const rows = new Map(
  [...section.matchAll(/^\| ([^|]+) \| ([^|]+) \| [^|]+ \| ([^|]+) \|$/gm)]
    .slice(1)
    .map(([, what = '', answer = '', refusal = '']) => [what, { answer, refusal }]),
)

const [app, other] = [testKey('app'), testKey('other')]
let running: CreatedWallet
let client: Client
let stranger: Client
let bob: Address
beforeAll(async () => {
  running = await startCreatedWallet({ create: plainWallet })
  await running.publish(at('/bob'), { kid: app.kid, x: app.x })
  client = clientOf(app, '/bob')
  await running.publish(at('/carol'), { kid: other.kid, x: other.x })
  stranger = clientOf(other, '/carol')
  bob = done(await client.addressOf(at('/bob'))).address
})
afterAll(() => running.stop())

const at = (path: string) => `${running.baseUrl}${path}`
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const inAnHour = () => Date.now() + 3_600_000
const finishUri = 'http://localhost:1/finish'

function clientOf({ kid, privateKey }: ReturnType<typeof testKey>, path: string) {
  const named = { walletAddress: at(path), keyId: kid, privateKey }
  return createClient({ ...named, allowLoopback: true, limitMs: 600_000 })
}

/** Returns the result of a call that succeeds. */
function done<Result extends { readonly ok: boolean }>(result: Result) {
  if (!result.ok) expect.fail(JSON.stringify(result))
  return result as Extract<Result, { readonly ok: true }>
}

const received = async (more: object = {}) =>
  done(await client.createReceiver({ walletAddress: bob, expiresAt: inAnHour(), ...more })).url

function access(more: object = {}, actions = ['create', 'read']): GrantRequest['access'] {
  return [
    { type: 'outgoing-payment', actions: actions as never, identifier: at('/alice'), ...more },
  ]
}

async function pendingGrant(items = access()): Promise<PendingGrant> {
  const asked = { walletAddress: at('/alice'), access: items, interact: { finishUri } }
  const state = done(await client.requestGrant(asked))
  if (state.status !== 'pending') return expect.fail('it needs no consent')
  return state.pending
}

async function decided(pending: PendingGrant, decision: 'approve' | 'deny') {
  const { location } = await decide(pending.redirect ?? '', decision)
  return verifyFinish(pending, new URL(`${location}`).searchParams)
}

async function granted(items = access()): Promise<IssuedGrant> {
  const pending = await pendingGrant(items)
  const { interactRef } = done(await decided(pending, 'approve'))
  const state = done(await client.continueGrant(pending, { interactRef }))
  return state.status === 'issued' ? state.grant : expect.fail('it is pending')
}

const quoted = async (value = '100') =>
  done(
    await client.createQuote({
      ...{ walletAddress: at('/alice'), receiver: await received() },
      debitAmount: usd(value),
    }),
  ).quote.id

const quoting = (more: object) =>
  client.createQuote({ walletAddress: at('/alice'), ...more } as never)
const paying = (grant: IssuedGrant, quote: string, by = client) =>
  by.createPayment({ walletAddress: at('/alice'), grant, quote })

type Results = readonly { readonly ok: boolean }[]

/** How each mistake is made. */
const mistakes: Readonly<Record<string, () => Promise<Results>>> = {
  'no account at the wallet address': async () => [await client.addressOf(at('/nobody'))],
  'a receiver, quote or payment that does not exist': async () => {
    const grant = await granted()
    return [
      await client.publicReceiverOf(at(`/incoming-payments/${randomUUID()}`)),
      await client.getQuote(at('/alice'), at(`/quotes/${randomUUID()}`)),
      await client.getPayment(grant, at(`/outgoing-payments/${randomUUID()}`)),
    ]
  },
  'a receiver whose id is no UUID': async () => [
    await client.publicReceiverOf(at('/incoming-payments/seven')),
  ],
  'a receiver that is completed, or paid in full': async () => {
    const url = await received()
    done(await client.completeReceiver(url))
    return [await client.receiverOf(url)]
  },
  'completing a receiver again': async () => {
    const url = await received()
    done(await client.completeReceiver(url))
    return [await client.completeReceiver(url)]
  },
  'creating a receiver with another asset, 0, or an expiry that is past or too far': async () => {
    const create = (more: object) =>
      client.createReceiver({ walletAddress: bob, expiresAt: inAnHour(), ...more })
    return [
      await create({ incomingAmount: { ...usd('1'), assetCode: 'EUR' } }),
      await create({ incomingAmount: usd('0') }),
      await create({ expiresAt: 1 }),
      await create({ expiresAt: Date.now() + 10 * 365 * 24 * 3_600_000 }),
    ]
  },
  'creating a receiver or quote for no account': async () => {
    const walletAddress = { ...bob, id: at('/nobody') }
    const receiver = await received()
    return [
      await client.createReceiver({ walletAddress, expiresAt: inAnHour() }),
      await client.createQuote({ walletAddress, receiver, debitAmount: usd('1') }),
    ]
  },
  'a key that is not published, or another one; no account at the client’s address': async () => {
    const unknown = testKey('unknown')
    const ask = (by: Client) => by.createReceiver({ walletAddress: bob, expiresAt: inAnHour() })
    return [
      await ask(clientOf(unknown, '/bob')),
      await ask(clientOf({ ...unknown, kid: app.kid }, '/bob')),
      await ask(clientOf(app, '/nobody')),
    ]
  },
  'a grant request without `interact`, with both limits, or with an unknown action': async () => {
    const ask = (items: object, interact?: 'poll') =>
      client.requestGrant({
        ...{ walletAddress: at('/alice'), access: items as never },
        ...(interact !== undefined && { interact }),
      })
    const both = { debitAmount: usd('1'), receiveAmount: usd('1') }
    return [
      await ask(access()),
      await ask(access({ limits: both }), 'poll'),
      await ask(access({}, ['spend']), 'poll'),
    ]
  },
  'the owner denies': async () => [await decided(await pendingGrant(), 'deny')],
  'continuing a grant with a `finishUri` without its `interactRef`': async () => [
    await client.continueGrant(await pendingGrant()),
  ],
  'continuing with a wrong `interactRef`': async () => {
    const pending = await pendingGrant()
    done(await decided(pending, 'approve'))
    return [await client.continueGrant(pending, { interactRef: 'another' })]
  },
  'continuing again with the same `interactRef`': async () => {
    const pending = await pendingGrant()
    const { interactRef } = done(await decided(pending, 'approve'))
    done(await client.continueGrant(pending, { interactRef }))
    return [await client.continueGrant(pending, { interactRef })]
  },
  'cancelling a grant again; revoking the token of a cancelled grant': async () => {
    const grant = await granted()
    done(await client.cancelGrant(grant))
    return [await client.cancelGrant(grant), await client.revokeToken(grant)]
  },
  'rotating the token of a cancelled grant': async () => {
    const grant = await granted()
    done(await client.cancelGrant(grant))
    return [await client.rotateToken(grant)]
  },
  'rotating a revoked token': async () => {
    const grant = await granted()
    done(await client.revokeToken(grant))
    return [await client.rotateToken(grant)]
  },
  'a quote with no amount for an open receiver, both amounts, another asset, 0, or more than the receiver wants':
    async () => {
      const [open, asking] = [await received(), await received({ incomingAmount: usd('10') })]
      return [
        await quoting({ receiver: open }),
        await quoting({ receiver: open, debitAmount: usd('1'), receiveAmount: usd('1') }),
        await quoting({ receiver: open, debitAmount: { ...usd('1'), assetCode: 'EUR' } }),
        await quoting({ receiver: open, debitAmount: usd('0') }),
        await quoting({ receiver: asking, receiveAmount: usd('11') }),
      ]
    },
  'a quote for a receiver that does not exist, is completed or expired, or cannot be read':
    async () => {
      const completed = await received()
      done(await client.completeReceiver(completed))
      const missing = at(`/incoming-payments/${randomUUID()}`)
      return [
        await quoting({ receiver: missing, debitAmount: usd('1') }),
        await quoting({ receiver: completed, debitAmount: usd('1') }),
      ]
    },
  'a quote of another client': async () => [await stranger.getQuote(at('/alice'), await quoted())],
  'more than is left of the grant’s limit, or another receiver than its limit': async () => {
    const [small, elsewhere] = [
      await granted(access({ limits: { debitAmount: usd('1') } })),
      await granted(access({ limits: { receiver: await received() } })),
    ]
    return [await paying(small, await quoted()), await paying(elsewhere, await quoted())]
  },
  'a grant without the action': async () => [
    await paying(await granted(access({}, ['read'])), await quoted()),
  ],
  'a payment with a token that was revoked, has expired, or whose grant was cancelled':
    async () => {
      const [revoked, cancelled] = [await granted(), await granted()]
      done(await client.revokeToken(revoked))
      done(await client.cancelGrant(cancelled))
      return [await paying(revoked, await quoted()), await paying(cancelled, await quoted())]
    },
  'the token of another client': async () => [
    await paying(await granted(), await quoted(), stranger),
  ],
  'paying a quote again': async () => {
    const [grant, quote] = [await granted(), await quoted()]
    const { payment } = done(await paying(grant, quote))
    const again = done(await paying(grant, quote))
    expect(again.payment.id).toBe(payment.id)
    return [again]
  },
  'paying directly with a key that names another payment': async () => {
    const grant = await granted()
    const receiver = await received()
    const pay = (value: string) =>
      client.createPayment({
        ...{ walletAddress: at('/alice'), grant, receiver, debitAmount: usd(value) },
        idempotencyKey: 'one',
      })
    done(await pay('1'))
    return [await pay('2')]
  },
}

/** The rows that need time to pass, or another payer: their codes are tested in packages/client. */
const later = [
  'a receiver that has expired with nothing received',
  'completing an expired receiver',
  'paying an ended quote',
  'paying a quote whose receiver was paid meanwhile',
]

test('Each row of the table is a mistake that is made here, or one that needs time or another payer', () => {
  const named = [...Object.keys(mistakes), ...later]
  expect([...rows.keys()].map((row) => row.replaceAll("'", '’')).toSorted()).toEqual(
    named.toSorted(),
  )
})

describe('the table says what this library answers, and what the client tells, for', () => {
  test.each(Object.keys(mistakes))('%s', async (name) => {
    const row = rows.get(name) ?? rows.get(name.replaceAll('’', "'"))
    const [refusal = ''] = (row?.refusal ?? '').split('; ')
    const [expected = ''] = refusal.match(/`(\w+)`|none/) ?? []
    for (const result of (await mistakes[name]?.()) ?? []) {
      const found = result as { ok: boolean; refusal?: string; answer?: Answer }
      expect(found.ok ? 'none' : `\`${found.refusal}\``, JSON.stringify(found)).toBe(expected)
      const { status, code } = found.answer ?? {}
      if (status !== undefined) expect(row?.answer).toContain(`${status}`)
      if (code !== undefined) expect(row?.answer).toContain(`\`${code}\``)
    }
  })
})

interface Answer {
  readonly status: number
  readonly code?: string
}
