import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type AccessItem, memoryStore, type Store } from '../../src/index.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  pay,
  payByQuote,
  quoteToken,
  usd,
} from '../support/spending.js'
import { approvedGrant, bob, incomingAccess, issuedGrant, type World } from '../support/world.js'

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
async function prepared() {
  const { store, cost } = countedStore()
  const world = createSpendingWorld({ store })
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

/** The table of docs/storage.md. Operations that share a row have the cost of that row. */
const documented = [
  ...readFileSync('docs/storage.md', 'utf8').matchAll(/^\| ([a-z ,]+) \| (\d) \| (\d) \|$/gm),
].flatMap(([, names = '', loads, commits]) => {
  const cost = { loads: Number(loads), commits: Number(commits), others: 0 }
  const single = names.includes('with both') ? [names] : names.split(', ')
  return single.map((name) => [name, cost] as const)
})

describe('an operation makes as many store calls as docs/storage.md states', () => {
  test.each(documented)('%s', async (name, documentedCost) => {
    const { cost, operations } = await prepared()
    Object.assign(cost, { loads: 0, commits: 0, others: 0 })
    await operations[name]?.()
    expect(cost).toEqual(documentedCost)
  })

  test('and the table contains all of them', async () => {
    const { operations } = await prepared()
    expect(documented.map(([name]) => name).sort()).toEqual(Object.keys(operations).sort())
  })
})
