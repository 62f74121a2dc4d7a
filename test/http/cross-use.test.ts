import { describe, expect, test } from 'vitest'
import type { HttpRequest, RecordChange } from '../../src/entry-adapter.js'
import {
  type AccessItem,
  createAuthorizationServer,
  createResourceServer,
  ilpPaymentMethods,
  type ServerOperation,
} from '../../src/index.js'
import { bankKey } from '../support/introspection.js'
import { type TestKey, testKey } from '../support/keys.js'
import { grantToPay, newQuote, priceList, shopReceiver } from '../support/spending.js'
import {
  type Ask,
  cell,
  createSurface,
  everything,
  lastSegment,
  type Surface,
  unsignedRequest,
} from '../support/surface.js'
import {
  type Answer,
  alice,
  answerOf,
  approvedGrant,
  bob,
  carol,
  origin,
  resourceServer,
} from '../support/world.js'

/** The status and code for a credential or signature that an operation does not accept; `served` if it accepts it. */
interface Row {
  readonly requestGrant: string
  readonly continueGrant: string
  readonly cancelGrant: string
  readonly rotateToken: string
  readonly revokeToken: string
  /** `{ active: false }` is `inactive`. */
  readonly introspectToken: string
  /** Every operation of the resource server. */
  readonly resources: string
  /** Operations that need no signature. */
  readonly open: 'served'
}

const columns: Readonly<Record<ServerOperation, keyof Row>> = {
  requestGrant: 'requestGrant',
  discover: 'open',
  continueGrant: 'continueGrant',
  cancelGrant: 'cancelGrant',
  rotateToken: 'rotateToken',
  revokeToken: 'revokeToken',
  introspectToken: 'introspectToken',
  createIncomingPayment: 'resources',
  listIncomingPayments: 'resources',
  getIncomingPayment: 'resources',
  completeIncomingPayment: 'resources',
  createQuote: 'resources',
  getQuote: 'resources',
  createOutgoingPayment: 'resources',
  listOutgoingPayments: 'resources',
  getOutgoingPayment: 'resources',
  getOutgoingPaymentGrant: 'resources',
  getWalletAddress: 'open',
  getWalletAddressKeys: 'open',
  preflight: 'open',
}

/** Tokens and texts that no operation accepts. A grant request does not read a token. */
const nowhere: Row = {
  requestGrant: 'served',
  continueGrant: '401 invalid_continuation',
  cancelGrant: '401 invalid_continuation',
  rotateToken: '404 invalid_rotation',
  revokeToken: '401 invalid_client',
  introspectToken: 'inactive',
  resources: '401 invalid_token',
  open: 'served',
}

/** Requests that are unsigned, or changed after signing. */
const badSignature: Row = {
  requestGrant: '401 invalid_client',
  continueGrant: '401 invalid_client',
  cancelGrant: '401 invalid_client',
  rotateToken: '401 invalid_client',
  revokeToken: '401 invalid_client',
  introspectToken: '400 invalid_resource_server',
  resources: '401 invalid_signature',
  open: 'served',
}

/** Requests that are sent twice: of those that are not served again, the first was. */
const repeatedBytes: Row = {
  requestGrant: '409 signature_used',
  continueGrant: '409 signature_used',
  cancelGrant: 'served',
  rotateToken: '409 signature_used',
  revokeToken: 'served',
  introspectToken: '409 signature_used',
  resources: '409 signature_used',
  open: 'served',
}

/** The operations that give their result again. */
const givenAgain: readonly ServerOperation[] = [
  'completeIncomingPayment',
  'createQuote',
  'createOutgoingPayment',
]

const foreignKey: Row = {
  ...badSignature,
  requestGrant: '400 invalid_client',
  continueGrant: '400 invalid_client',
  cancelGrant: '400 invalid_client',
  rotateToken: '400 invalid_client',
  revokeToken: '400 invalid_client',
}

/** Requests with a token or a grant that its client or the host has revoked. */
const revokedGrant: Row = {
  requestGrant: 'served',
  continueGrant: '404 invalid_continuation',
  cancelGrant: '404 invalid_request',
  rotateToken: '404 invalid_rotation',
  revokeToken: 'served',
  introspectToken: 'inactive',
  resources: '401 invalid_token',
  open: 'served',
}

type Stage = Awaited<ReturnType<typeof createStage>>

/** Creates all servers, a second pair on the same store, and credentials of all kinds. */
async function createStage() {
  const surface = await createSurface()
  const { world, shop, held } = surface
  const { accessToken: live } = await grantToPay(world, shop, everything)
  const { accessToken: replaced } = await grantToPay(world, shop, everything)
  await shop.rotate(replaced)
  const { accessToken: revoked } = await grantToPay(world, shop, everything)
  await shop.revoke(revoked)
  const waiting = await approvedGrant(world, shop)
  const other = await createOtherServers(surface)
  const mallory = world.client('mallory')
  const quoting = await grantToPay(world, mallory, everything)
  const theirs = await newQuote(mallory, quoting.token)
  return { surface, live, replaced, revoked, waiting, other, held, mallory, theirs: theirs.body.id }
}

/** Creates servers of another brand for the same accounts and on the same store, with records that the shop created. */
async function createOtherServers({ world, shop }: Awaited<ReturnType<typeof createSurface>>) {
  const { store, clock, clientKeys } = world
  const [grantEndpoint, baseUrl] = ['https://other.example/auth', 'https://other.example/op']
  const account = { url: bob, assetCode: 'USD', assetScale: 2 }
  const auth = createAuthorizationServer({
    store,
    clock,
    clientKeys,
    grantEndpoint,
    consentUrl: 'https://other.example/consent',
  })
  const resources = createResourceServer({
    store,
    clock,
    baseUrl,
    grants: auth,
    walletAddresses: { find: async () => account },
    paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.other', secret: new Uint8Array(32) }),
    pricing: priceList,
  })
  const post = async (url: string, body: object, token?: string) => {
    const handle = url.startsWith(grantEndpoint) ? auth.handle : resources.handle
    const content = { method: 'POST', url, body: JSON.stringify(body) }
    const request = shop.sign(token === undefined ? content : { ...content, token })
    return answerOf(await handle(request))
  }
  const actions = ['create', 'read', 'complete'] as const
  const access = [
    { type: 'incoming-payment', actions, identifier: bob },
    { type: 'quote', actions: ['create', 'read'] },
  ]
  const { body } = await post(grantEndpoint, { client: shop.client, access_token: { access } })
  const token: string = body.access_token.value
  const payee = { walletAddress: bob }
  const payment = await post(`${baseUrl}/incoming-payments`, payee, token)
  const asked = { ...payee, receiver: shopReceiver, method: 'ilp' }
  const quote = await post(`${baseUrl}/quotes`, asked, token)
  return { token, payment: payment.body.id as string, quote: quote.body.id as string }
}

/** Returns the same secret with the prefix of another class of token. */
const renamed = (token: string, as: string) => as + token.slice(4)
const secretOf = (token: string) => token.slice(token.indexOf('.') + 1)
const nameOf = (token: string) => token.slice(0, token.indexOf('.'))

interface Credential {
  readonly name: string
  /** `own` is the token that the operation expects. */
  readonly of: (stage: Stage, own: string) => string
  readonly row: Row
}

/** Secrets and ids that an operation could mistake for a token of its grant. */
const credentials: readonly Credential[] = [
  {
    name: 'a live access token of another grant',
    of: ({ live }) => live.value,
    row: { ...nowhere, introspectToken: 'served', resources: 'served' },
  },
  {
    name: 'an expired access token',
    of: ({ held }) => held.expired.value,
    row: nowhere,
  },
  {
    name: 'an access token that was replaced by a rotation',
    of: ({ replaced }) => replaced.value,
    row: nowhere,
  },
  {
    name: 'a revoked access token',
    of: ({ revoked }) => revoked.value,
    row: nowhere,
  },
  {
    name: 'a continuation token of another grant',
    of: ({ waiting }) => waiting.body.continue.access_token.value,
    row: nowhere,
  },
  {
    name: 'a continuation token with the prefix of an access token',
    of: ({ waiting }) => renamed(waiting.body.continue.access_token.value, 'opa_'),
    row: nowhere,
  },
  {
    name: 'an access token with the prefix of a continuation token',
    of: ({ live }) => renamed(live.value, 'opc_'),
    row: nowhere,
  },
  {
    name: 'the id of the right grant with the secret of an access token of another grant',
    of: ({ live }, own) => `${nameOf(own)}.${secretOf(live.value)}`,
    row: nowhere,
  },
  {
    name: 'the id of the right grant with the secret of a continuation token of another grant',
    of: ({ waiting }, own) =>
      `${nameOf(own)}.${secretOf(waiting.body.continue.access_token.value)}`,
    row: nowhere,
  },
  {
    name: 'the path of a management URI',
    of: ({ live }) => lastSegment(live.manage),
    row: nowhere,
  },
  {
    name: 'the path of a continuation URI',
    of: ({ waiting }) => lastSegment(waiting.body.continue.uri),
    row: nowhere,
  },
  { name: 'the id of an interaction', of: ({ waiting }) => waiting.id, row: nowhere },
  { name: 'an interaction reference', of: ({ waiting }) => waiting.interactRef, row: nowhere },
  { name: 'the id of a quote', of: ({ held }) => lastSegment(held.quote), row: nowhere },
  {
    name: 'an access token of another server on the same store',
    of: ({ other }) => other.token,
    row: nowhere,
  },
]

/** Keys that sign requests that are otherwise valid. */
const keys: readonly { name: string; of: (stage: Stage) => TestKey; row: Row }[] = [
  {
    name: 'the key of a resource server',
    of: () => bankKey,
    row: { ...foreignKey, introspectToken: 'served' },
  },
  { name: 'the key of another client', of: ({ mallory }) => mallory.key, row: foreignKey },
]

/** Returns the operation's request with the credential in place of its token. */
function askWith(stage: Stage, of: Credential['of'], operation: ServerOperation): Ask {
  const { ask } = stage.surface
  return ask(operation, of(stage, ask(operation).token ?? stage.held.token.value))
}

const expected = (row: Row, operation: ServerOperation): string => row[columns[operation]]

function found(answer: Answer): string {
  if (answer.status >= 300) return cell(answer)
  return answer.body?.active === false ? 'inactive' : 'served'
}

/** Sends a request to every operation and compares the result. A refused request may write only its nonce. */
async function checkEverywhere(
  { surface }: Stage,
  row: Row,
  send: (operation: ServerOperation) => Promise<Answer>,
): Promise<void> {
  const { routes, kept, world } = surface
  for (const { operation } of routes) {
    const before = kept.length
    const outcome = found(await send(operation))
    expect(`${operation}: ${outcome}`).toBe(`${operation}: ${expected(row, operation)}`)
    if (outcome !== 'served') expectNothingButNonces(kept.slice(before))
  }
  expect(world.errors).toEqual([])
}

function expectNothingButNonces(written: readonly (readonly RecordChange[])[]): void {
  expect(written.flat().filter(({ kind }) => kind !== 'replay')).toEqual([])
}

test('every operation of every server has a column', async () => {
  const { routes } = await createSurface()
  const served = routes.map(({ operation }) => operation)
  expect(Object.keys(columns).sort()).toEqual([...new Set(served)].sort())
})

/** Returns changes to signed parts of a request that keep its operation the same. */
function tampered({ body, url }: Ask): ((request: HttpRequest) => HttpRequest)[] {
  const mark = url.includes('?') ? '&' : '?'
  const target = (request: HttpRequest) => ({ ...request, url: `${request.url}${mark}x=1` })
  const content = (request: HttpRequest) => ({ ...request, body: Buffer.from(`${body} `) })
  return body === undefined ? [target] : [target, content]
}

/** Revokes the credential that the operation's request presents. */
async function revoke({ world, shop, held }: Surface, operation: ServerOperation): Promise<void> {
  const { rotating, revoking, continuing, cancelling, token } = held
  const { grants } = world.auth
  const grantIdOf = (id: string) => id.split('.')[0] ?? ''
  if (operation === 'continueGrant') await grants.revoke(grantIdOf(continuing.id))
  else if (operation === 'cancelGrant') await grants.revoke(grantIdOf(cancelling.id))
  else if (operation === 'rotateToken') await shop.revoke(rotating)
  else if (operation === 'revokeToken') await shop.revoke(revoking)
  else await shop.revoke(token)
}

describe.each(Object.keys(columns) as ServerOperation[])('%s', (operation) => {
  test('refuses a request with a bad signature, and writes nothing', async () => {
    const { ask, send, handle, kept, world } = await createSurface()
    const good = ask(operation)
    const { kid } = good.key ?? testKey('nobody')
    const before = kept.length
    const impostor = { ...world.client('mallory').key, kid }
    const answers = [
      answerOf(await handle(unsignedRequest(good))),
      await send(good, { key: impostor }),
    ]
    for (const bend of tampered(good)) answers.push(await send(good, { bend }))
    for (const answer of answers) expect(found(answer)).toBe(expected(badSignature, operation))
    const other = await send(good, { key: world.client('mallory').key })
    expect(found(other)).toBe(expected(foreignKey, operation))
    expect(kept.length).toBe(before)
    expect(world.errors).toEqual([])
  })

  test('serves a good request once', async () => {
    const { ask, sign, handle, kept } = await createSurface()
    const request = sign(ask(operation))
    const served = answerOf(await handle(request))
    expect([200, 201, 204]).toContain(served.status)
    const after = kept.length
    const repeated = answerOf(await handle(request))
    const isGivenAgain = givenAgain.includes(operation)
    expect(found(repeated)).toBe(isGivenAgain ? 'served' : expected(repeatedBytes, operation))
    expect(kept.length).toBe(after)
  })

  test('refuses a revoked credential', async () => {
    const surface = await createSurface()
    await revoke(surface, operation)
    const answer = await surface.send(surface.ask(operation))
    expect(found(answer)).toBe(expected(revokedGrant, operation))
    if (operation === 'introspectToken') expect(answer.body).toEqual({ active: false })
  })
})

describe('a credential where it does not belong', () => {
  test.each(credentials)('gets the response of its row: $name', async ({ of, row }) => {
    const stage = await createStage()
    const { send } = stage.surface
    await checkEverywhere(stage, row, (operation) => send(askWith(stage, of, operation)))
  })

  test.each(keys)('gets the response of its row: $name', async ({ of, row }) => {
    const stage = await createStage()
    const { ask, send } = stage.surface
    await checkEverywhere(stage, row, (operation) => send(ask(operation), { key: of(stage) }))
  })

  test('has no effect: valid requests succeed afterwards', async () => {
    const stage = await createStage()
    const { ask, send, routes } = stage.surface
    for (const { operation } of routes) {
      for (const { of } of credentials) {
        if (operation !== 'requestGrant') await send(askWith(stage, of, operation))
      }
      for (const { of } of keys) await send(ask(operation), { key: of(stage) })
      expect([200, 201, 204], operation).toContain((await send(ask(operation))).status)
    }
  })
})

/**
 * The access that each operation needs, and the response to a token for another wallet address. Access to quotes names
 * none.
 */
const needs = {
  createIncomingPayment: ['incoming-payment', 'create', '403 insufficient_access'],
  listIncomingPayments: ['incoming-payment', 'list', '403 insufficient_access'],
  getIncomingPayment: ['incoming-payment', 'read', '404 not_found'],
  completeIncomingPayment: ['incoming-payment', 'complete', '404 not_found'],
  createQuote: ['quote', 'create', undefined],
  getQuote: ['quote', 'read', undefined],
  createOutgoingPayment: ['outgoing-payment', 'create', '403 insufficient_access'],
  listOutgoingPayments: ['outgoing-payment', 'list', '403 insufficient_access'],
  getOutgoingPayment: ['outgoing-payment', 'read', '404 not_found'],
} as const

describe.each(Object.entries(needs))('%s', (name, [type, action, elsewhere]) => {
  async function answerWith(change: (item: AccessItem) => AccessItem): Promise<string> {
    const { world, shop, ask, send } = await createSurface()
    const access = everything.map((item) => (item.type === type ? change(item) : item))
    const { token } = await grantToPay(world, shop, access)
    return cell(await send(ask(name as keyof typeof needs, token)))
  }

  test('refuses a token that does not allow the action', async () => {
    const without = (actions: AccessItem['actions']) => actions.filter((each) => each !== action)
    const answer = await answerWith((item) => ({ ...item, actions: without(item.actions) }))
    expect(answer).toBe('403 insufficient_access')
  })

  test.skipIf(elsewhere === undefined)('refuses a token for another wallet address', async () => {
    expect(await answerWith((item) => ({ ...item, identifier: carol }))).toBe(elsewhere)
  })
})

/** Ids, and the operations that accept each of them in the path. */
const ids: readonly {
  name: string
  of: (stage: Stage) => string
  home: readonly ServerOperation[]
}[] = [
  {
    name: 'of a grant',
    of: ({ held }) => lastSegment(held.rotating.manage).split('.')[0] ?? '',
    home: [],
  },
  {
    name: 'of the management URI of another token',
    of: ({ live }) => lastSegment(live.manage),
    home: [],
  },
  {
    name: 'of the continuation URI of another grant',
    of: ({ waiting }) => lastSegment(waiting.body.continue.uri),
    home: [],
  },
  { name: 'of an interaction', of: ({ held }) => held.continuing.id, home: [] },
  {
    name: 'of an incoming payment',
    of: ({ held }) => lastSegment(held.incoming),
    home: ['getIncomingPayment', 'completeIncomingPayment'],
  },
  {
    name: 'of an outgoing payment',
    of: ({ held }) => lastSegment(held.outgoing),
    home: ['getOutgoingPayment'],
  },
  { name: 'of a quote', of: ({ held }) => lastSegment(held.quote), home: ['getQuote'] },
  { name: 'of another client’s quote', of: ({ theirs }) => lastSegment(theirs), home: [] },
  {
    name: 'of an incoming payment of another server on the same store',
    of: ({ other }) => lastSegment(other.payment),
    home: [],
  },
  {
    name: 'of a quote of another server on the same store',
    of: ({ other }) => lastSegment(other.quote),
    home: [],
  },
]

const unknownThere: Partial<Record<ServerOperation, string>> = {
  continueGrant: '401 invalid_continuation',
  cancelGrant: '401 invalid_continuation',
  rotateToken: '404 invalid_rotation',
  revokeToken: '401 invalid_client',
  getIncomingPayment: '404 not_found',
  completeIncomingPayment: '404 not_found',
  getQuote: '404 not_found',
  getOutgoingPayment: '404 not_found',
}

/** Returns the same request with another id. */
function withId(asked: Ask, path: string, id: string): Ask {
  const own = path.endsWith('{id}') ? lastSegment(asked.url) : asked.url.split('/').at(-2)
  return { ...asked, url: asked.url.replace(own ?? '', id) }
}

describe('an id in the path of another resource type', () => {
  test.each(ids)('is not found: the id $name', async ({ of, home }) => {
    const stage = await createStage()
    const { ask, send, routes, kept, world } = stage.surface
    const withIds = routes.filter(({ path }) => path.includes('{id}'))
    expect(withIds.map(({ operation }) => operation).sort()).toEqual(
      Object.keys(unknownThere).sort(),
    )
    for (const { operation, path } of withIds.filter(
      ({ operation }) => !home.includes(operation),
    )) {
      const before = kept.length
      const answer = await send(withId(ask(operation), path, of(stage)))
      expect(`${operation}: ${cell(answer)}`).toBe(`${operation}: ${unknownThere[operation]}`)
      expectNothingButNonces(kept.slice(before))
    }
    expect(world.errors).toEqual([])
  })
})

test('the URIs of one grant are not interchangeable, with any of its tokens', async () => {
  const { surface } = await createStage()
  const { shop, kept } = surface
  const { body } = await shop.request(everything.slice(2))
  const { access_token: access, continue: continuation } = body
  const [manage, uri] = [lastSegment(access.manage), lastSegment(continuation.uri)]
  const continuing = { ...continuation, uri: continuation.uri.replace(uri, manage) }
  const managing = { ...access, manage: access.manage.replace(manage, uri) }
  const before = kept.length
  const answers = [
    await shop.continue(continuing),
    await shop.cancel(continuing),
    await shop.rotate(managing),
    await shop.revoke(managing),
    await shop.continue({ ...continuation, access_token: access }),
    await shop.cancel({ ...continuation, access_token: access }),
    await shop.rotate({ ...access, value: continuation.access_token.value }),
    await shop.revoke({ ...access, value: continuation.access_token.value }),
  ]
  const { continueGrant, cancelGrant, rotateToken, revokeToken } = unknownThere
  const refused = [continueGrant, cancelGrant, rotateToken, revokeToken]
  expect(answers.map(cell)).toEqual([...refused, ...refused])
  expectNothingButNonces(kept.slice(before))
  expect((await shop.revoke(access)).status).toBe(204)
})

describe('a reference in the body to another resource type', () => {
  test('continues no grant', async () => {
    const stage = await createStage()
    const { ask, send, kept } = stage.surface
    const { waiting, held, live } = stage
    const before = kept.length
    const others = [
      waiting.interactRef,
      waiting.id,
      held.continuing.id,
      held.continuing.body.continue.access_token.value,
      secretOf(held.continuing.body.continue.access_token.value),
      held.continuing.body.interact.finish,
      live.value,
      lastSegment(held.quote),
    ]
    for (const interact_ref of others) {
      const body = JSON.stringify({ interact_ref })
      const answer = await send({ ...ask('continueGrant'), body })
      expect(`${interact_ref}: ${cell(answer)}`).toBe(`${interact_ref}: 404 invalid_continuation`)
    }
    expectNothingButNonces(kept.slice(before))
    expect((await send(ask('continueGrant'))).status).toBe(200)
  })

  test('is not accepted as a quote', async () => {
    const stage = await createStage()
    const { ask, send, kept } = stage.surface
    const { held, theirs, other } = stage
    const before = kept.length
    const others = [
      held.incoming,
      held.outgoing,
      theirs,
      other.quote,
      held.quote.replace(lastSegment(held.quote), lastSegment(held.incoming)),
      held.quote.replace(lastSegment(held.quote), lastSegment(other.quote)),
      held.quote.replace(resourceServer, origin),
      `${held.quote}/more`,
    ]
    for (const quoteId of others) {
      const body = JSON.stringify({ walletAddress: alice, quoteId })
      const answer = await send({ ...ask('createOutgoingPayment'), body })
      expect(`${quoteId}: ${cell(answer)}`).toBe(`${quoteId}: 404 invalid_quote`)
    }
    expectNothingButNonces(kept.slice(before))
  })

  test('is not accepted as a wallet address', async () => {
    const { ask, send, kept } = (await createStage()).surface
    const before = kept.length
    for (const [operation, walletAddress] of [
      ['createIncomingPayment', alice],
      ['createOutgoingPayment', bob],
    ] as const) {
      const asked = ask(operation)
      const body = JSON.stringify({ ...JSON.parse(asked.body ?? ''), walletAddress })
      expect(cell(await send({ ...asked, body }))).toBe('403 insufficient_access')
    }
    expectNothingButNonces(kept.slice(before))
  })
})
