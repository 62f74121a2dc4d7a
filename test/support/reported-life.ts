import fc from 'fast-check'
import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import { type MayPay, memoryStore, type Store } from '../../src/index.js'
import { paymentEnds } from '../../src/service/event-record.js'
import {
  createSpendingWorld,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  shopReceiver,
  usd,
} from './spending.js'
import { alice, bob, interactionId, type TestClient } from './world.js'

/** What a step does, to which of the things that exist, and how much. */
export interface LifeStep {
  readonly does: (typeof deeds)[number]
  readonly to: number
  readonly value: number
}

const deeds = [
  ...['fail', 'cancel', 'withdraw', 'wait', 'sweep'],
  ...['request', 'decide', 'continue', 'rotate', 'revoke', 'invoice', 'invoice', 'receive'],
  ...['complete', 'quote', 'pay', 'pay', 'order', 'begin', 'begin', 'report', 'report'],
] as const

/** Three grants to pay: in windows, with a limit on what is received, and without limits. */
export const granting: readonly LifeStep[] = [3, 1, 2].flatMap((value, to) =>
  (['request', 'decide', 'continue'] as const).map((does) => ({ does, to, value })),
)

const steps = fc.array(
  fc.record({
    does: fc.constantFrom(...deeds),
    to: fc.nat({ max: 5 }),
    value: fc.integer({ min: 1, max: 60 }),
  }),
  { minLength: 20, maxLength: 60, size: 'max' },
)

/** Steps of a wallet in which every kind of record is written. Some have no effect. */
export const anyLife: fc.Arbitrary<readonly LifeStep[]> = steps.map((all) => [...granting, ...all])

const hourMs = 3_600_000
const waits = [1, 1_000, 7 * 60_000, hourMs, 25 * hourMs, 31 * 24 * hourMs]
const metadata = { note: 'a\u0000b', 'k\ud800': [1.5, null] }

/** Refuses some payments, and leaves others reserved. */
const mayPay: MayPay = ({ debitAmount: { value } }) => {
  if (Number(value) % 9 === 1) throw new Error('no ledger')
  return Number(value) % 7 === 1 ? { ok: false, refusal: 'funds_insufficient' } : { ok: true }
}

/** Plays steps on the servers, and returns them with the records that they have written. */
export async function playLife(steps: readonly LifeStep[]) {
  const { store, records } = keptStore()
  const world = createSpendingWorld({
    store,
    resources: { recordsEvents: paymentEnds, policy: { mayPay } },
  })
  const { auth, clock, resources } = world
  const clients = [world.client('shop'), world.client('keyed', { byKey: true })] as const
  const start = new Date(clock.now()).toISOString()
  const grants: Asked[] = []
  const [invoices, quotes, payments]: string[][] = [[], [], []]
  const idIn = (url: string) => url.slice(url.lastIndexOf('/') + 1)
  const items = [
    { type: 'incoming-payment', actions: ['create', 'complete'] },
    { type: 'quote', actions: ['create'] },
    outgoingItem({ debitAmount: usd(90), interval: `R/${start}/PT2H` }),
    outgoingItem({ receiveAmount: usd(200) }),
    outgoingItem(),
  ] as const
  const free = items.slice(0, 2)

  const play: Readonly<Record<string, (to: number, value: number) => unknown>> = {
    async request(to, value) {
      const client = clients[to % 2 === 0 ? 0 : 1]
      const consented = value % 4 > 0
      const access = consented ? [items[2 + (value % 3)] ?? items[2], ...free] : free
      const { body } = await client.request(access, consented ? { start: ['redirect'] } : undefined)
      grants.push({ client, body, token: body.access_token })
    },
    decide(to, value) {
      const redirect = grants[to]?.body.interact?.redirect
      if (redirect === undefined) return
      const id = interactionId(redirect)
      if (value > 40) return auth.interactions.deny(id)
      const access = value > 20 ? { access: [outgoingItem({ debitAmount: usd(70) })] } : {}
      return auth.interactions.approve(id, {
        resourceOwner: `owner ${to}`,
        walletAddresses: [alice],
        ...access,
      })
    },
    async continue(to) {
      const grant = grants[to]
      if (grant?.body.continue === undefined) return
      clock.advance(5_000)
      const { body, status } = await grant.client.continue(grant.body.continue)
      if (status === 200 && body.access_token) grant.token = body.access_token
    },
    async rotate(to) {
      const grant = grants[to]
      if (grant?.token === undefined) return
      const { body, status } = await grant.client.rotate(grant.token)
      if (status === 200) grant.token = body.access_token
    },
    revoke: (to, value) => value > 40 && auth.grants.revoke(idOfGrant(grants[to])),
    async invoice(to, value) {
      const body = {
        walletAddress: bob,
        ...(value % 2 === 0 && { incomingAmount: usd(value) }),
        ...(value % 3 === 0 && { metadata }),
        ...(value % 5 === 0 && { expiresAt: new Date(clock.now() + value * 1_000).toISOString() }),
      }
      const { client, token } = grants[to] ?? grants[0] ?? {}
      const made = await client?.createPayment(token?.value ?? '', body)
      if (made?.status === 201) invoices?.push(idIn(made.body.id))
    },
    receive: (to, value) =>
      resources.incomingPayments.receive(invoices?.[to] ?? 'none', {
        transferId: `${to} ${value}`,
        amount: usd(value),
      }),
    complete: (to) => resources.incomingPayments.complete(invoices?.[to] ?? 'none'),
    withdraw: (to, value) =>
      resources.incomingPayments.cancel(
        invoices?.[to] ?? 'none',
        value % 2 === 0 ? { reason: 'withdrawn' } : {},
      ),
    async quote(to, value) {
      const { client, token } = grants[to] ?? {}
      if (client === undefined || token === undefined) return
      const made = await newQuote(client, token.value, { debitAmount: usd(value) })
      if (made.status === 201) quotes?.push(made.body.id)
    },
    async pay(to, value) {
      const { client, token } = grants[to] ?? {}
      if (client === undefined || token === undefined) return
      const quote = value % 2 === 0 ? quotes?.pop() : undefined
      const more = value % 3 === 0 ? { metadata } : {}
      const made = await (quote === undefined
        ? pay(client, token.value, value, more)
        : payByQuote(client, token.value, quote, more))
      if (made.status === 201) payments?.push(idIn(made.body.id))
    },
    async order(to, value) {
      const walletAddress = to % 2 === 0 ? alice : bob
      const asked = { walletAddress, receiver: shopReceiver, debitAmount: usd(value) }
      const quoted = value % 2 === 0 && (await resources.quotes.create(asked))
      const order = quoted
        ? { walletAddress, quoteId: quoted.ok ? quoted.quote.quoteId : 'none' }
        : { ...asked, idempotencyKey: `${payments?.length}` }
      const made = await resources.outgoingPayments.create(order).catch(() => undefined)
      if (made?.ok) payments?.push(made.payment.paymentId)
    },
    begin: (to) => resources.outgoingPayments.begin(payments?.[to] ?? 'none'),
    report: (to, value) =>
      resources.outgoingPayments.reportSent(payments?.[to] ?? 'none', {
        sentAmount: usd(value % 9),
        deliveredAmount: usd(value % 9),
        final: value % 2 === 0,
      }),
    fail: (to, value) =>
      resources.outgoingPayments.fail(payments?.[to] ?? 'none', {
        sentAmount: usd(value % 7),
        reason: 'rail\u0000',
      }),
    cancel: (to) => resources.outgoingPayments.cancel(payments?.[to] ?? 'none'),
    wait: (_, value) => clock.advance(waits[value % waits.length] ?? 1),
    async sweep() {
      for (const server of [auth, resources]) while ((await server.sweep()).more);
    },
  }
  for (const { does, to, value } of steps) await play[does]?.(to, value)
  return { ...world, records, grants }
}

interface Asked {
  readonly client: TestClient
  // biome-ignore lint/suspicious/noExplicitAny: the response of the server
  readonly body: any
  token: { manage: string; value: string } | undefined
}

/** Returns the id of the grant, which begins the continuation token and the path of the interaction. */
function idOfGrant(grant: Asked | undefined): string {
  const redirect = grant?.body.interact?.redirect ?? 'x/none.'
  return interactionId(redirect).split('.')[0] ?? 'none'
}

/** A memory store, and a view of the records in it. */
function keptStore() {
  const memory = memoryStore()
  const records = new Map<string, { readonly kind: RecordKind; readonly record: Stored }>()
  const store: Store = {
    ...memory,
    async commit(commit) {
      const committed = await memory.commit(commit)
      for (const { kind, next } of committed ? commit.changes : []) {
        records.set(`${kind} ${next.id}`, { kind, record: structuredClone(next) })
      }
      return committed
    },
    async remove(given) {
      const removed = await memory.remove(given)
      for (const [i, { kind, id }] of given.entries()) {
        if (removed[i]) records.delete(`${kind} ${id}`)
      }
      return removed
    },
  }
  return { store, records }
}
