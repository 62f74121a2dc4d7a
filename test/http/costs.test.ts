import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  type AccessItem,
  type MayPayAnswer,
  memoryStore,
  type RequestedPayment,
  type ResourcePolicy,
  type Store,
} from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { startOfTests } from '../support/clock.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  usd,
  withKey,
} from '../support/spending.js'
import {
  approvedGrant,
  bob,
  incomingAccess,
  issuedGrant,
  origin,
  type World,
} from '../support/world.js'

interface Cost {
  loads: number
  commits: number
  others: number
}

/** Returns a memory store that counts its calls. */
function countedStore(): { readonly store: Store; readonly cost: Cost } {
  const store = memoryStore()
  const cost = { loads: 0, commits: 0, others: 0 }
  const counting =
    <Args extends unknown[], Result>(what: keyof Cost, call: (...args: Args) => Result) =>
    (...args: Args) => {
      cost[what] += 1
      return call(...args)
    }
  return {
    cost,
    store: {
      load: counting('loads', store.load),
      commit: counting('commits', store.commit),
      list: counting('others', store.list),
      due: counting('others', store.due),
      remove: counting('others', store.remove),
    },
  }
}

const amount = { value: '10', assetCode: 'USD', assetScale: 2 }

/** Prepares every operation and returns functions that run them. */
async function prepared(policy: ResourcePolicy = {}) {
  const { store, cost } = countedStore()
  const world = createSpendingWorld({ store, resources: { policy } })
  const client = world.client()
  const approved = await approvedGrant(world, client)
  const issued = await issuedGrant(world, client)
  const cancelled = await approvedGrant(world, client)
  const completing: AccessItem = { ...incomingAccess, actions: ['create', 'read', 'complete'] }
  const { body: first } = await client.request([completing])
  const { body: second } = await client.request([incomingAccess])
  const token: string = first.access_token.value
  const { body: payment } = await client.createPayment(token, { walletAddress: bob })
  const paymentId = world.resources.incomingPayments.idOf(payment.id) ?? ''
  const quoting = await quoteToken(client)
  const paying = await grantToPay(world, client)
  const quotes = [await newQuote(client, quoting), await newQuote(client, quoting)]
  const [quoted = '', paid = ''] = quotes.map(({ body }) => body.id as string)
  const outgoing = await payByQuote(client, paying.token, paid)
  const { outgoingPayments } = world.resources
  const begun = outgoingPayments.idOf(outgoing.body.id) ?? ''
  await outgoingPayments.begin(begun)
  const direct = await pay(client, paying.token, 100)
  const unbegun = outgoingPayments.idOf(direct.body.id) ?? ''
  const operations: Record<string, () => Promise<unknown>> = {
    'grant request': () => client.request([incomingAccess]),
    continue: () => client.continue(approved.body.continue, approved.interactRef),
    rotate: () => client.rotate(issued.token),
    revoke: () => client.revoke(second.access_token),
    cancel: () => client.cancel(cancelled.body.continue),
    introspect: () => world.auth.introspect({ accessToken: token }),
    'create incoming payment, with both servers in one process': () =>
      client.createPayment(token, { walletAddress: bob }),
    'create incoming payment as the host': () =>
      world.resources.incomingPayments.create({ walletAddress: bob, idempotencyKey: 'invoice' }),
    receive: () =>
      world.resources.incomingPayments.receive(paymentId, { transferId: 'one', amount }),
    'create quote': () => newQuote(client, quoting),
    'create outgoing payment by a quote under a limit, with both servers in one process': () =>
      payByQuote(client, paying.token, quoted),
    begin: () => outgoingPayments.begin(unbegun),
    'report sent': () =>
      outgoingPayments.reportSent(begun, {
        sentAmount: usd(10),
        deliveredAmount: usd(10),
        final: true,
      }),
    'cancel an outgoing payment': () => outgoingPayments.cancel(unbegun),
    'read incoming payment': () => client.getPayment(token, payment.id, signedWithoutNonce(world)),
    'read incoming payment without a token': () =>
      world.handle({
        method: 'GET',
        url: new URL(payment.id).pathname,
        headers: [],
        body: new Uint8Array(),
      }),
    'complete incoming payment': () =>
      client.post(`${payment.id}/complete`, undefined, token, signedWithoutNonce(world)),
  }
  return { cost, operations }
}

/** Signs like the published client, without a nonce, so that a read writes nothing. */
function signedWithoutNonce({ clock, client }: World) {
  const created = Math.floor(clock.now() / 1_000)
  return { parameters: [`keyid="${client().key.kid}"`, `created=${created}`] }
}

/** The table of docs/sizing.md. Operations that share a row have the cost of that row. */
const documented = [
  ...readFileSync('docs/sizing.md', 'utf8').matchAll(/^\| ([a-z ,]+) \| (\d) \| (\d) \|$/gm),
].flatMap(([, names = '', loads, commits]) => {
  const cost = { loads: Number(loads), commits: Number(commits), others: 0 }
  const single = names.includes('with both') ? [names] : names.split(', ')
  return single.map((name) => [name, cost] as const)
})

describe('an operation makes as many store calls as docs/sizing.md states', () => {
  test.each(documented)('%s', async (name, documentedCost) => {
    const { cost, operations } = await prepared()
    Object.assign(cost, { loads: 0, commits: 0, others: 0 })
    await operations[name]?.()
    expect(cost).toEqual(documentedCost)
  })

  test.each([
    ['and one commit more for an outgoing payment that the host allows', { ok: true }, 0, 1],
    [
      'and one commit and one load more for one that the host refuses',
      { ok: false, refusal: 'funds_insufficient' },
      1,
      1,
    ],
  ] as const)('%s', async (_, answer, loads, commits) => {
    const pay = 'create outgoing payment by a quote under a limit, with both servers in one process'
    const host: { answer: MayPayAnswer } = { answer: { ok: true } }
    const { cost, operations } = await prepared({ mayPay: () => host.answer })
    host.answer = answer
    Object.assign(cost, { loads: 0, commits: 0, others: 0 })
    await operations[pay]?.()
    const [, without] = documented.find(([name]) => name === pay) ?? []
    expect(without).toBeDefined()
    expect(cost).toEqual({
      ...without,
      loads: loads + (without?.loads ?? 0),
      commits: commits + (without?.commits ?? 0),
    })
  })

  test.each([
    ['create incoming payment, with both servers in one process', 1],
    ['create incoming payment as the host', 0],
    ['receive', 0],
  ])('and if the host may refuse it, %s makes %i loads more', async (name, more) => {
    const { cost, operations } = await prepared({ mayReceive: () => ({ ok: true }) })
    Object.assign(cost, { loads: 0, commits: 0, others: 0 })
    await operations[name]?.()
    const [, without] = documented.find(([each]) => each === name) ?? []
    expect(cost).toEqual({ ...without, loads: more + (without?.loads ?? 0) })
  })

  const answers: Readonly<Record<string, (payment: RequestedPayment) => MayPayAnswer>> = {
    'without a question to the host': () => ({ ok: true }),
    'that the host allows': () => ({ ok: true }),
    'that the host refuses': () => ({ ok: false, refusal: 'funds_insufficient' }),
    'that its owner has to confirm': () => {
      const [url, until] = [`${origin}/confirm`, startOfTests + 60_000]
      return { ok: false, refusal: 'confirmation_required', url, until }
    },
  }

  test.each(
    Object.keys(answers).flatMap((answer) =>
      ['a quote', 'a key'].map((by) => [by, answer] as const),
    ),
  )(
    'and an order of the owner by %s %s costs at most as much as a client’s',
    async (by, answer) => {
      const costOf = async (authority: Authority) => {
        const { store, cost } = countedStore()
        const mayPay = answers[answer]
        const isAsked = answer !== 'without a question to the host' && mayPay !== undefined
        const accountLimits = () => [{ payments: 1_000 }]
        const policy = { accountLimits, ...(isAsked && { mayPay }) }
        const world = createSpendingWorld({ store, resources: { policy } })
        const order = { countsInAccountLimits: true }
        const payer = await payerOf(world, authority, { order })
        const ask = async () => {
          const { body } = await payer.quote()
          Object.assign(cost, { loads: 0, commits: 0, others: 0 })
          return by === 'a quote' ? payer.payByQuote(body.id) : payer.pay(10)
        }
        // The first one of a process marks the store, and opens the windows of its limits.
        await ask()
        const made = await ask()
        return { status: made.status, first: { ...cost } }
      }
      const [client, owner] = await Promise.all(authorities.map(costOf))
      expect(owner?.status).toBe(client?.status)
      for (const calls of ['loads', 'commits', 'others'] as const) {
        expect(owner?.first[calls], calls).toBeLessThanOrEqual(client?.first[calls] ?? -1)
      }
    },
  )

  test('and the table contains all of them', async () => {
    const { operations } = await prepared()
    expect(documented.map(([name]) => name).sort()).toEqual(Object.keys(operations).sort())
  })
})

/** Returns a store whose calls last until the event loop turns, and the number of times that it was waited for. */
function slowStore() {
  const fast = memoryStore()
  const waits = { count: 0 }
  let open = 0
  const slow =
    <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args) => {
      if (open === 0) waits.count += 1
      open += 1
      await new Promise((resolve) => setImmediate(resolve))
      open -= 1
      return call(...args)
    }
  const { load, commit } = fast
  const store: Store = {
    ...fast,
    load: slow(load),
    commit: slow(commit),
  }
  return { store, waits }
}

describe('on a slow store', () => {
  async function waitsFor(
    limits: readonly number[],
    policy: ResourcePolicy,
    keyed: boolean,
  ): Promise<number> {
    const { store, waits } = slowStore()
    const world = createSpendingWorld({ store, resources: { policy } })
    const client = world.client()
    const quoting = await quoteToken(client)
    const items = limits.map((limit) => outgoingItem({ debitAmount: usd(limit) }))
    const paying = await grantToPay(world, client, items)
    const { body: quote } = await newQuote(client, quoting)
    waits.count = 0
    const answer = keyed
      ? await pay(client, paying.token, 10, {}, withKey('key'))
      : await payByQuote(client, paying.token, quote.id)
    expect(answer.status).toBe(201)
    return waits.count
  }

  const allows: ResourcePolicy = { mayPay: () => ({ ok: true }) }
  test.each([
    { paid: 'by a quote', limits: [2_500], policy: {}, keyed: false, waits: 2 },
    { paid: 'that the host allows', limits: [2_500], policy: allows, keyed: false, waits: 3 },
    { paid: 'under several limits', limits: [1, 2_500], policy: {}, keyed: false, waits: 3 },
    { paid: 'by an Idempotency-Key', limits: [2_500], policy: {}, keyed: true, waits: 3 },
  ])(
    'an outgoing payment $paid waits for its records, unless the grant names them, and for each commit: $waits times',
    async ({ limits, policy, keyed, waits }) => {
      expect(await waitsFor(limits, policy, keyed)).toBe(waits)
    },
  )

  test.each<ResourcePolicy>([{}, { mayReceive: () => ({ ok: true }) }])(
    'funds that arrive wait for the payment with the transfer, then for the commit',
    async (policy) => {
      const { store, waits } = slowStore()
      const { resources, client } = createSpendingWorld({ store, resources: { policy } })
      const shop = client()
      const { body: granted } = await shop.request([incomingAccess])
      const token: string = granted.access_token.value
      const { body: payment } = await shop.createPayment(token, { walletAddress: bob })
      const id = resources.incomingPayments.idOf(payment.id) ?? ''
      waits.count = 0
      const arrived = resources.incomingPayments.receive(id, { transferId: 'one', amount })
      expect(await arrived).toMatchObject({ ok: true, changed: true })
      expect(waits.count).toBe(2)
    },
  )
})
