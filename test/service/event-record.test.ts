import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Commit, RecordChange } from '../../src/entry-adapter.js'
import { memoryStore, type ServerEvents, type Store } from '../../src/index.js'
import { type DomainEvent, eventRecords } from '../../src/service/event-record.js'
import { startOfTests } from '../support/clock.js'
import { usd } from '../support/incoming-payments.js'
import { paymentServices, type Written, withEventLog } from '../support/outbox.js'
import { runs } from '../support/runs.js'
import {
  approvedGrant,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  issuedGrant,
  outgoingAccess,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
  withoutFinish,
} from '../support/world.js'

const shop = 'https://shop.example'

/** Delivers and returns all events since the last call, without their server and subject, which are checked here. */
async function heard({ auth, resources }: World): Promise<readonly Heard[]> {
  const events: Heard[] = []
  const drain = (source: ServerEvents, from: string) =>
    source.drain(({ server, subject, ...event }) => {
      expect(server).toBe(from)
      // The id of an event begins with the record whose stream it is in: for a payment, after its namespace.
      const [record = '', kind] = event.id.split('.')
      expect([`${kind}/${record}`, `${kind}/${record.slice(8)}`]).toContain(subject)
      events.push(event as Heard)
    })
  await drain(auth.events, grantEndpoint)
  await drain(resources.events, resourceServer)
  return events
}

type Heard = DomainEvent & { readonly id: string }

async function newPayment(client: TestClient, body: object = {}) {
  const granted = await client.request([incomingAccess])
  const { value } = granted.body.access_token
  const created = await client.createPayment(value, { walletAddress: bob, ...body })
  const id: string = created.body.id.slice(created.body.id.lastIndexOf('/') + 1)
  return { id, token: value as string, body: created.body }
}

function receive({ resources }: World, paymentId: string, value: string) {
  return resources.incomingPayments.receive(paymentId, {
    transferId: `rail-${value}`,
    amount: usd(value),
  })
}

/** Matches the id of the event at a place among those of a record. That of a payment has the namespace in front. */
function idAt(record: string, place: number): string {
  const number = String(place).padStart(4, '0')
  const namespace = record.endsWith('.grant') ? '' : '[\\w-]{8}'
  return expect.stringMatching(
    `^${namespace}${record.replaceAll('.', '\\.')}\\.${number}\\.[\\w-]+\\.[0-9a-z]+$`,
  )
}

function grantIdOf({ continue: { uri } }: { readonly continue: { readonly uri: string } }): string {
  return interactionId(uri).split('.')[0] ?? ''
}

type Cause = readonly [
  /** The types of the events, and what causes them. */
  cause: string,
  /** The place of the first event among those of its record. */
  place: number,
  /**
   * Prepares the world, whose events are ignored. Returns the id of the record, the cause, members of the events, and
   * those of the event of an arrival alone.
   */
  given: (
    world: World,
    client: TestClient,
  ) => Promise<
    readonly [id: string, run: () => Promise<unknown>, members?: object, arrived?: object]
  >,
]

const alice = { resourceOwner: 'alice' }

const grantCauses: readonly Cause[] = [
  [
    'grant.approved when the resource owner approves the request',
    2,
    async ({ auth }, client) => {
      const { body } = await client.request([outgoingAccess], withFinish)
      const id = interactionId(body.interact.redirect)
      const approval = { ...alice, walletAddresses: [outgoingAccess.identifier ?? ''] }
      return [grantIdOf(body), () => auth.interactions.approve(id, approval), alice]
    },
  ],
  [
    'grant.denied when the resource owner denies the request',
    2,
    async ({ auth }, client) => {
      const { body } = await client.request([outgoingAccess], withFinish)
      const id = interactionId(body.interact.redirect)
      return [grantIdOf(body), () => auth.interactions.deny(id)]
    },
  ],
  [
    'grant.issued when the client continues after consent',
    3,
    async (world, client) => {
      const { body, interactRef } = await approvedGrant(world, client)
      return [grantIdOf(body), () => client.continue(body.continue, interactRef), alice]
    },
  ],
  [
    'grant.rotated when the client rotates its token',
    4,
    async (world, client) => {
      const { token, body } = await issuedGrant(world, client)
      return [grantIdOf(body), () => client.rotate(token), alice]
    },
  ],
  [
    'grant.revoked when the client revokes its token',
    4,
    async (world, client) => {
      const { token, body } = await issuedGrant(world, client)
      return [grantIdOf(body), () => client.revoke(token), alice]
    },
  ],
  [
    'grant.revoked when the host revokes the grant',
    4,
    async (world, client) => {
      const { body } = await issuedGrant(world, client)
      return [grantIdOf(body), () => world.auth.grants.revoke(grantIdOf(body)), alice]
    },
  ],
  [
    'grant.cancelled when the client cancels its request',
    2,
    async (_world, client) => {
      const { body } = await client.request([outgoingAccess], withoutFinish)
      return [grantIdOf(body), () => client.cancel(body.continue)]
    },
  ],
]

const paymentCauses: readonly Cause[] = [
  [
    'incoming-payment.received when funds arrive',
    2,
    async (world, client) => {
      const { id } = await newPayment(client)
      const arrived = { transferId: 'rail-7', amount: usd('7') }
      return [id, () => receive(world, id, '7'), { receivedAmount: usd('7') }, arrived]
    },
  ],
  [
    'incoming-payment.received and incoming-payment.completed when the last of the funds arrive',
    2,
    async (world, client) => {
      const { id } = await newPayment(client, { incomingAmount: usd('7') })
      const amounts = { receivedAmount: usd('9'), incomingAmount: usd('7') }
      return [
        id,
        () => receive(world, id, '9'),
        amounts,
        { transferId: 'rail-9', amount: usd('9') },
      ]
    },
  ],
  [
    'incoming-payment.expired when a sweep finds an expired payment',
    3,
    async (world, client) => {
      const expiresAt = new Date(startOfTests + 1_000).toISOString()
      const { id } = await newPayment(client, { expiresAt })
      await receive(world, id, '3')
      const sweep = async () => {
        world.clock.advance(1_001)
        await world.resources.sweep()
      }
      return [id, sweep, { receivedAmount: usd('3'), at: startOfTests + 1_001 }]
    },
  ],
]

describe('an event handler', () => {
  test.each([
    ...grantCauses.map((cause) => [...cause, 'grant'] as const),
    ...paymentCauses.map((cause) => [...cause, 'incoming-payment'] as const),
  ])('receives exactly %s', async (cause, place, given, kind) => {
    const world = createWorld()
    const [id, run, members, arrived] = await given(world, world.client())
    await heard(world)
    await run()
    const about = kind === 'grant' ? { grantId: id } : { incomingPaymentId: id, walletAddress: bob }
    const types = cause.split(' when ')[0]?.split(' and ') ?? []
    const told = types.map((type, index) => ({
      ...{ type, at: startOfTests, client: shop, ...about, ...members },
      ...(type === 'incoming-payment.received' && arrived),
      id: idAt(`${id}.${kind}`, place + index),
    }))
    expect(await heard(world)).toEqual(told)
    expect(await heard(world)).toEqual([])
  })

  test('receives grant.requested when a client requests a grant that needs consent', async () => {
    const world = createWorld()
    const { body } = await world.client().request([outgoingAccess], withFinish)
    const grantId = grantIdOf(body)
    const event = { type: 'grant.requested', at: startOfTests, grantId, client: shop }
    expect(await heard(world)).toEqual([{ ...event, id: idAt(`${grantId}.grant`, 1) }])
  })

  test('receives grant.requested and grant.issued when a client requests a grant that needs no consent', async () => {
    const world = createWorld()
    const { body } = await world.client('shop', { byKey: true }).request([incomingAccess])
    const grantId = grantIdOf(body)
    const client = expect.stringMatching(/^urn:ietf:params:oauth:jwk-thumbprint:sha-256:/)
    const event = { at: startOfTests, grantId, client }
    expect(await heard(world)).toEqual([
      { ...event, type: 'grant.requested', id: idAt(`${grantId}.grant`, 1) },
      { ...event, type: 'grant.issued', id: idAt(`${grantId}.grant`, 2) },
    ])
  })

  test('receives incoming-payment.created without the metadata when a client creates a payment', async () => {
    const world = createWorld()
    const body = { incomingAmount: usd('7'), metadata: { of: 'the shop' } }
    const { id } = await newPayment(world.client(), body)
    const about = { incomingPaymentId: id, walletAddress: bob, client: shop }
    const amounts = { receivedAmount: usd('0'), incomingAmount: usd('7') }
    const event = { type: 'incoming-payment.created', at: startOfTests, ...about, ...amounts }
    const told = (await heard(world)).filter(({ type }) => type.startsWith('incoming-payment.'))
    expect(told).toEqual([{ ...event, id: idAt(`${id}.incoming-payment`, 1) }])
  })

  test('receives nothing when a request is refused or repeats an earlier one', async () => {
    const world = createWorld()
    const client = world.client()
    const { token, continue: continuation, id, interactRef } = await issuedGrant(world, client)
    const payment = await newPayment(client, { incomingAmount: usd('7') })
    await receive(world, payment.id, '9')
    await client.rotate(token)
    await heard(world)
    await client.rotate(token)
    await client.continue(continuation, interactRef)
    await world.auth.interactions.deny(id)
    await receive(world, payment.id, '9')
    await receive(world, payment.id, '1')
    await client.createPayment(payment.token, { walletAddress: 'https://wallet.example/nobody' })
    await client.getPayment(payment.token, payment.body.id)
    expect(await heard(world)).toEqual([])
  })
})

/** Wraps a store and keeps every committed change. */
function withHistory(store: Store) {
  const changes: RecordChange[] = []
  const history: Store = {
    ...store,
    async commit(commit) {
      const committed = await store.commit(commit)
      if (committed) changes.push(...structuredClone(commit.changes))
      return committed
    },
  }
  return { store: history, changes }
}

/**
 * Runs grants and payments from start to end, and returns every secret that a client or payer
 * receives.
 */
async function live(world: World) {
  const client = world.client()
  const issued = await issuedGrant(world, client)
  const rotated = (await client.rotate(issued.token)).body.access_token
  const polled = await approvedGrant(world, client, withoutFinish)
  world.clock.advance(5_000)
  const answered = (await client.continue(polled.body.continue)).body
  const payment = await newPayment(client, { incomingAmount: usd('7') })
  await receive(world, payment.id, '5')
  await receive(world, payment.id, '4')
  await newPayment(client)
  world.clock.advance(40 * 86_400_000)
  await world.resources.sweep()
  await client.revoke(rotated)
  const [method] = payment.body.methods
  const secrets: string[] = [
    issued.token.value,
    issued.continue.access_token.value,
    issued.interactRef,
    rotated.value,
    answered.access_token.value,
    answered.continue.access_token.value,
    payment.token,
    method.sharedSecret,
  ]
  return { secrets, answers: [issued.body, rotated, answered, payment.body] }
}

describe('an event record', () => {
  test('never contains a token, a reference, a payment secret or a hash of one', async () => {
    const { store, changes } = withHistory(memoryStore())
    const world = createWorld({ store })
    const { secrets } = await live(world)
    await world.auth.events.drain(() => Promise.reject(new Error('no')), { attemptsMax: 1 })
    await heard(world)
    const events = changes.filter(({ kind }) => kind === 'event').map(({ next }) => next)
    const types = new Set(
      events.flatMap((record) => (record as { event?: Event }).event?.type ?? []),
    )
    expect(types.size).toBe(9)
    const text = JSON.stringify(events)
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(20)
      // A token consists of its class, the id of its grant and the secret part.
      const bare = secret.slice(secret.indexOf('.') + 1)
      expect(text).not.toContain(bare)
      expect(text).not.toContain(createHash('sha256').update(bare).digest('base64url'))
    }
  })
})

describe('without recordsEvents', () => {
  test('the servers record no events, and nothing else changes', async () => {
    const [told, silent] = [withHistory(memoryStore()), withHistory(memoryStore())]
    const off = { recordsEvents: false }
    const with_ = await live(createWorld({ store: told.store }))
    const world = createWorld({ store: silent.store, auth: off, resources: off })
    const without = await live(world)
    expect(without).toEqual(with_)
    const isNoEvent = ({ kind }: RecordChange) => kind !== 'event'
    const untold = told.changes.filter(isNoEvent).map((change) => {
      const { lastEvent: _lastEvent, ...next } = change.next
      return { ...change, next }
    })
    expect(silent.changes).toEqual(untold)
    expect(silent.changes.length).toBeLessThan(told.changes.length)
    expect(await heard(world)).toEqual([])
  })
})

/** A database with a standby that has not received the last commits when it takes over. */
function failingOver(commitsKept: number, commitsBefore: number) {
  const primary = withEventLog(memoryStore())
  const standby = withEventLog(memoryStore())
  let commits = 0
  let isLost = false
  const current = () => (isLost ? standby.store : primary.store)
  const store: Store = {
    load: (...query) => current().load(...query),
    list: (query) => current().list(query),
    due: (...query) => current().due(...query),
    remove: (...record) => current().remove(...record),
    async commit(commit: Commit) {
      if (isLost) return standby.store.commit(commit)
      commits += 1
      const committed = await primary.store.commit(commit)
      if (commits <= commitsKept) await standby.store.commit(commit)
      if (commits <= commitsBefore) return committed
      // The primary dies before it can respond, after consumers have read the commit.
      isLost = true
      throw new Error('the connection was lost')
    },
  }
  return { store, written: () => [...primary.written, ...standby.written] }
}

function clashes(written: readonly Written[]): readonly string[] {
  const seen = new Map<string, DomainEvent>()
  return written.flatMap(({ id, event }) => {
    const before = seen.get(id)
    seen.set(id, event)
    return before === undefined || isDeepStrictEqual(before, event) ? [] : [id]
  })
}

describe('the id of an event', () => {
  test('is not the id of an event with other content, after a failover that lost commits', async () => {
    const value = fc.constantFrom('1', '2', '3')
    const values = fc.array(value, { minLength: 1, maxLength: 8 })
    const lost = fc.nat({ max: 4 })
    await fc.assert(
      fc.asyncProperty(values, fc.nat({ max: 8 }), lost, async (amounts, before, lostCommits) => {
        const { store, written } = failingOver(Math.max(2, before - lostCommits), before)
        const setup = paymentServices({ store })
        const id = await setup.newPayment().catch(() => undefined)
        if (id === undefined) return
        for (const amount of amounts) await setup.receive(id, amount)
        expect(clashes(written())).toEqual([])
      }),
      { numRuns: runs(100) },
    )
  })

  test('is the same when a command is decided again on the record as it was', async () => {
    const { store, written } = failingOver(2, 2)
    const setup = paymentServices({ store })
    await setup.receive(await setup.newPayment(), '2')
    const ids = written().map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([4, 2])
  })

  test('orders the events of one commit, however many they are', () => {
    const next = { id: 'AbCdEfGhpayment', version: 12, commandId: 'command' }
    const event = { type: 'incoming-payment.received', at: 1 } as DomainEvent
    const events = Array.from({ length: 100 }, (_, at) => ({ ...event, at }))
    const key = { kind: 'incoming-payment', id: next.id } as const
    const ids = eventRecords(key, next, events, undefined).map(({ id }) => id)
    expect([...ids].sort()).toEqual(ids)
  })

  test('is at most 128 characters, as the store contract requires', () => {
    const record = `${'n'.repeat(8)}${'h'.repeat(43)}`
    const next = { id: record, version: 9_999_999_999, commandId: 'c'.repeat(22) }
    const event = { type: 'outgoing-payment.failed', at: 1 } as DomainEvent
    const key = { kind: 'outgoing-payment', id: record } as const
    const [recorded] = eventRecords(key, next, [event], '9999999998.mark')
    expect(recorded?.id).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  })
})
