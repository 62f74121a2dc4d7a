import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { refusals } from '../../src/http/refusals.js'
import { testKey } from '../support/keys.js'
import type { SignOptions } from '../support/sign.js'
import {
  createSpendingWorld,
  goneReceiver,
  grantToPay,
  outgoingItem,
  pay,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { quoteUrl } from '../support/spending-client.js'
import {
  alice,
  bob,
  closed,
  origin,
  resourceServer,
  type TestClient,
  type World,
} from '../support/world.js'

const collection = `${resourceServer}/outgoing-payments`

/** What is needed to build a request, before it is signed and sent. */
interface Draft {
  readonly world: World
  readonly client: TestClient
  token: string
  body: Record<string, unknown>
  sign: Partial<SignOptions>
}

/** One thing that can be wrong with a request, in the order in which they are looked for. */
interface Fault {
  readonly name: string
  readonly apply: (draft: Draft) => void | Promise<void>
  readonly refusal: string
}

const used = async ({ world, client, token, sign }: Draft) => {
  const spending = { ...outgoingItem(), actions: ['create'] as const }
  const { token: other } = await grantToPay(world, client, [spending])
  await pay(client, other, 1, {}, { nonce: sign.nonce ?? '' })
  expect(token).not.toBe(other)
}

const from =
  (walletAddress: string): Fault['apply'] =>
  ({ body }) =>
    void Object.assign(body, { walletAddress })

const faults: readonly Fault[] = [
  {
    name: 'another key has signed',
    apply: (draft) => {
      draft.sign = { ...draft.sign, key: { ...testKey('mallory'), kid: 'shop-key' } }
    },
    refusal: 'signature_invalid',
  },
  { name: 'the nonce was used before', apply: used, refusal: 'replayed' },
  {
    name: 'the token may only read',
    apply: async (draft) => {
      const readOnly = { ...outgoingItem(), actions: ['read'] as const }
      draft.token = (await grantToPay(draft.world, draft.client, [readOnly])).token
    },
    refusal: 'access_insufficient',
  },
  {
    name: 'there is a member that nobody knows',
    apply: ({ body }) => void Object.assign(body, { unknown: true }),
    refusal: 'body_invalid',
  },
  {
    name: 'the key is none',
    apply: (draft) => {
      draft.sign = { ...draft.sign, ...withKey('no key') }
    },
    refusal: 'idempotency_key_invalid',
  },
  {
    name: 'the wallet address is not one of the token’s',
    apply: from(`${origin}/foreign`),
    refusal: 'identifier_foreign',
  },
  {
    name: 'the key was used for another payment',
    apply: async (draft) => {
      draft.sign = { ...draft.sign, ...withKey('used') }
      const { token } = await grantToPay(draft.world, draft.client)
      await pay(draft.client, token, 1, {}, withKey('used'))
    },
    refusal: 'request_differs',
  },
  {
    name: 'there is no such account',
    apply: from(`${origin}/nobody`),
    refusal: 'wallet_address_unknown',
  },
  {
    name: 'the account is inactive',
    apply: from(closed),
    refusal: 'wallet_address_inactive',
  },
  {
    name: 'the amount is nothing',
    apply: ({ body }) => void Object.assign(body, { debitAmount: usd(0) }),
    refusal: 'amount_invalid',
  },
  {
    name: 'the receiver takes nothing',
    apply: ({ body }) => void Object.assign(body, { incomingPayment: goneReceiver }),
    refusal: 'receiver_invalid',
  },
  {
    name: 'the budget is spent',
    apply: async ({ client, token }) => {
      await pay(client, token, 2500)
    },
    refusal: 'limits_exceeded',
  },
]

/** The same for a payment by a quote; what comes before the wallet address is as above. */
const byQuote: readonly Fault[] = [
  ...faults.filter(({ refusal }) => refusal === 'identifier_foreign'),
  ...faults.filter(({ refusal }) => refusal.startsWith('wallet_address')),
  {
    name: 'there is no such quote',
    apply: ({ body }) => void Object.assign(body, { quoteId: `${resourceServer}/quotes/none` }),
    refusal: 'quote_unknown',
  },
  {
    name: 'the quote is for another wallet address',
    apply: async ({ client, body }) => {
      body['quoteId'] = await quoteUrl(client, { walletAddress: bob })
    },
    refusal: 'quote_mismatch',
  },
  {
    name: 'the quote has expired',
    apply: ({ world }) => world.clock.advance(5 * 60_000),
    refusal: 'quote_expired',
  },
  ...faults.filter(({ refusal }) => refusal === 'limits_exceeded'),
]

async function check(chosen: readonly Fault[], asked: (client: TestClient) => Promise<object>) {
  const world = createSpendingWorld()
  const client = world.client()
  const limits = { debitAmount: usd(2500) }
  const access = [alice, `${origin}/nobody`, closed].map((at) => outgoingItem(limits, at))
  const { token } = await grantToPay(world, client, access)
  const body = { walletAddress: alice, ...(await asked(client)) }
  const draft: Draft = { world, client, token, body, sign: { nonce: 'the-nonce' } }
  // The last first, so that it is not in the way of another, and another may hide it.
  for (const fault of chosen.toReversed()) await fault.apply(draft)
  const { status } = await client.post(collection, draft.body, draft.token, draft.sign)
  const [first] = chosen
  expect([status === 201, world.refusals.at(-1)?.refusal]).toEqual(
    first === undefined ? [true, undefined] : [false, first.refusal],
  )
}

const operations = [
  {
    payment: 'a payment to an incoming payment',
    faults,
    asked: async () => ({ incomingPayment: shopReceiver, debitAmount: usd(10) }),
  },
  {
    payment: 'a payment by a quote',
    faults: byQuote,
    asked: async (client: TestClient) => ({ quoteId: await quoteUrl(client) }),
  },
]

describe.each(operations)('$payment', ({ faults, asked }) => {
  test('is made where nothing is wrong', () => check([], asked))

  test.each(faults)('is refused with $refusal when $name', (fault) => check([fault], asked))

  test('is answered for the first row of the table when several apply', () =>
    fc.assert(
      fc.asyncProperty(fc.subarray([...faults], { minLength: 2 }), (some) => check(some, asked)),
      { numRuns: 40 },
    ))
})

test('the faults stand in the order of the table', () => {
  const rows = Object.keys(refusals)
  for (const some of [faults, byQuote]) {
    const places = some.map(({ refusal }) => rows.indexOf(refusal))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(places).not.toContain(-1)
  }
})
