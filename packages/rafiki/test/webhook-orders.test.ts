import type { DeliveredEvent } from 'open-payments-server'
import { pay, usd } from 'open-payments-test-support/spending'
import { idOfPayment, payingClient } from 'open-payments-test-support/spending-client'
import { bob, createWorld, type World } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { type RafikiWebhook, type Recipient, webhookOf } from '../src/index.js'
import { refusalsOf } from './hosts.js'

/** A wallet with one payment: what may happen to it, and what its host's old receiver of webhooks was sent so far. */
interface Life<Step extends string> {
  /** Takes a step, and resolves to whether it changed the payment. */
  take(step: Step): Promise<boolean>
  readonly source: Pick<World['resources'], 'events'>
  readonly write: (
    event: DeliveredEvent,
    recipient: Recipient,
  ) => Promise<RafikiWebhook | undefined>
}

interface Told {
  readonly steps: readonly string[]
  /** The types of the library's events, in the order of their delivery. */
  readonly events: readonly string[]
  /** The webhooks that the account servicing entity was sent for them. */
  readonly webhooks: readonly RafikiWebhook[]
  /** Those of the card service. */
  readonly cards: readonly RafikiWebhook[]
  /** The receivers that could not read one of them. */
  readonly unread: readonly string[]
}

/** Takes the steps in a new life, and returns what was told, or `undefined` if the last step changed nothing. */
async function told<Step extends string>(
  begin: () => Promise<Life<Step>>,
  steps: readonly Step[],
): Promise<{ readonly changed: boolean; readonly told: Told }> {
  const { take, source, write } = await begin()
  const events: string[] = []
  const webhooks: RafikiWebhook[] = []
  const cards: RafikiWebhook[] = []
  const unread: string[] = []
  const deliver = async (event: DeliveredEvent) => {
    events.push(event.type.slice(event.type.indexOf('.') + 1))
    for (const [recipient, all] of [
      ['account servicing entity', webhooks],
      ['card service', cards],
    ] as const) {
      const webhook = await write(event, recipient)
      if (webhook === undefined) continue
      all.push(webhook)
      unread.push(...refusalsOf(webhook, recipient))
    }
  }
  let changed = true
  for (const step of steps) changed = await take(step)
  await source.events.drain(deliver)
  return { changed, told: { steps, events, webhooks, cards, unread } }
}

/** Explores every order of steps, of which each changes the payment, and after each of them the steps that do not. */
async function everyOrder<Step extends string>(
  all: readonly Step[],
  begin: () => Promise<Life<Step>>,
): Promise<readonly Told[]> {
  const found: Told[] = []
  let last: readonly (readonly Step[])[] = [[]]
  while (last.length > 0) {
    const next: (readonly Step[])[] = []
    for (const steps of last.flatMap((before) => all.map((step) => [...before, step]))) {
      const order = await told(begin, steps)
      found.push(order.told)
      if (order.changed) next.push(steps)
    }
    last = next
  }
  return found
}

const orders = (found: readonly Told[]) =>
  [...new Set(found.map(({ events }) => events.join(' ')))].toSorted()

const finals = ({ webhooks }: Told) =>
  webhooks.filter(({ type }) => /\.(completed|expired|failed|cancelled)$/.test(type))

const card = {
  requestId: '4f1b9f0e-7a8c-4c58-8e5a-0d9a3d3f6b11',
  data: { signature: 's', payload: 'p' },
  initiatedAt: '2026-11-21T12:00:00.000Z',
}

function rafiki({ resources }: World, isCard = false): Life<never>['write'] {
  const sources = {
    payments: resources,
    walletAddressId: async () => '0d6b2a2c-4f5e-4a55-9a4c-2b6e7e5c1f10',
    ...(isCard && { cardOf: async () => card }),
  }
  return (event, recipient) => webhookOf(event, recipient, sources)
}

const valueIn = (webhook: RafikiWebhook, name: 'receivedAmount' | 'sentAmount') =>
  Number((webhook.data as Partial<Record<typeof name, { readonly value: string }>>)[name]?.value)

type IncomingStep =
  | 'receive 10'
  | 'receive 90'
  | 'complete'
  | 'cancel'
  | 'pass the expiry'
  | 'sweep'

async function incoming(incomingAmount?: string): Promise<Life<IncomingStep>> {
  const world = createWorld()
  const { incomingPayments } = world.resources
  const created = await incomingPayments.create({
    walletAddress: bob,
    idempotencyKey: 'invoice 1',
    expiresAt: world.clock.now() + 60_000,
    ...(incomingAmount !== undefined && { incomingAmount: usd(incomingAmount) }),
  })
  if (!created.ok) throw new Error(created.reason)
  const { paymentId } = created.payment
  let late = false
  return {
    source: world.resources,
    write: rafiki(world),
    async take(step) {
      if (step === 'pass the expiry') {
        if (late) return false
        late = true
        world.clock.advance(60_001)
        return true
      }
      if (step === 'sweep') return (await world.resources.sweep()).expired > 0
      const result =
        step === 'complete' || step === 'cancel'
          ? await incomingPayments[step](paymentId)
          : await incomingPayments.receive(paymentId, {
              transferId: step,
              amount: usd(step.slice('receive '.length)),
            })
      return result.ok && result.changed
    },
  }
}

const incomingSteps = [
  ...(['receive 10', 'receive 90', 'complete', 'cancel'] as const),
  ...(['pass the expiry', 'sweep'] as const),
]

describe('an incoming payment in the webhooks of Rafiki', () => {
  test.each([
    [
      'without an amount',
      undefined,
      [
        'created',
        'created completed',
        'created expired',
        'created received',
        'created received completed',
        'created received expired',
        'created received received',
        'created received received completed',
        'created received received expired',
      ],
    ],
    [
      'of 100',
      '100',
      [
        'created',
        'created completed',
        'created expired',
        'created received',
        'created received completed',
        'created received expired',
        'created received received completed',
      ],
    ],
  ])('%s is final once, with all that arrived, in every order', async (_, amount, reachable) => {
    const found = await everyOrder(incomingSteps, () => incoming(amount))
    expect(orders(found)).toEqual(reachable)
    for (const each of found) {
      const { events, steps, webhooks } = each
      const end = events.find((type) => type === 'completed' || type === 'expired')
      const arrived = events.filter((type) => type === 'received').length
      const said = finals(each)
      const what = `${steps.join(', ')}: ${webhooks.map(({ type }) => type).join(', ')}`
      expect(
        said.map(({ type }) => type),
        what,
      ).toEqual(end !== undefined && arrived > 0 ? [`incoming_payment.${end}`] : [])
      // A receiver pays out what a final webhook says, so together they say what arrived.
      const paidOut = said.reduce((sum, webhook) => sum + valueIn(webhook, 'receivedAmount'), 0)
      const counted = arrivals(steps, amount)
      expect(each.unread, what).toEqual([])
      expect(each.cards, what).toEqual([])
      expect(paidOut, what).toBe(end === undefined ? 0 : counted)
    }
  })
})

/** What arrived, computed from the steps alone. */
function arrivals(steps: readonly string[], wanted: string | undefined): number {
  const counted = new Set<string>()
  let [total, over] = [0, false]
  for (const step of steps) {
    if (['complete', 'cancel', 'pass the expiry'].includes(step)) over = true
    if (!step.startsWith('receive ') || over || counted.has(step)) continue
    counted.add(step)
    total += Number(step.slice('receive '.length))
    over = wanted !== undefined && total >= Number(wanted)
  }
  return total
}

type OutgoingStep = 'begin' | 'send 300' | 'send all' | 'end' | 'fail' | 'cancel' | 'lapse'

async function outgoing(isCard: boolean): Promise<Life<OutgoingStep>> {
  const { world, client, token } = await payingClient()
  const id = idOfPayment(await pay(client, token, 1000))
  const { outgoingPayments, sweep } = { ...world.resources, sweep: () => world.resources.sweep() }
  let sent = '0'
  const totals = () => ({ sentAmount: usd(sent), deliveredAmount: usd(sent) })
  const steps = {
    begin: () => outgoingPayments.begin(id),
    'send 300': () => {
      sent = '300'
      return outgoingPayments.reportSent(id, totals())
    },
    'send all': () => {
      sent = '1000'
      return outgoingPayments.reportSent(id, totals())
    },
    end: () => outgoingPayments.reportSent(id, { ...totals(), final: true }),
    fail: () => outgoingPayments.fail(id, { ...totals(), reason: 'no route' }),
    cancel: () => outgoingPayments.cancel(id),
  }
  return {
    source: world.resources,
    write: rafiki(world, isCard),
    async take(step) {
      if (step === 'lapse') {
        world.clock.advance(2 * 86_400_000)
        return (await sweep()).lapsed > 0
      }
      const result = await steps[step]()
      return result.ok && result.changed
    },
  }
}

const outgoingSteps = ['begin', 'send 300', 'send all', 'end', 'fail', 'cancel', 'lapse'] as const

describe('an outgoing payment in the webhooks of Rafiki', () => {
  test.each([
    ['from an app', false],
    ['with a card', true],
  ])('%s is final once, with what was sent, in every order', async (_, isCard) => {
    const found = await everyOrder(outgoingSteps, () => outgoing(isCard))
    expect(orders(found)).toEqual([
      'created',
      'created begun',
      'created begun completed',
      'created begun failed',
      'created begun sent',
      'created begun sent completed',
      'created begun sent failed',
      'created failed',
    ])
    for (const each of found) {
      const { events, steps, webhooks } = each
      const end = events.find((type) => type === 'completed' || type === 'failed')
      const what = `${steps.join(', ')}: ${webhooks.map(({ type }) => type).join(', ')}`
      expect(
        webhooks.map(({ type }) => type),
        what,
      ).toEqual([
        'outgoing_payment.created',
        ...(end === undefined ? [] : [`outgoing_payment.${end}`]),
      ])
      const sum = finals(each).map((webhook) => valueIn(webhook, 'sentAmount'))
      expect(sum, what).toEqual(end === undefined ? [] : [sentBy(steps)])
      // The terminal that waits is told once: go on, or not.
      const told = events.includes('begun') ? 'funded' : end === 'failed' ? 'cancelled' : undefined
      expect(
        each.cards.map(({ type }) => type),
        what,
      ).toEqual(isCard && told !== undefined ? [`outgoing_payment.${told}`] : [])
      expect(each.unread, what).toEqual([])
    }
  })

  test('that was declined, and so never created, is sent in no webhook', async () => {
    const { world, client, token } = await payingClient({
      resources: {
        policy: { mayPay: async () => ({ ok: false, refusal: 'payment_not_allowed' }) },
      },
    })
    expect((await pay(client, token, 1000)).status).toBe(403)
    const [types, webhooks]: [string[], unknown[]] = [[], []]
    const write = rafiki(world, true)
    await world.resources.events.drain(async (event) => {
      types.push(event.type)
      webhooks.push(
        await write(event, 'account servicing entity'),
        await write(event, 'card service'),
      )
    })
    expect([types, webhooks]).toEqual([['outgoing-payment.declined'], [undefined, undefined]])
  })
})

/** What was sent, computed from the steps alone. */
function sentBy(steps: readonly string[]): number {
  let [sent, begun, over] = [0, false, false]
  for (const step of steps) {
    if (over) continue
    if (step === 'begin') begun = true
    else if (step === 'cancel' || step === 'lapse') over = !begun
    else if (begun) {
      if (step === 'send 300') sent = 300
      if (step === 'send all') sent = 1000
      over = step !== 'send 300'
    }
  }
  return sent
}
