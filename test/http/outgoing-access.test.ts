import { afterAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { type AccessItem, type Limits, memoryStore, type Pricing } from '../../src/index.js'
import { anyPostgres } from '../support/databases.js'
import { createSpendingWorld, eur, pay, shopReceiver, usd } from '../support/spending.js'
import {
  alice,
  bob,
  carol,
  interactionId,
  type TestClient,
  type WorldOptions,
  withFinish,
} from '../support/world.js'

/** A payment debits what it delivers, in the asset of the account. */
const pricing: Pricing = {
  async price({ debitAmount, receiveAmount, account }) {
    const { assetCode, assetScale } = account
    const amount = debitAmount ?? { ...usd(receiveAmount?.value ?? '0'), assetCode, assetScale }
    return { ok: true, debitAmount: amount, receiveAmount: receiveAmount ?? amount }
  },
}

/** Alice has an account in dollars and one in euros. */
const owner = {
  resourceOwner: 'alice',
  walletAddresses: [
    { url: alice, assetCode: 'USD', assetScale: 2 },
    { url: carol, assetCode: 'EUR', assetScale: 2 },
  ],
}

const open = (limits?: Limits): AccessItem => ({
  type: 'outgoing-payment',
  actions: ['create', 'read'],
  ...(limits && { limits }),
})

function setUp(options: WorldOptions = {}) {
  const world = createSpendingWorld({ ...options, resources: { pricing } })
  const client = world.client()
  const { interactions, grants } = world.auth

  /** Requests access, and returns the calls of its consent page. */
  async function asked(access: readonly AccessItem[], by: TestClient = client) {
    const { status, body } = await by.request(access, withFinish)
    expect(status).toBe(200)
    const id = interactionId(body.interact.redirect)
    const grantId = id.split('.')[0] ?? ''
    return {
      view: () => interactions.get(id),
      record: () => grants.getRecord(grantId),
      approve: (more: object = {}) => interactions.approve(id, { ...owner, ...more }),
      async token(redirect = '') {
        world.clock.advance(5_000)
        const ref = new URL(redirect).searchParams.get('interact_ref') ?? ''
        return (await client.continue(body.continue, ref)).body.access_token
      },
    }
  }
  return { world, client, asked }
}

const closing: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

async function onPostgres() {
  const { client, options, close } = await anyPostgres()
  closing.push(close)
  return postgresStore(client, options)
}

test.each([
  ['in memory', async () => memoryStore()],
  ['on PostgreSQL', onPostgres],
])(
  'a client that names no account may pay from the one that the owner chooses: %s',
  async (_, newStore) => {
    const { client, asked } = setUp({ store: await newStore() })
    const item = open({ debitAmount: eur(2500) })
    const consent = await asked([item])
    expect(await consent.view()).toMatchObject({ needAccount: [item], access: [item] })

    const before = await consent.record()
    for (const [choice, refusal, reason] of [
      [{}, 'identifier_required', 'needs a wallet address'],
      [{ account: bob }, 'not_the_owner', `${bob} is not`],
      [{ account: '' }, 'not_the_owner', 'is not a wallet address'],
      [{ account: alice }, 'asset_mismatch', 'EUR with scale 2, but'],
      [{ access: [{ ...item, identifier: alice }] }, 'asset_mismatch', 'USD with scale 2'],
    ] as const) {
      const reasons = expect.stringContaining(reason)
      expect(await consent.approve(choice)).toEqual({ ok: false, refusal, reason: reasons })
    }
    expect(await consent.record()).toEqual(before)

    const approved = await consent.approve({ account: `${carol}/` })
    const again = await consent.approve({ account: carol })
    expect(again).toMatchObject({ ok: true })
    for (const other of [{ account: alice }, { walletAddresses: [alice] }, {}]) {
      expect(await consent.approve(other)).toMatchObject({ refusal: 'decided_otherwise' })
    }
    expect(await consent.view()).toMatchObject({ needAccount: [], totals: [{ identifier: carol }] })

    // One approval, one reference: the client may come back by either redirect, and gets one token.
    const [first = '', second = ''] = [approved, again].map(
      (each) => (each.ok && each.redirect) || '',
    )
    const granted = await consent.token(first)
    expect((await consent.token(second)).value).toBe(granted.value)
    expect(granted.access).toEqual([{ ...item, identifier: carol }])
    const paying = (walletAddress: string, debitAmount: object) =>
      pay(client, granted.value, 0, { walletAddress, debitAmount })
    expect((await paying(alice, usd(1))).status).toBe(403)
    expect((await paying(carol, eur(2000))).status).toBe(201)
    expect((await paying(carol, eur(501))).status).toBe(403)
    expect((await paying(carol, eur(500))).status).toBe(201)
  },
)

describe('access to outgoing payments without an identifier', () => {
  test.each<[string, 'shop' | 'key', object | undefined, string]>([
    ['without interact', 'shop', undefined, 'interaction_required'],
    ['of a client with only a key', 'key', withFinish, 'interaction_by_key'],
  ])('is never granted without consent, even by policy: %s', async (_, name, interact, refusal) => {
    const policy = { requiresConsent: () => false }
    const { world } = setUp({ auth: { policy } })
    const client = world.client(name, { byKey: name === 'key' })
    expect((await client.request([open()], interact)).status).toBe(400)
    expect(world.refusals.at(-1)).toMatchObject({ refusal })
    const named = await client.request([{ ...open(), identifier: alice }])
    expect(named.body.access_token).toBeDefined()
  })

  test('needs no choice of an owner with one account', async () => {
    const { asked } = setUp()
    const { approve, record } = await asked([open()])
    expect(await approve({ walletAddresses: [carol] })).toMatchObject({ ok: true })
    expect((await record())?.granted).toMatchObject([{ identifier: carol }])
  })

  test('leaves the accounts that the request names, and may be chosen for each item', async () => {
    const { asked } = setUp()
    const [named, dollars, euros] = [
      { ...open({ debitAmount: usd(1) }), identifier: alice },
      open({ debitAmount: usd(2) }),
      open({ debitAmount: eur(3) }),
    ]
    const chosen = [named, { ...dollars, identifier: alice }, { ...euros, identifier: carol }]
    const consent = await asked([named, dollars, euros])
    expect((await consent.view())?.needAccount).toEqual([dollars, euros])
    for (const account of [alice, carol]) {
      expect(await consent.approve({ account })).toMatchObject({ refusal: 'asset_mismatch' })
    }
    expect(await consent.approve({ access: chosen })).toMatchObject({ ok: true })
    expect((await consent.view())?.access).toEqual(chosen)
  })

  test.each<[string, Limits, object]>([
    ['what the receiver gets', { receiveAmount: usd(1), receiver: shopReceiver }, {}],
    ['accounts by their URL alone', { debitAmount: usd(1) }, { walletAddresses: [alice, carol] }],
  ])('has no check of the asset for %s', async (_, limits, more) => {
    const { asked } = setUp()
    const { approve } = await asked([open(limits)])
    expect(await approve({ account: carol, ...more })).toMatchObject({ ok: true })
  })

  test('is not what quotes and read-all are, which need neither consent nor an account', async () => {
    const { client } = setUp()
    const access: AccessItem[] = [
      { type: 'quote', actions: ['create', 'read', 'read-all'] },
      { type: 'incoming-payment', actions: ['create', 'read', 'read-all', 'list', 'complete'] },
    ]
    const { body } = await client.request(access)
    expect(body.access_token.access).toEqual(access)
  })
})
