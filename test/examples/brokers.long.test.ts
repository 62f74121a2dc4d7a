import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { DeliveredEvent, EventHandler } from '../../src/index.js'
import { usd } from '../support/spending.js'
import { bob, createWorld } from '../support/world.js'

/** Where `.ci/brokers` has installed the examples, and the URLs of the brokers. */
const { TEST_BROKERS, TEST_RABBITMQ_URL, TEST_NATS_URL, TEST_DATABASE_URL } = process.env

/** The interface of examples/brokers/connections.ts, which is compiled on its own. */
interface Broker {
  readonly publish: EventHandler
  bind(): Promise<unknown>
  received(): Promise<readonly Published[]>
  close(): Promise<unknown>
}

type Published = Pick<DeliveredEvent, 'id' | 'subject'>

/**
 * Delivers the events of ten payments to a handler. Each third call ends as if the process had, between publishing and
 * the acknowledgement: the event is delivered again.
 */
async function deliver(publish: EventHandler) {
  const { resources, clock } = createWorld()
  const { incomingPayments, events } = resources
  for (let i = 0; i < 10; i++) {
    const created = await incomingPayments.create({ walletAddress: bob, idempotencyKey: `${i}` })
    if (!created.ok) throw new Error(created.reason)
    const { paymentId } = created.payment
    for (const value of [10, 20, 30]) {
      await incomingPayments.receive(paymentId, { transferId: `${i} ${value}`, amount: usd(value) })
    }
    await incomingPayments.complete(paymentId)
  }
  const sent: Published[] = []
  let calls = 0
  const handler: EventHandler = async (event, delivery) => {
    if (!sent.some(({ id }) => id === event.id)) sent.push(event)
    await publish(event, delivery)
    calls += 1
    if (calls % 3 === 0) throw new Error('the process ended')
  }
  while ((await events.backlog()).waiting > 0) {
    await events.drain(handler)
    clock.advance(3_600_000)
  }
  expect(sent).toHaveLength(50)
  expect(calls).toBeGreaterThan(60)
  return { sent, calls }
}

/** Returns the ids of each subject in their order, with repeats that follow each other only once. */
function bySubject(events: readonly Published[]): Readonly<Record<string, readonly string[]>> {
  const found: Record<string, string[]> = {}
  for (const { id, subject } of events) {
    const ids = found[subject] ?? []
    found[subject] = ids
    if (ids.at(-1) !== id) ids.push(id)
  }
  return found
}

describe.skipIf(TEST_BROKERS === undefined)(
  'events in a broker, each third published again because the process ended before it was acknowledged',
  () => {
    let broker: Broker
    afterEach(() => broker?.close())

    async function open(name: string, url: string | undefined): Promise<Broker> {
      const connections = await import(join(`${TEST_BROKERS}`, 'connections.ts'))
      return connections[name](url)
    }

    test('are all in RabbitMQ, in the order of their record, and some twice', async () => {
      broker = await open('openRabbitMq', TEST_RABBITMQ_URL)
      const delivery = { attempt: 1, signal: new AbortController().signal }
      const unroutable = broker.publish({ id: '1', subject: 'quote/1' } as DeliveredEvent, delivery)
      await expect(unroutable).rejects.toThrow('no queue is bound')
      await broker.bind()
      const { sent, calls } = await deliver(broker.publish)
      const received = await broker.received()
      expect(received).toHaveLength(calls)
      expect(bySubject(received)).toEqual(bySubject(sent))
    })

    test('are once in NATS JetStream, in the order of their record', async () => {
      broker = await open('openNats', TEST_NATS_URL)
      await broker.bind()
      const { sent } = await deliver(broker.publish)
      const received = await broker.received()
      expect(received).toHaveLength(sent.length)
      expect(bySubject(received)).toEqual(bySubject(sent))
    })

    test('are one job each in pg-boss', async () => {
      broker = await open('openPgBoss', TEST_DATABASE_URL)
      await broker.bind()
      const { sent } = await deliver(broker.publish)
      const ids = (events: readonly Published[]) => events.map(({ id }) => id).toSorted()
      expect(ids(await broker.received())).toEqual(ids(sent))
    })
  },
)
