import {
  type AccessItem,
  createAuthorizationServer,
  createResourceServer,
  memoryStore,
  type Store,
} from 'open-payments-server'
import type { RecordKind, Stored } from 'open-payments-server/adapter'
import { attempts, type Reply } from 'open-payments-server/attempts'
import { type ClientRequest, clientKeysOf, type TestClient, testClient } from '../client.js'
import { manualClock } from '../clock.js'
import { seededRandom } from '../random.js'

/** The records of each kind that the library wrote, one of each shape. */
export type Corpus = ReadonlyMap<RecordKind, readonly Stored[]>

let played: Promise<Corpus> | undefined

/** Resolves to records that the library's own servers write. They are played once, in memory. */
export function corpus(): Promise<Corpus> {
  played ??= play()
  return played
}

const origin = 'https://wallet.example'
const grantEndpoint = `${origin}/auth`
const alice = `${origin}/alice`
const bob = `${origin}/bob`
const dayMs = 86_400_000
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

async function play(): Promise<Corpus> {
  const { store, shapes } = recordingStore()
  const world = createServers(store)
  await incomingLives(world)
  await outgoingLives(world)
  await grantLives(world)
  await eventLives(world)
  await settlementLives(world, store)
  return new Map([...shapes].map(([kind, found]) => [kind, [...found.values()]]))
}

/** A store that keeps the first committed record of each shape. */
function recordingStore() {
  const memory = memoryStore()
  const shapes = new Map<RecordKind, Map<string, Stored>>()
  const store: Store = {
    ...memory,
    async commit(commit) {
      const committed = await memory.commit(commit)
      for (const { kind, next } of committed ? commit.changes : []) {
        const known = shapes.get(kind) ?? new Map<string, Stored>()
        shapes.set(kind, known)
        const shape = shapeOf(next)
        if (!known.has(shape)) known.set(shape, structuredClone(next))
      }
      return committed
    },
  }
  return { store, shapes }
}

/** Names the members of a value and their types: two records with the same text have the same columns. */
function shapeOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return typeof value
  const members = Object.entries(value).map(([key, each]) => `${key}:${shapeOf(each)}`)
  return Array.isArray(value) ? `[${members}]` : `{${members.sort()}}`
}

type World = ReturnType<typeof createServers>

function createServers(store: Store) {
  const clock = manualClock()
  const random = seededRandom('conformance')
  const shop = testClient({
    seed: 'shop',
    kid: 'shop',
    walletAddress: 'https://shop.example',
    clock,
  })
  const keyed = testClient({ seed: 'keyed', kid: 'keyed', clock })
  const shared = { store, clock, random }
  const auth = createAuthorizationServer({
    ...shared,
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    clientKeys: clientKeysOf(shop),
    subjects: { resolve: async () => ({ id: alice, format: 'uri' }) },
    policy: { continuation: { waitMs: 0 } },
  })
  const resources = createResourceServer({
    baseUrl: `${origin}/op`,
    grants: auth,
    walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: {
      price: async ({ debitAmount = usd('100') }) => ({
        ok: true,
        debitAmount,
        receiveAmount: debitAmount,
      }),
    },
  })
  let nonces = 0
  async function call(request: ClientRequest, client = shop): Promise<Body> {
    const handle = request.url.startsWith(grantEndpoint) ? auth.handle : resources.handle
    const { status, body } = await client.send(handle, { nonce: `nonce-${++nonces}`, ...request })
    if (status >= 300) throw new Error(`${request.method} ${request.url}: ${JSON.stringify(body)}`)
    return (body ?? {}) as Body
  }
  return { clock, auth, resources, shop, keyed, call }
}

// biome-ignore lint/suspicious/noExplicitAny: the bodies of the library's own responses
type Body = Record<string, any>

async function tokenFor(
  { auth, shop, call }: World,
  access: readonly AccessItem[],
): Promise<string> {
  const needsConsent = access.some(({ type }) => type === 'outgoing-payment')
  const body = {
    client: shop.client,
    access_token: { access },
    ...(needsConsent && { interact: { start: ['redirect'] } }),
  }
  const requested = await call({ method: 'POST', url: grantEndpoint, body })
  if (!needsConsent) return requested['access_token'].value
  await auth.interactions.approve(interactionOf(requested), owner)
  const { uri: url, access_token: token } = requested['continue']
  return (await call({ method: 'POST', url, token: token.value }))['access_token'].value
}

const owner = { resourceOwner: 'alice', walletAddresses: [alice] }

function interactionOf({ interact }: Body): string {
  return interact.redirect.slice(`${origin}/consent/`.length)
}

const incomingAccess: AccessItem = { type: 'incoming-payment', actions: ['create', 'complete'] }

/** Incoming payments with and without an amount and metadata, received, completed and expired. */
async function incomingLives(world: World): Promise<void> {
  const { resources, clock, call } = world
  const token = await tokenFor(world, [incomingAccess])
  const url = `${origin}/op/incoming-payments`
  const metadata = { description: 'Invoice 17', items: [{ count: 2 }] }
  const ids: string[] = []
  for (const more of [
    {},
    { metadata },
    { incomingAmount: usd('10') },
    { incomingAmount: usd('10'), metadata },
  ]) {
    for (let copies = 0; copies < 2; copies++) {
      const body = { walletAddress: bob, ...more }
      const { id } = await call({ method: 'POST', url, body, token })
      ids.push(resources.incomingPayments.idOf(id) ?? '')
    }
  }
  const { incomingPayments } = resources
  for (const more of [{}, { incomingAmount: usd('10'), metadata }]) {
    for (let copies = 0; copies < 2; copies++) {
      const idempotencyKey = `invoice ${ids.length}`
      const created = await incomingPayments.create({ walletAddress: bob, idempotencyKey, ...more })
      if (created.ok) ids.push(created.payment.paymentId)
    }
  }
  for (const [i, id] of ids.entries()) {
    if (i % 2 === 0)
      await resources.incomingPayments.receive(id, { transferId: id, amount: usd('4') })
  }
  await resources.incomingPayments.receive(ids[4] ?? '', { transferId: 'rest', amount: usd('6') })
  await resources.incomingPayments.complete(ids[0] ?? '')
  clock.advance(40 * dayMs)
  while ((await resources.sweep({})).more);
}

/** Quotes, and outgoing payments with and without limits, metadata and quotes, to each of their ends. */
async function outgoingLives(world: World): Promise<void> {
  const { resources, clock, call } = world
  const receiver = `${origin}/op/incoming-payments/1`
  const interval = `R/${new Date(clock.now()).toISOString()}/P1D`
  const actions = ['create', 'read'] as const
  const item = { type: 'outgoing-payment', actions, identifier: alice } as const
  const debitAmount = usd('100')
  const paying = resources.outgoingPayments
  const totals = { sentAmount: debitAmount, deliveredAmount: debitAmount }
  let keys = 0
  const quoting: AccessItem = { type: 'quote', actions: ['create', 'read'] }
  for (const limits of [
    undefined,
    { debitAmount: usd('9000') },
    { debitAmount: usd('9000'), interval },
  ]) {
    const token = await tokenFor(world, [
      { ...item, ...(limits !== undefined && { limits }) },
      quoting,
    ])
    const create = async (more: object) => {
      const url = `${origin}/op/outgoing-payments`
      const headers = [['idempotency-key', `"payment-${++keys}"`]] as const
      const body = { walletAddress: alice, ...more }
      const request = { method: 'POST', url, body, token } as const
      const { id } = await call('quoteId' in more ? request : { ...request, headers })
      return paying.idOf(id) ?? ''
    }
    const quote = { walletAddress: alice, receiver, method: 'ilp', debitAmount }
    const url = `${origin}/op/quotes`
    const { id: quoteId } = await call({ method: 'POST', url, body: quote, token })
    const direct = { incomingPayment: receiver, debitAmount }
    const metadata = { note: 'Thank you' }
    const [quoted, failed, cancelled, doubted, decided] = [
      await create({ quoteId }),
      await create({ ...direct, metadata }),
      await create(direct),
      await create(direct),
      await create(direct),
    ]
    await create(direct)
    for (const id of [quoted, failed, doubted, decided]) await paying.begin(id)
    await paying.reportSent(quoted, totals)
    await paying.fail(failed, { reason: 'the rail refused' })
    const inDoubt = { amount: usd('40'), since: clock.now(), reason: 'no reply' }
    for (const id of [doubted, decided]) {
      await paying.fail(id, { ...totals, reason: 'no reply', inDoubt })
    }
    await paying.decideDoubt(decided, { refunded: usd('40') })
    await paying.cancel(cancelled, {})
  }
  clock.advance(dayMs / 2)
  while ((await resources.sweep({})).more);
}

/** Grants of clients with a wallet address and with a key: denied, cancelled, rotated, revoked and removed. */
async function grantLives(world: World): Promise<void> {
  const { auth, clock, shop, keyed, call } = world
  const access = [{ type: 'outgoing-payment', actions: ['create'], identifier: alice }]
  const finish = { method: 'redirect', uri: 'https://shop.example/back', nonce: 'shop' }
  const interact = { start: ['redirect'], finish }
  const subject = { sub_ids: [{ format: 'uri', id: alice }] }
  const request = (more: object) =>
    call({ method: 'POST', url: grantEndpoint, body: { client: shop.client, interact, ...more } })

  const denied = await request({ access_token: { access } })
  await auth.interactions.deny(interactionOf(denied))
  const declined = await request({ access_token: { access } })
  await auth.interactions.deny(interactionOf(declined), { resourceOwner: 'alice' })
  const cancelled = await request({ access_token: { access } })
  const { uri, access_token: token } = cancelled['continue']
  await call({ method: 'DELETE', url: uri, token: token.value })
  await continued(world, await request({ subject }))
  await endToken(
    world,
    await continued(world, await request({ access_token: { access }, subject })),
  )
  const several = await request({
    access_token: [
      { label: 'pay', access },
      { label: 'receive', access: [incomingAccess] },
    ],
  })
  const { access_token: tokens } = await continued(world, several)
  for (const access_token of tokens) await endToken(world, { access_token })
  const body = { client: keyed.client, access_token: { access: [incomingAccess] } }
  await endToken(world, await call({ method: 'POST', url: grantEndpoint, body }, keyed), keyed)
  clock.advance(31 * dayMs)
  while ((await auth.sweep({})).more);
}

/** Approves a request, and continues it with the interaction reference. */
async function continued({ auth, call }: World, asked: Body): Promise<Body> {
  const approved = await auth.interactions.approve(interactionOf(asked), owner)
  const redirect = new URL((approved.ok && approved.redirect) || origin)
  const { uri: url, access_token: token } = asked['continue']
  const body = { interact_ref: redirect.searchParams.get('interact_ref') }
  return call({ method: 'POST', url, token: token.value, body })
}

/** Rotates a token and revokes its successor. */
async function endToken({ call }: World, issued: Body, client?: TestClient): Promise<void> {
  const { manage, value } = issued['access_token']
  const rotated = await call({ method: 'POST', url: manage, token: value }, client)
  const current = rotated['access_token']
  await call({ method: 'DELETE', url: current.manage, token: current.value }, client)
}

/** Events that are leased, postponed and set aside. */
async function eventLives({ auth, resources, clock }: World): Promise<void> {
  const fail = async () => {
    throw new Error('the host is not ready')
  }
  for (const { events } of [auth, resources]) {
    for (let attempts = 0; attempts < 2; attempts++) {
      await events.drain(fail, { limit: 1_000, attemptsMax: 2 })
      clock.advance(60_000)
    }
  }
}

/** Settlements that are proven, refused, in doubt, decided by word and by an operator. */
async function settlementLives({ clock }: World, store: Store): Promise<void> {
  const replies: readonly Reply[] = [
    { outcome: 'proven' },
    { outcome: 'proven', proof: 'receipt' },
    { outcome: 'refused', reason: 'the account is closed' },
    { outcome: 'unknown', reason: 'no reply' },
  ]
  for (const evidence of ['id', 'sum'] as const) {
    const driver = attempts({
      name: evidence,
      store,
      clock,
      random: seededRandom(evidence),
      evidence,
      notAfter: (now) => now + 60_000,
      send: async ({ request }) =>
        replies[Number(request.id)] ?? { outcome: 'unknown', reason: '' },
      ask: async ({ references }) => {
        if (evidence === 'sum') return { by: 'sum', received: 500n }
        const found = references.map((reference) => [reference, { found: 'absent' }] as const)
        return { by: 'id', attempts: Object.fromEntries(found) }
      },
    })
    const all = ['0', '1', '2', '3', '4'].flatMap((id) =>
      [{}, { otherSide: 'custodian' }].map((more, i) => ({
        id: `${id}${'.0'.repeat(i)}`,
        amount: 10n,
        ...more,
      })),
    )
    for (const request of all) await driver.settle(request)
    await driver.decide('4', 'never', 'ada')
    clock.advance(70_000)
    for (const request of all) await driver.settle(request)
  }
}
