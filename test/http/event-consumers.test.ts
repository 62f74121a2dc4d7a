import { describe, expect, test } from 'vitest'
import {
  type Commit,
  type DeliveredEvent,
  memoryStore,
  type Store,
  storeBounds,
} from '../../src/index.js'
import { isIdOf } from '../../src/protocol/credential.js'
import { queueNamespace } from '../../src/service/mechanism/events.js'
import { commitSizeOf } from '../../src/testing/conformance/trial.js'
import { usd } from '../support/incoming-payments.js'
import {
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  resourceServer,
} from '../support/world.js'

const names = ['ledger', 'webhooks'] as const

async function live(eventConsumers: readonly string[] | undefined, store: Store = memoryStore()) {
  const option = eventConsumers === undefined ? {} : { eventConsumers }
  const world = createWorld({ store, auth: option, resources: option })
  await world.client().request([incomingAccess])
  const { incomingPayments } = world.resources
  const created = await incomingPayments.create({ walletAddress: bob, idempotencyKey: 'invoice' })
  if (!created.ok) throw new Error(created.reason)
  const paymentId = created.payment.id
  const funds = { transferId: 'transfer 1', amount: usd('5') }
  await incomingPayments.receive(paymentId, funds)
  return { ...world, paymentId }
}

type World = Awaited<ReturnType<typeof live>>

async function heardBy({ resources }: World, name: string, fails = false) {
  const heard: DeliveredEvent[] = []
  const result = await resources.events.consumer(name).drain((event) => {
    if (fails) throw new Error('the consumer is not ready')
    heard.push(event)
  })
  return { ...result, heard, types: heard.map(({ type }) => type) }
}

describe('an event', () => {
  test('names the server that recorded it', async () => {
    const { auth, resources } = await live(undefined)
    const servers: string[] = []
    for (const { events } of [auth, resources]) {
      await events.drain(({ server }) => void servers.push(server))
    }
    expect([...new Set(servers)]).toEqual([grantEndpoint, resourceServer])
  })

  test('names its server also while it is set aside', async () => {
    const { resources } = await live(undefined)
    const fail = () => Promise.reject(new Error('no'))
    await resources.events.drain(fail, { attemptsMax: 1 })
    const [aside] = await resources.events.listSetAside()
    expect(aside?.event.server).toBe(resourceServer)
  })
})

describe('named consumers', () => {
  const all = ['incoming-payment.created', 'incoming-payment.received']

  test('each get every event in order, whatever the others do', async () => {
    const world = await live(names)
    expect(await heardBy(world, 'ledger')).toMatchObject({ types: all })
    expect(await heardBy(world, 'ledger')).toMatchObject({ types: [] })
    expect(await heardBy(world, 'webhooks', true)).toMatchObject({ delivered: 0, failed: 1 })
    world.clock.advance(3_600_000)
    expect(await heardBy(world, 'webhooks')).toMatchObject({ types: all })
  })

  test('get events with different ids, so that two may share a table of handled ids', async () => {
    const world = await live(names)
    const [one, two] = [await heardBy(world, 'ledger'), await heardBy(world, 'webhooks')]
    const ids = [...one.heard, ...two.heard].map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)
    const strip = ({ id: _id, ...event }: DeliveredEvent) => event
    expect(one.heard.map(strip)).toEqual(two.heard.map(strip))
  })

  test('set events aside, retry and discard them each on their own', async () => {
    const world = await live(names)
    const { events } = world.resources
    const ledger = events.consumer('ledger')
    const fail = () => Promise.reject(new Error('no'))
    await ledger.drain(fail, { attemptsMax: 1 })
    const [aside] = await ledger.listSetAside()
    expect(await events.consumer('webhooks').listSetAside()).toEqual([])
    expect(await events.listSetAside()).toEqual([])
    const id = aside?.event.id ?? ''
    expect(await events.consumer('webhooks').retry(id)).toBe(false)
    expect(await ledger.retry(id)).toBe(true)
    expect(await heardBy(world, 'ledger')).toMatchObject({ types: all })
  })

  test('leave nothing for the consumer without a name, except what it had before', async () => {
    const store = memoryStore()
    const before = await live(undefined, store)
    await before.resources.incomingPayments.complete(before.paymentId)
    const world = createWorld({ store, resources: { eventConsumers: names } })
    await world.resources.incomingPayments.create({ walletAddress: bob, idempotencyKey: 'second' })
    const types: string[] = []
    await world.resources.events.drain(({ type }) => void types.push(type))
    expect(types).toEqual([...all, 'incoming-payment.completed'])
  })

  test('that are removed keep what they have, and get nothing new', async () => {
    const store = memoryStore()
    await live(names, store)
    const later = createWorld({ store, resources: { eventConsumers: ['ledger'] } })
    const { events, incomingPayments } = later.resources
    await incomingPayments.create({ walletAddress: bob, idempotencyKey: 'second' })
    expect(() => events.consumer('webhooks')).toThrow('eventConsumers')
    const types: string[] = []
    const removed = events.consumer('webhooks', { removed: true })
    await removed.drain(({ type }) => void types.push(type))
    expect(types).toEqual(all)
  })

  test.each<[{ name: string; options?: object }, string]>([
    [{ name: 'ledgr' }, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'ledger', options: { remove: true } }, 'options.remove'],
  ])('must be listed: %j', async ({ name, options }, argument) => {
    const { resources } = await live(names)
    const call = () => resources.events.consumer(name, options)
    expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', argument }))
  })

  test.each([
    [[]],
    [['ledger', 'ledger']],
    [['a b']],
    [['']],
    ['ledger'],
    [Array.from({ length: 9 }, (_, number) => `consumer-${number}`)],
  ])('cannot be configured as %j', (eventConsumers) => {
    const option = { eventConsumers } as never
    const error = expect.objectContaining({ option: 'eventConsumers' })
    expect(() => createWorld({ auth: option })).toThrow(error)
    expect(() => createWorld({ resources: option })).toThrow(error)
  })

  test('keep each commit within the bounds of the store, for any number of them', async () => {
    for (const count of [1, 2, 3, 8]) {
      const memory = memoryStore()
      const commits: Commit[] = []
      const store: Store = {
        ...memory,
        async commit(commit) {
          commits.push(commit)
          await new Promise((resolve) => setImmediate(resolve))
          return memory.commit(commit)
        },
      }
      const consumers = Array.from({ length: count }, (_, number) => `consumer-${number}`)
      const { resources, paymentId } = await live(consumers, store)
      const transfers = Array.from({ length: 60 }, (_, number) => String(number))
      await Promise.all(
        transfers.map((transferId) =>
          resources.incomingPayments.receive(paymentId, { transferId, amount: usd('1') }),
        ),
      )
      const sizes = commits.map(commitSizeOf)
      expect(Math.max(...sizes)).toBeLessThanOrEqual(storeBounds.commitSize)
      expect(Math.max(...sizes)).toBeGreaterThan(storeBounds.commitSize / 2)
    }
  })
})

describe('the namespace of a named consumer', () => {
  test('is the beginning of ids, and different for each server and name', () => {
    const servers = Array.from({ length: 100 }, (_, number) => `AbC-_${100 + number}`)
    const consumers = Array.from({ length: 100 }, (_, number) => `consumer-${number}`)
    const all = servers.flatMap((server) => consumers.map((name) => queueNamespace(server, name)))
    expect(new Set(all).size).toBe(10_000)
    for (const namespace of all) {
      expect(namespace).toHaveLength(8)
      expect(isIdOf(namespace, `${namespace}x`)).toBe(true)
    }
  })
})
