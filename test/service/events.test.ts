import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  type Change,
  type DeliveredEvent,
  type EventSource,
  memoryStore,
  type Store,
} from '../../src/index.js'
import { startOfTests } from '../support/clock.js'
import { usd } from '../support/incoming-payments.js'
import {
  approvedGrant,
  bob,
  createWorld,
  incomingAccess,
  interactionId,
  issuedGrant,
  outgoingAccess,
  type TestClient,
  type World,
  withFinish,
  withoutFinish,
} from '../support/world.js'

const shop = 'https://shop.example'

/** Everything that is told since the last time. */
async function heard({ auth, resources }: World): Promise<readonly DeliveredEvent[]> {
  const events: DeliveredEvent[] = []
  const drain = (source: EventSource) => source.drain((event) => void events.push(event))
  await drain(auth.events)
  await drain(resources.events)
  return events
}

async function newPayment(client: TestClient, body: object = {}) {
  const granted = await client.request([incomingAccess])
  const { value } = granted.body.access_token
  const created = await client.createPayment(value, { walletAddress: bob, ...body })
  const id: string = created.body.id.slice(created.body.id.lastIndexOf('/') + 1)
  return { id, token: value as string, body: created.body }
}

function receive({ resources }: World, paymentId: string, value: string) {
  return resources.incomingPayments.receive({ paymentId, transferId: value, amount: usd(value) })
}

function grantIdOf(path: string): string {
  return interactionId(path).split('.')[0] ?? ''
}

interface Row {
  readonly cause: string
  /** What comes before; its events are not looked at. */
  readonly given: (world: World, client: TestClient) => Promise<Cause>
}

interface Cause {
  readonly run: () => Promise<unknown>
  /** Each event that has to follow, without its id; `version` of the record that it tells of. */
  readonly events: readonly object[]
  readonly record: string
  readonly version: number
}

function grantEvents(types: readonly string[], fields: object): readonly object[] {
  return types.map((type) => ({ type, at: startOfTests, client: shop, ...fields }))
}

function paymentEvents(
  types: readonly string[],
  incomingPaymentId: string,
  fields: { readonly received: string; readonly incomingAmount?: object; readonly at?: number },
): readonly object[] {
  const { received, ...rest } = fields
  const about = { incomingPaymentId, walletAddress: bob, client: shop }
  return types.map((type) => ({
    type,
    at: startOfTests,
    ...about,
    receivedAmount: usd(received),
    ...rest,
  }))
}

const alice = { resourceOwner: 'alice' }

const rows: readonly Row[] = [
  {
    cause: 'the resource owner approves: grant.approved',
    async given(world, client) {
      const { body } = await client.request([outgoingAccess], withFinish)
      const id = interactionId(body.interact.redirect)
      const grantId = grantIdOf(body.continue.uri)
      const approval = { ...alice, walletAddresses: [outgoingAccess.identifier ?? ''] }
      return {
        run: () => world.auth.interactions.approve(id, approval),
        events: grantEvents(['grant.approved'], { grantId, ...alice }),
        record: `${grantId}.grant`,
        version: 2,
      }
    },
  },
  {
    cause: 'the resource owner denies: grant.denied',
    async given(world, client) {
      const { body } = await client.request([outgoingAccess], withFinish)
      const grantId = grantIdOf(body.continue.uri)
      return {
        run: () => world.auth.interactions.deny(interactionId(body.interact.redirect)),
        events: grantEvents(['grant.denied'], { grantId }),
        record: `${grantId}.grant`,
        version: 2,
      }
    },
  },
  {
    cause: 'the client continues after consent: grant.issued',
    async given(world, client) {
      const { body, interactRef } = await approvedGrant(world, client)
      const grantId = grantIdOf(body.continue.uri)
      return {
        run: () => client.continue(body.continue, interactRef),
        events: grantEvents(['grant.issued'], { grantId, ...alice }),
        record: `${grantId}.grant`,
        version: 3,
      }
    },
  },
  {
    cause: 'the client rotates its token: grant.rotated',
    async given(world, client) {
      const { token, body } = await issuedGrant(world, client)
      const grantId = grantIdOf(body.continue.uri)
      return {
        run: () => client.rotate(token),
        events: grantEvents(['grant.rotated'], { grantId, ...alice }),
        record: `${grantId}.grant`,
        version: 4,
      }
    },
  },
  {
    cause: 'the client revokes its token: grant.revoked',
    async given(world, client) {
      const { token, body } = await issuedGrant(world, client)
      const grantId = grantIdOf(body.continue.uri)
      return {
        run: () => client.revoke(token),
        events: grantEvents(['grant.revoked'], { grantId, ...alice }),
        record: `${grantId}.grant`,
        version: 4,
      }
    },
  },
  {
    cause: 'the host revokes the grant: grant.revoked',
    async given(world, client) {
      const { body } = await issuedGrant(world, client)
      const grantId = grantIdOf(body.continue.uri)
      return {
        run: () => world.auth.grants.revoke(grantId),
        events: grantEvents(['grant.revoked'], { grantId, ...alice }),
        record: `${grantId}.grant`,
        version: 4,
      }
    },
  },
  {
    cause: 'the client takes its request back: grant.cancelled',
    async given(_world, client) {
      const { body } = await client.request([outgoingAccess], withoutFinish)
      const grantId = grantIdOf(body.continue.uri)
      return {
        run: () => client.cancel(body.continue),
        events: grantEvents(['grant.cancelled'], { grantId }),
        record: `${grantId}.grant`,
        version: 2,
      }
    },
  },
  {
    cause: 'funds arrive: incoming-payment.received',
    async given(world, client) {
      const { id } = await newPayment(client)
      return {
        run: () => receive(world, id, '7'),
        events: paymentEvents(['incoming-payment.received'], id, { received: '7' }),
        record: `${id}.incoming-payment`,
        version: 2,
      }
    },
  },
  {
    cause: 'the last of the funds arrive: incoming-payment.received and .completed',
    async given(world, client) {
      const { id } = await newPayment(client, { incomingAmount: usd('7') })
      const types = ['incoming-payment.received', 'incoming-payment.completed']
      return {
        run: () => receive(world, id, '9'),
        events: paymentEvents(types, id, { received: '9', incomingAmount: usd('7') }),
        record: `${id}.incoming-payment`,
        version: 2,
      }
    },
  },
  {
    cause: 'a payment has expired and a sweep finds it: incoming-payment.expired',
    async given(world, client) {
      const expiresAt = new Date(startOfTests + 1_000).toISOString()
      const { id } = await newPayment(client, { expiresAt })
      await receive(world, id, '3')
      return {
        async run() {
          world.clock.advance(1_001)
          await world.resources.incomingPayments.expireDue()
        },
        events: paymentEvents(['incoming-payment.expired'], id, {
          received: '3',
          at: startOfTests + 1_001,
        }),
        record: `${id}.incoming-payment`,
        version: 3,
      }
    },
  },
]

describe('what happens is told, with these fields and no others', () => {
  test.each(rows)('when $cause', async ({ given }) => {
    const world = createWorld()
    const { run, events, record, version } = await given(world, world.client())
    await heard(world)
    await run()
    const told = events.map((event, index) => ({
      ...event,
      id: `${record}.${version}.${index + 1}`,
    }))
    expect(await heard(world)).toEqual(told)
    expect(await heard(world)).toEqual([])
  })

  test('when a client asks for a grant that needs consent: grant.requested', async () => {
    const world = createWorld()
    const { body } = await world.client().request([outgoingAccess], withFinish)
    const grantId = grantIdOf(body.continue.uri)
    const event = { type: 'grant.requested', at: startOfTests, grantId, client: shop }
    expect(await heard(world)).toEqual([{ ...event, id: `${grantId}.grant.1.1` }])
  })

  test('when a client asks for a grant that does not: grant.requested and grant.issued', async () => {
    const world = createWorld()
    const { body } = await world.client('shop', { byKey: true }).request([incomingAccess])
    const grantId = grantIdOf(body.continue.uri)
    const client = expect.stringMatching(/^urn:ietf:params:oauth:jwk-thumbprint:sha-256:/)
    const event = { at: startOfTests, grantId, client }
    expect(await heard(world)).toEqual([
      { ...event, type: 'grant.requested', id: `${grantId}.grant.1.1` },
      { ...event, type: 'grant.issued', id: `${grantId}.grant.1.2` },
    ])
  })

  test('when a client creates a payment: incoming-payment.created, without its metadata', async () => {
    const world = createWorld()
    const body = { incomingAmount: usd('7'), metadata: { of: 'the shop' } }
    const { id } = await newPayment(world.client(), body)
    const events = paymentEvents(['incoming-payment.created'], id, {
      received: '0',
      incomingAmount: usd('7'),
    })
    const told = (await heard(world)).filter(({ type }) => type.startsWith('incoming-payment.'))
    expect(told).toEqual([{ ...events[0], id: `${id}.incoming-payment.1.1` }])
  })

  test('and by nothing when a request is refused, or repeats what has been done', async () => {
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

/** A store that keeps every change that was ever committed. */
function withHistory(store: Store) {
  const changes: Change[] = []
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

/** A life of grants and payments, with every secret that a client or a payer is told on the way. */
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
  await world.resources.incomingPayments.expireDue()
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

describe('no event record', () => {
  test('carries a token, a reference or a payment secret, nor the hash of one', async () => {
    const { store, changes } = withHistory(memoryStore())
    const world = createWorld({ store })
    const { secrets } = await live(world)
    await world.auth.events.drain(() => Promise.reject(new Error('no')), { attemptsMax: 1 })
    await heard(world)
    const events = changes.filter(({ kind }) => kind === 'event').map(({ next }) => next)
    const types = new Set(events.map((record) => (record as { event?: Event }).event?.type))
    expect(types.size).toBe(9)
    const text = JSON.stringify(events)
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(20)
      // A token is its class, the id of its grant, and what is secret about it.
      const bare = secret.slice(secret.indexOf('.') + 1)
      expect(text).not.toContain(bare)
      expect(text).not.toContain(createHash('sha256').update(bare).digest('base64url'))
    }
  })
})

describe('without recordsEvents', () => {
  test('there are no events, and everything else is as it is with them', async () => {
    const [told, silent] = [withHistory(memoryStore()), withHistory(memoryStore())]
    const off = { recordsEvents: false }
    const with_ = await live(createWorld({ store: told.store }))
    const world = createWorld({ store: silent.store, auth: off, resources: off })
    const without = await live(world)
    expect(without).toEqual(with_)
    const isNoEvent = ({ kind }: Change) => kind !== 'event'
    expect(silent.changes).toEqual(told.changes.filter(isNoEvent))
    expect(silent.changes.length).toBeLessThan(told.changes.length)
    expect(await heard(world)).toEqual([])
  })
})
