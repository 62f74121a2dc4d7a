import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/index.js'
import { testKey } from '../support/keys.js'
import { contentDigest, type SignOptions, signedRequest, withHeader } from '../support/sign.js'
import {
  type Answer,
  alice,
  answerOf,
  approvedGrant,
  bob,
  createWorld,
  grantEndpoint,
  issuedGrant,
  origin,
  resourceServer,
  type TestClient,
  type World,
} from '../support/world.js'

/** What is needed to build a request, before it is signed and sent. */
interface Draft {
  readonly world: World
  readonly client: TestClient
  method: string
  url: string
  token: string | undefined
  body: string | undefined
  created: number
  nonce: string
  signedBy: string
  keyid: string
  /** Changes to the finished request. */
  readonly bend: ((request: HttpRequest) => HttpRequest)[]
}

/** One thing that can be wrong with a request, and how it is answered when nothing earlier is wrong. */
interface Fault {
  readonly name: string
  readonly apply: (draft: Draft) => void | Promise<void>
  readonly status: number
  readonly code: string
}

function send(draft: Draft): Promise<Answer> {
  const { world, client, bend } = draft
  const options: SignOptions = {
    method: draft.method,
    url: draft.url,
    key: { ...testKey(draft.signedBy), kid: draft.keyid },
    created: draft.created,
    nonce: draft.nonce,
    ...(draft.body === undefined ? {} : { body: draft.body }),
    ...(draft.token === undefined ? {} : { token: draft.token }),
  }
  expect(client.key.kid).toBe('shop-key')
  const request = bend.reduce((bent, change) => change(bent), signedRequest(options))
  return world.handle(request).then(answerOf)
}

/** Faults that are found before anything is looked up, in the order in which they are looked for. */
function staticFaults(codes: {
  request: string
  signature: string
  noRoute: string
  noMethod: string
  media: string
}): Fault[] {
  return [
    {
      name: 'the body is larger than 64 KiB',
      apply: ({ bend }) =>
        void bend.push((request) => ({ ...request, body: new Uint8Array(65 * 1024) })),
      status: 413,
      code: codes.request,
    },
    {
      name: 'there is nothing at that path',
      apply: (draft) => {
        draft.url += '/further/away'
      },
      status: 404,
      code: codes.noRoute,
    },
    {
      name: 'the method is not served there',
      apply: (draft) => {
        draft.method = 'PATCH'
      },
      status: 405,
      code: codes.noMethod,
    },
    {
      name: 'a header that must stand once stands twice',
      apply: ({ bend }) =>
        void bend.push((request) => withHeader(request, 'Host', 'wallet.example', 'evil.example')),
      status: 400,
      code: codes.request,
    },
    {
      name: 'the content is not JSON by its type',
      apply: ({ bend }) =>
        void bend.push((request) =>
          request.body.length === 0
            ? withHeader(request, 'Content-Encoding', 'gzip')
            : withHeader(request, 'Content-Type', 'text/plain'),
        ),
      status: 415,
      code: codes.media,
    },
    {
      name: 'there is no signature',
      apply: ({ bend }) => void bend.push((request) => withHeader(request, 'Signature')),
      status: 401,
      code: codes.signature,
    },
    {
      name: 'the signature is too old',
      apply: (draft) => {
        draft.created -= 301
      },
      status: 401,
      code: codes.signature,
    },
    {
      name: 'the digest is that of another body',
      apply: (draft) => {
        draft.bend.push((request) =>
          withHeader(request, 'Content-Digest', contentDigest(Buffer.from('other'), 'sha-512')),
        )
      },
      status: 401,
      code: codes.signature,
    },
  ]
}

function noToken(code: string): Fault {
  return {
    name: 'there is no token',
    apply: (draft) => {
      draft.token = undefined
    },
    status: 401,
    code,
  }
}

const wrongKey = (code: string): Fault => ({
  name: 'another key has signed',
  apply: (draft) => {
    draft.signedBy = 'mallory'
  },
  status: 401,
  code,
})

/** Sends a good request with the same nonce first. */
const usedNonce = (code: string, consumeNonce: (draft: Draft) => Promise<void>): Fault => ({
  name: 'the nonce has been used',
  apply: consumeNonce,
  status: 401,
  code,
})

async function check(
  base: () => Promise<Draft>,
  faults: readonly Fault[],
  chosen: readonly Fault[],
): Promise<void> {
  const draft = await base()
  // In order, so that the first fault of the list is applied first, whatever order it was chosen in.
  const applied = faults.filter((fault) => chosen.includes(fault))
  for (const fault of applied) await fault.apply(draft)
  const answer = await send(draft)
  const [first] = applied
  const context = applied.map(({ name }) => name).join('; ')
  expect({ status: answer.status, code: answer.body.error?.code }, context).toEqual(
    first === undefined
      ? { status: answer.status, code: undefined }
      : { status: first.status, code: first.code },
  )
  expect(answer.headers['cache-control']).toBe('no-store')
  if (answer.status === 401) {
    expect(answer.headers['www-authenticate']).toBe(`GNAP as_uri=${grantEndpoint}`)
  }
  if (answer.status === 405) expect(answer.headers['allow']).toBeDefined()
}

const auth = {
  request: 'invalid_request',
  signature: 'invalid_client',
  noRoute: 'invalid_request',
  noMethod: 'invalid_request',
  media: 'invalid_request',
}

const continuing: Fault[] = [
  ...staticFaults(auth),
  noToken('invalid_continuation'),
  {
    name: 'the token is that of another grant',
    apply: async (draft) => {
      const other = await approvedGrant(draft.world, draft.client)
      if (draft.token !== undefined) draft.token = other.body.continue.access_token.value
    },
    status: 401,
    code: 'invalid_continuation',
  },
  {
    name: 'keyid is not that of the grant',
    apply: (draft) => {
      draft.keyid = 'another-key'
    },
    status: 401,
    code: 'invalid_client',
  },
  {
    name: 'the client has withdrawn its key',
    apply: ({ world }) => world.clientKeys.publish('https://shop.example'),
    status: 400,
    code: 'invalid_client',
  },
  wrongKey('invalid_client'),
  usedNonce('invalid_client', async (draft) => {
    // Spent by a call that is refused, which costs the grant nothing.
    const spending = { ...draft, body: undefined, signedBy: 'shop', keyid: 'shop-key', bend: [] }
    await send({ ...spending, method: 'POST', created: nowSeconds(draft.world) })
  }),
  {
    name: 'the body is no continuation',
    apply: (draft) => {
      draft.body = '{"interact_ref":42}'
    },
    status: 400,
    code: 'invalid_request',
  },
  {
    name: 'the interaction reference is wrong',
    apply: (draft) => {
      if (draft.body !== '{"interact_ref":42}') draft.body = '{"interact_ref":"wrong"}'
    },
    status: 404,
    code: 'invalid_continuation',
  },
]

const rotating: Fault[] = [
  ...staticFaults(auth),
  noToken('invalid_client'),
  {
    name: 'the token is another token of the same client instance',
    apply: async (draft) => {
      const other = await issuedGrant(draft.world, draft.client)
      if (draft.token !== undefined) draft.token = other.token.value
    },
    status: 404,
    code: 'invalid_rotation',
  },
  wrongKey('invalid_client'),
  {
    name: 'the body asks for a key rotation',
    apply: (draft) => {
      draft.body = '{"key":{"jwk":{}}}'
    },
    status: 400,
    code: 'invalid_rotation',
  },
  {
    name: 'the grant has been revoked',
    apply: async ({ world, url }) => {
      await world.auth.grants.revoke(url.slice(url.lastIndexOf('/') + 1).split('.')[0] ?? '')
    },
    status: 400,
    code: 'invalid_rotation',
  },
]

const resource = {
  request: 'invalid_request',
  signature: 'invalid_signature',
  noRoute: 'not_found',
  noMethod: 'method_not_allowed',
  media: 'unsupported_media_type',
}

const inactiveToken: Fault = {
  name: 'the token is not active',
  apply: (draft) => {
    if (draft.token !== undefined) draft.token = `${draft.token.slice(0, -1)}A`
  },
  status: 401,
  code: 'invalid_token',
}

const creating: Fault[] = [
  ...staticFaults(resource),
  noToken('missing_token'),
  inactiveToken,
  wrongKey('invalid_signature'),
  usedNonce('invalid_signature', async (draft) => {
    const { world, client, nonce } = draft
    const token = await tokenFor(client, ['create'])
    await client.createPayment(token, { walletAddress: bob }, { nonce, created: nowSeconds(world) })
  }),
  {
    name: 'the token does not allow creation',
    apply: async (draft) => {
      const readOnly = await tokenFor(draft.client, ['read'])
      if (draft.token !== undefined && !draft.token.endsWith('A')) draft.token = readOnly
    },
    status: 403,
    code: 'insufficient_access',
  },
  {
    name: 'the body has an unknown member',
    apply: (draft) => {
      draft.body = edited(draft.body, { unknown: true })
    },
    status: 400,
    code: 'invalid_request',
  },
  {
    name: 'the wallet address is not that of the token',
    apply: (draft) => {
      draft.body = edited(draft.body, { walletAddress: alice })
    },
    status: 403,
    code: 'insufficient_access',
  },
]

/** What is wrong with a payment alone, for a token that is good for every wallet address. */
const creatingAnywhere: Fault[] = [
  {
    name: 'there is no such wallet address',
    apply: (draft) => {
      draft.body = edited(draft.body, { walletAddress: `${origin}/nobody` })
    },
    status: 404,
    code: 'unknown_wallet_address',
  },
  {
    name: 'the amount is in another asset',
    apply: (draft) => {
      const incomingAmount = { value: '1', assetCode: 'JPY', assetScale: 0 }
      draft.body = edited(draft.body, { incomingAmount })
    },
    status: 400,
    code: 'invalid_amount',
  },
  {
    name: 'expiresAt has passed',
    apply: (draft) => {
      draft.body = edited(draft.body, { expiresAt: '2020-01-01T00:00:00Z' })
    },
    status: 400,
    code: 'invalid_expiry',
  },
]

/** Spends the nonce on a payment that has nothing to do with the matter. */
const nonceOfCreation = usedNonce('invalid_signature', async ({ world, client, nonce }) => {
  const token = await tokenFor(client, ['create'])
  await client.createPayment(token, { walletAddress: bob }, { nonce, created: nowSeconds(world) })
})

const wrongRights: Fault = {
  name: 'the token does not allow it',
  apply: async (draft) => {
    const readOnly = await tokenFor(draft.client, ['read'])
    if (draft.token !== undefined && !draft.token.endsWith('A')) draft.token = readOnly
  },
  status: 403,
  code: 'insufficient_access',
}

const listing: Fault[] = [
  // What is appended to the URL of a list would be a part of its query.
  ...staticFaults(resource).filter(({ code }) => code !== resource.noRoute),
  noToken('missing_token'),
  inactiveToken,
  wrongKey('invalid_signature'),
  nonceOfCreation,
  wrongRights,
  {
    name: 'the query asks for no page',
    apply: (draft) => {
      draft.url += '&first=0'
    },
    status: 400,
    code: 'invalid_request',
  },
  {
    name: 'the wallet address is not that of the token',
    apply: (draft) => {
      draft.url = draft.url.replace(encodeURIComponent(bob), encodeURIComponent(alice))
    },
    status: 403,
    code: 'insufficient_access',
  },
]

const completing: Fault[] = [
  ...staticFaults(resource),
  noToken('missing_token'),
  inactiveToken,
  wrongKey('invalid_signature'),
  nonceOfCreation,
  wrongRights,
  {
    name: 'the body asks for something',
    apply: (draft) => {
      draft.body = '{"completed":false}'
    },
    status: 400,
    code: 'invalid_request',
  },
  {
    name: 'there is no such payment',
    apply: (draft) => {
      draft.url = draft.url.replace(/[^/]+\/complete/, 'unknown/complete')
    },
    status: 404,
    code: 'not_found',
  },
]

function edited(body: string | undefined, changes: object): string {
  return JSON.stringify({ ...JSON.parse(body ?? '{}'), ...changes })
}

function nowSeconds({ clock }: World): number {
  return Math.floor(clock.now() / 1000)
}

async function tokenFor(
  client: TestClient,
  actions: ('create' | 'read' | 'list' | 'complete')[],
  where: { readonly identifier?: string } = { identifier: bob },
): Promise<string> {
  const { body } = await client.request([{ type: 'incoming-payment', actions, ...where }])
  return body.access_token.value
}

function draftOf(
  world: World,
  client: TestClient,
  request: Pick<Draft, 'url' | 'token' | 'body'>,
): Draft {
  return {
    world,
    client,
    method: 'POST',
    ...request,
    created: nowSeconds(world),
    nonce: 'the-nonce',
    signedBy: 'shop',
    keyid: 'shop-key',
    bend: [],
  }
}

async function continuation(): Promise<Draft> {
  const world = createWorld()
  const client = world.client()
  const { body, interactRef } = await approvedGrant(world, client)
  return draftOf(world, client, {
    url: body.continue.uri,
    token: body.continue.access_token.value,
    body: JSON.stringify({ interact_ref: interactRef }),
  })
}

async function rotation(): Promise<Draft> {
  const world = createWorld()
  const client = world.client()
  const { token } = await issuedGrant(world, client)
  return draftOf(world, client, { url: token.manage, token: token.value, body: '{}' })
}

async function creation(where?: { readonly identifier?: string }): Promise<Draft> {
  const world = createWorld()
  const client = world.client()
  const token = await tokenFor(client, ['create'], where)
  const url = `${resourceServer}/incoming-payments`
  return draftOf(world, client, { url, token, body: JSON.stringify({ walletAddress: bob }) })
}

async function list(): Promise<Draft> {
  const world = createWorld()
  const client = world.client()
  const token = await tokenFor(client, ['list'])
  const url = `${resourceServer}/incoming-payments?wallet-address=${encodeURIComponent(bob)}`
  return { ...draftOf(world, client, { url, token, body: undefined }), method: 'GET' }
}

async function completion(): Promise<Draft> {
  const world = createWorld()
  const client = world.client()
  const token = await tokenFor(client, ['create', 'complete'])
  const { body } = await client.createPayment(token, { walletAddress: bob })
  return draftOf(world, client, { url: `${body.id}/complete`, token, body: '{}' })
}

const operations = [
  { operation: 'POST /continue/{id}', base: continuation, faults: continuing },
  { operation: 'POST /token/{id}', base: rotation, faults: rotating },
  { operation: 'POST /incoming-payments', base: () => creation(), faults: creating },
  {
    operation: 'POST /incoming-payments with a token for every wallet address',
    base: () => creation({}),
    faults: creatingAnywhere,
  },
  { operation: 'GET /incoming-payments', base: list, faults: listing },
  { operation: 'POST /incoming-payments/{id}/complete', base: completion, faults: completing },
]

describe.each(operations)('$operation', ({ base, faults }) => {
  test('succeeds when nothing is wrong', () => check(base, faults, []))

  test.each(faults)('is answered with $status $code when $name', (fault) =>
    check(base, faults, [fault]),
  )

  test('is answered for the first fault when there are several', () =>
    fc.assert(
      fc.asyncProperty(fc.subarray([...faults], { minLength: 2 }), (chosen) =>
        check(base, faults, chosen),
      ),
      { numRuns: 150 },
    ))
})
