import { describe, expect, test } from 'vitest'
import type { AccessItem, TokenItem } from '../../src/index.js'
import {
  createSpendingWorld,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  alice,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  outgoingAccess,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
  withoutFinish,
} from '../support/world.js'

interface TokenRequest {
  readonly label: string
  readonly access: readonly AccessItem[]
}

const incoming = { label: 'receive', access: [incomingAccess] }
const outgoing = { label: 'pay', access: [outgoingAccess] }
const quotes: AccessItem = { type: 'quote', actions: ['create', 'read'] }

function requestTokens(client: TestClient, tokens: readonly TokenRequest[], interact?: object) {
  return client.post(grantEndpoint, { client: client.client, access_token: tokens, interact })
}

/** Requests tokens with consent that ends with a redirect, and approves some of the access. */
async function approvedTokens(
  world: World,
  client: TestClient,
  tokens: readonly TokenRequest[],
  access?: readonly TokenItem[],
) {
  const { body } = await requestTokens(client, tokens, withFinish)
  const id = interactionId(body.interact.redirect)
  const approval = {
    resourceOwner: 'alice',
    walletAddresses: [alice, incomingAccess.identifier ?? ''],
  }
  const result = await world.auth.interactions.approve(id, {
    ...approval,
    ...(access && { access }),
  })
  if (!result.ok) throw new Error(result.reason)
  const reference = new URL(result.redirect ?? '').searchParams.get('interact_ref') ?? ''
  return { id, grantId: id.split('.')[0] ?? '', continuation: body.continue, reference }
}

async function issuedTokens(
  world: World,
  client: TestClient,
  tokens: readonly TokenRequest[] = [outgoing, incoming],
  access?: readonly TokenItem[],
) {
  const approved = await approvedTokens(world, client, tokens, access)
  const { body } = await client.continue(approved.continuation, approved.reference)
  return { ...approved, continuation: body.continue, tokens: body.access_token }
}

async function activity(world: World, tokens: readonly { readonly value: string }[]) {
  const results = tokens.map(({ value }) => world.auth.introspect({ accessToken: value }))
  return (await Promise.all(results)).map(({ active }) => active)
}

function spending(client: TestClient, value: string) {
  const url = `${resourceServer}/outgoing-payment-grant`
  return client.send({ method: 'GET', url, token: value })
}

describe('a request for several tokens', () => {
  test('that needs no consent returns an array with one token for each label', async () => {
    const world = createWorld()
    const client = world.client()
    const { status, body } = await requestTokens(client, [
      incoming,
      { label: 'price', access: [quotes], flags: [] } as TokenRequest,
    ])
    expect(status).toBe(200)
    expect(body.access_token).toEqual([
      {
        label: 'receive',
        value: expect.stringMatching(/^opa_/),
        manage: expect.stringContaining(`${grantEndpoint}/token/`),
        expires_in: 600,
        access: [incomingAccess],
      },
      {
        label: 'price',
        value: expect.stringMatching(/^opa_/),
        manage: expect.stringContaining(`${grantEndpoint}/token/`),
        expires_in: 600,
        access: [quotes],
      },
    ])
    const [one, other] = body.access_token
    expect(one.value).not.toBe(other.value)
    expect(one.manage).not.toBe(other.manage)
    expect(await activity(world, [one, other])).toEqual([true, true])
  })

  test('for one token in an array returns an array', async () => {
    const { body } = await requestTokens(createWorld().client(), [incoming])
    expect(body.access_token).toEqual([expect.objectContaining({ label: 'receive' })])
  })

  test('for a single token returns an object without a label', async () => {
    const { body } = await createWorld().client().request([incomingAccess])
    expect(Object.keys(body.access_token)).toEqual(['value', 'manage', 'expires_in', 'access'])
  })

  test('waits for consent if one of the tokens needs it, and issues all of them together', async () => {
    const world = createWorld()
    const client = world.client()
    const asked = await requestTokens(client, [incoming, outgoing], withoutFinish)
    expect(asked.body).not.toHaveProperty('access_token')
    const { tokens } = await issuedTokens(world, client, [incoming, outgoing])
    expect(tokens).toMatchObject([
      { label: 'receive', access: [incomingAccess] },
      { label: 'pay', access: [outgoingAccess] },
    ])
    expect(await activity(world, tokens)).toEqual([true, true])
  })

  test('passes the access of all tokens to mayRequest, with their labels', async () => {
    const seen: unknown[] = []
    const world = createWorld({
      auth: { policy: { mayRequest: ({ access }) => ({ ok: seen.push(...access) > 0 }) } },
    })
    await requestTokens(world.client(), [incoming, { label: 'price', access: [quotes] }])
    expect(seen).toEqual([
      { label: 'receive', ...incomingAccess },
      { label: 'price', ...quotes },
    ])
  })
})

describe('the consent for several tokens', () => {
  test('shows each token by its label, and what all of them can spend together', async () => {
    const world = createWorld()
    const client = world.client()
    const twice = [outgoing, { label: 'also', access: [outgoingAccess, quotes] }]
    const { body } = await requestTokens(client, twice, withoutFinish)
    const view = await world.auth.interactions.get(interactionId(body.interact.redirect))
    expect(view).toMatchObject({
      access: [
        { label: 'pay', ...outgoingAccess },
        { label: 'also', ...outgoingAccess },
        { label: 'also', ...quotes },
      ],
      tokens: [
        { label: 'pay', access: [{ label: 'pay', ...outgoingAccess }] },
        { label: 'also', access: [{ type: 'outgoing-payment' }, { type: 'quote' }] },
      ],
      totals: [{ identifier: alice, debitAmount: usd(5000), items: 2 }],
    })
  })

  test('for a single token shows one token without a label', async () => {
    const world = createWorld()
    const { body } = await world.client().request([outgoingAccess], withoutFinish)
    const view = await world.auth.interactions.get(interactionId(body.interact.redirect))
    expect(view?.tokens).toEqual([{ access: [outgoingAccess] }])
    expect(view?.totals).toEqual([{ identifier: alice, debitAmount: usd(2500), items: 1 }])
  })

  test('can be given to some items only; a token without any is not issued', async () => {
    const world = createWorld()
    const client = world.client()
    const small = { ...outgoingAccess, limits: { debitAmount: usd(10) } }
    const granted = [{ label: 'pay', ...small }]
    const { tokens, grantId } = await issuedTokens(world, client, [outgoing, incoming], granted)
    expect(tokens).toMatchObject([{ label: 'pay', access: [small] }])
    expect(await world.auth.grants.get(grantId)).toMatchObject({ access: granted })
  })

  test.each<readonly [what: string, access: readonly TokenItem[]]>([
    ['without its label', [outgoingAccess]],
    ['under the label of another token', [{ label: 'receive', ...outgoingAccess }]],
    ['under an unknown label', [{ label: 'other', ...outgoingAccess }]],
    [
      'twice',
      [
        { label: 'pay', ...outgoingAccess },
        { label: 'pay', ...outgoingAccess },
      ],
    ],
  ])('is refused for an item %s', async (_, access) => {
    const world = createWorld()
    const { body } = await requestTokens(world.client(), [outgoing, incoming], withoutFinish)
    const id = interactionId(body.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: [alice], access }
    expect(await world.auth.interactions.approve(id, approval)).toMatchObject({
      ok: false,
      refusal: 'access_widened',
    })
  })
})

describe('the continuation of a request for several tokens', () => {
  test.each(['rotated', 'revoked'] as const)(
    'is not repeated once one of the tokens has been %s',
    async (how) => {
      const world = createWorld()
      const client = world.client()
      const { continuation, reference, tokens } = await issuedTokens(world, client)
      await (how === 'rotated' ? client.rotate(tokens[0]) : client.revoke(tokens[0]))
      const again = await client.continue(continuation, reference)
      expect(again.status).toBeGreaterThanOrEqual(400)
      expect(await activity(world, [tokens[1]])).toEqual([true])
    },
  )
})

describe('a token of a set', () => {
  test('is rotated alone, and keeps its label and access', async () => {
    const world = createWorld()
    const client = world.client()
    const { tokens, grantId } = await issuedTokens(world, client)
    const [paying, receiving] = tokens
    const { status, body } = await client.rotate(paying)
    expect(status).toBe(200)
    expect(body.access_token).toMatchObject({ label: 'pay', access: [outgoingAccess] })
    expect(await activity(world, [paying, body.access_token, receiving])).toEqual([
      false,
      true,
      true,
    ])
    const again = await client.rotate(paying)
    expect(again.body).toEqual(body)
    const rotated = await client.rotate(receiving)
    expect(rotated.body.access_token).toMatchObject({ label: 'receive' })
    expect((await client.rotate(paying)).body).toEqual(body)
    const events: unknown[] = []
    await world.auth.events.drain((event) => void events.push(event))
    expect(events).toMatchObject([
      { type: 'grant.requested', grantId },
      { type: 'grant.approved' },
      { type: 'grant.issued' },
      { type: 'grant.rotated', label: 'pay' },
      { type: 'grant.rotated', label: 'receive' },
    ])
  })

  test('is revoked alone, and the grant ends with the last one', async () => {
    const world = createWorld()
    const client = world.client()
    const { tokens, grantId } = await issuedTokens(world, client)
    const [paying, receiving] = tokens
    expect((await client.revoke(paying)).status).toBe(204)
    expect(await activity(world, tokens)).toEqual([false, true])
    expect(await world.auth.grants.get(grantId)).toMatchObject({ status: 'approved' })
    expect((await client.revoke(paying)).status).toBe(204)
    expect((await client.rotate(paying)).status).toBe(404)
    const { body } = await client.rotate(receiving)
    expect((await client.revoke(body.access_token)).status).toBe(204)
    expect(await world.auth.grants.get(grantId)).toMatchObject({ status: 'revoked' })
    const types: unknown[] = []
    await world.auth.events.drain((event) => void types.push(event))
    expect(types.slice(3)).toMatchObject([
      { type: 'grant.token-revoked', label: 'pay' },
      { type: 'grant.rotated', label: 'receive' },
      { type: 'grant.revoked' },
    ])
  })

  test.each(['the client cancels', 'the owner revokes'] as const)(
    'ends with the grant when %s it',
    async (who) => {
      const world = createWorld()
      const client = world.client()
      const { tokens, grantId, continuation } = await issuedTokens(world, client)
      if (who === 'the owner revokes') await world.auth.grants.revoke(grantId)
      else await client.cancel(continuation)
      expect(await activity(world, tokens)).toEqual([false, false])
      for (const token of tokens) expect((await client.rotate(token)).status).toBe(400)
    },
  )

  test('permits only its own access at the resource server', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { tokens } = await issuedTokens(world, client)
    const [paying, receiving] = tokens
    const body = { walletAddress: incomingAccess.identifier }
    expect((await client.createPayment(paying.value, body)).status).toBe(403)
    expect((await client.createPayment(receiving.value, body)).status).toBe(201)
    expect((await pay(client, receiving.value, 1)).status).toBe(403)
    expect((await pay(client, paying.value, 1)).status).toBe(201)
    expect((await spending(client, receiving.value)).status).toBe(403)
    expect(await world.auth.introspect({ accessToken: receiving.value })).toMatchObject({
      access: [{ ...incomingAccess, itemId: '2' }],
    })
  })
})

describe('the budgets of a set', () => {
  const limited = outgoingItem({ debitAmount: usd(100) })
  const twice = [
    { label: 'one', access: [limited, quotes] },
    { label: 'two', access: [limited] },
  ]

  test('are separate for the same item in two tokens, and each is reported to its own token', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { tokens } = await issuedTokens(world, client, twice)
    const [one, two] = tokens
    expect((await pay(client, one.value, 70)).status).toBe(201)
    expect((await pay(client, one.value, 31)).status).toBe(403)
    expect((await pay(client, two.value, 100)).status).toBe(201)
    expect((await pay(client, two.value, 1)).status).toBe(403)
    expect((await spending(client, one.value)).body).toMatchObject({
      spentDebitAmount: usd(70),
    })
    expect((await spending(client, two.value)).body).toMatchObject({
      spentDebitAmount: usd(100),
    })
  })

  test('are shown to the host with the labels of their tokens', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { tokens, grantId } = await issuedTokens(world, client, twice)
    await pay(client, tokens[1].value, 60)
    const spent = { receiveAmount: usd(60), debitAmount: usd(60) }
    expect(await world.resources.outgoingPayments.budgetsOf(grantId)).toMatchObject([
      { item: { label: 'one', ...limited }, left: { debitAmount: usd(100) } },
      { item: { label: 'two', ...limited }, spent, left: { debitAmount: usd(40) } },
    ])
  })

  test('let a payment be repeated, and listed, with another token of the client', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { tokens } = await issuedTokens(world, client, twice)
    const [one, two] = tokens
    const { body: quote } = await newQuote(client, one.value, { debitAmount: usd(100) })
    const quoteId = quote.id
    const first = await payByQuote(client, one.value, quoteId)
    const again = await payByQuote(client, two.value, quoteId)
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.body.id).toBe(first.body.id)
    expect(first.body.receiver).toBe(shopReceiver)
    expect((await pay(client, two.value, 100)).status).toBe(201)
    const url = `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`
    const { body } = await client.send({ method: 'GET', url, token: two.value })
    expect(body.result).toHaveLength(2)
  })
})
