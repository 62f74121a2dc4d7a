import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import {
  createAuthorizationServer,
  memoryStore,
  type RegisteredResourceServer,
} from '../../src/index.js'
import { bankId, bankKey } from '../support/introspection.js'
import { invalidInput } from '../support/invalid-input.js'
import { jwkOf, publishedKeys, testKey } from '../support/keys.js'
import { headerOf, type SignOptions, signedRequest, withHeader } from '../support/sign.js'
import {
  type Answer,
  answerOf,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  issuedGrant,
  outgoingAccess,
  type WorldOptions,
} from '../support/world.js'

const url = `${grantEndpoint}/introspect`
const bank: RegisteredResourceServer = { id: bankId, keys: [bankKey] }
const inactive = { active: false }
const invalid = { code: 'invalid_resource_server', description: expect.any(String) }

/** Creates a wallet whose resource server is another process, and sends requests as that server. */
function setUp({ auth, ...options }: WorldOptions = {}) {
  const world = createWorld({ ...options, auth: { resourceServers: [bank], ...auth } })
  let nonces = 0

  function sign(body: object, more: Partial<SignOptions> = {}): HttpRequest {
    return signedRequest({
      method: 'POST',
      url,
      key: bankKey,
      created: world.clock.now() / 1000,
      nonce: `nonce-${nonces++}`,
      body: JSON.stringify({ proof: 'httpsig', resource_server: bankId, ...body }),
      ...more,
    })
  }

  async function ask(body: object, more: Partial<SignOptions> = {}): Promise<Answer> {
    return answerOf(await world.auth.handle(sign(body, more)))
  }

  const client = world.client()

  async function tokenFor(access: readonly object[] = [incomingAccess], from = client) {
    const { body } = await from.request(access as never)
    return body.access_token
  }

  return { world, client, sign, ask, tokenFor }
}

describe('a resource server that introspects a token', () => {
  test('receives the rights, the key, the client and the issuer', async () => {
    const { world, client, ask } = setUp()
    const { token, id } = await issuedGrant(world, client)
    const answer = await ask({ access_token: token.value })
    expect(answer.status).toBe(200)
    expect(answer.headers).toEqual({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      vary: 'Authorization',
    })
    expect(answer.body).toEqual({
      active: true,
      iss: grantEndpoint,
      exp: world.clock.now() / 1000 + 600,
      access: [{ ...outgoingAccess, itemId: '1' }],
      key: { proof: 'httpsig', jwk: jwkOf(client.key) },
      grant: id.split('.')[0],
      client: { walletAddress: 'https://shop.example' },
    })
  })

  test('receives no client for a client that is identified by its key', async () => {
    const { world, ask } = setUp()
    const { body } = await world.client('shop', { byKey: true }).request([incomingAccess])
    const answer = await ask({ access_token: body.access_token.value })
    expect(answer.body).toMatchObject({ active: true, key: { jwk: jwkOf(testKey('shop')) } })
    expect(answer.body).not.toHaveProperty('client')
  })

  test('may omit the proof method, and name itself by its key', async () => {
    const { ask, tokenFor } = setUp()
    const resource_server = { key: { proof: 'httpsig', jwk: jwkOf(bankKey) } }
    const { value } = await tokenFor()
    const answer = await ask({ access_token: value, proof: undefined, resource_server })
    expect(answer.body).toMatchObject({ active: true })
  })

  test('may sign with either of its keys during a key rotation', async () => {
    const next = testKey('next')
    const { ask, tokenFor } = setUp({
      auth: { resourceServers: [{ id: bankId, keys: [bankKey, next] }] },
    })
    const { value } = await tokenFor()
    for (const key of [bankKey, next]) {
      expect((await ask({ access_token: value }, { key })).body.active).toBe(true)
    }
  })

  test('is authenticated by one valid signature, whatever other signatures exist', async () => {
    const next = testKey('next')
    const { world, sign, tokenFor } = setUp({
      auth: { resourceServers: [{ id: bankId, keys: [bankKey, next] }] },
    })
    const question = { access_token: (await tokenFor()).value }
    const bad = sign(question, { label: 'bad', key: { ...testKey('shop'), kid: bankKey.kid } })
    const good = sign(question, { label: 'good', key: next })
    const both = ['signature-input', 'signature'].reduce(
      (request, name) =>
        withHeader(request, name, `${headerOf(bad, name)}, ${headerOf(good, name)}`),
      good,
    )
    expect(answerOf(await world.auth.handle(both)).body.active).toBe(true)
  })

  test('writes nothing for tokens that are not active, whatever their form', async () => {
    const written: string[] = []
    const { world, ask } = setUp({
      store: {
        ...memoryStore(),
        async commit({ changes }) {
          written.push(...changes.map(({ kind }) => kind))
          return true
        },
      },
    })
    const { value } = await setUp().tokenFor()
    for (const access_token of [value, `${value.slice(0, -1)}x`, 'garbage', 'OS_at_.', '']) {
      expect((await ask({ access_token })).body).toEqual(inactive)
    }
    expect(written).toEqual([])
    expect(world.errors).toEqual([])
  })

  test('causes one load, and one commit only for a nonce', async () => {
    const store = memoryStore()
    const calls: string[] = []
    const { ask, tokenFor, world } = setUp({
      store: {
        ...store,
        load: (keys) => {
          calls.push(`load ${keys.map(({ kind }) => kind)}`)
          return store.load(keys)
        },
        commit: (commit) => {
          calls.push(`commit ${commit.changes.map(({ kind }) => kind)}`)
          return store.commit(commit)
        },
      },
    })
    const { value } = await tokenFor()
    calls.length = 0
    await ask({ access_token: value })
    expect(calls).toEqual(['load grant', 'commit replay'])
    calls.length = 0
    const parameters = [`keyid="${bankKey.kid}"`, `created=${world.clock.now() / 1000}`]
    await ask({ access_token: value }, { parameters })
    expect(calls).toEqual(['load grant'])
  })
})

describe('the response is inactive, without a reason, for', () => {
  test.each([
    ['a value that is not a token', () => 'x'],
    ['an empty value', () => ''],
    ['a token with a different last character', (value: string) => `${value.slice(0, -1)}A`],
    ['a token of another class', (value: string) => value.replace('opa_', 'opc_')],
    ['a token of another grant', (value: string) => value.replace(/_.{12}/, '_AAAAAAAAAAAA')],
  ])('%s', async (_, bend) => {
    const { ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    const answer = await ask({ access_token: bend(value) })
    expect([answer.status, answer.body]).toEqual([200, inactive])
  })

  test('a token of a revoked grant', async () => {
    const { world, ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    const { body } = await ask({ access_token: value })
    await world.auth.grants.revoke(body.grant)
    expect((await ask({ access_token: value })).body).toEqual(inactive)
  })

  test('a token of a client that no longer publishes its key, except for this key', async () => {
    const { world, client, ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    world.clientKeys.publish('https://shop.example', testKey('other'))
    const withdrawnKey = { proof: 'httpsig', jwk: jwkOf(client.key) }
    expect((await ask({ access_token: value })).body).toEqual({ active: false, withdrawnKey })
    expect(await world.auth.grants.revokeAll({ client: 'https://shop.example' })).toBe(1)
    expect((await ask({ access_token: value })).body).toEqual(inactive)
  })

  test('a key with another proof method', async () => {
    const { ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    expect((await ask({ access_token: value, proof: 'mtls' })).body).toEqual(inactive)
    expect((await ask({ access_token: value, proof: 'httpsig' })).body.active).toBe(true)
  })

  test.each([
    [true, []],
    [true, [{ type: 'incoming-payment', actions: ['read'] }]],
    [true, [{ type: 'incoming-payment', actions: ['create', 'read'], identifier: bob }]],
    [false, [{ type: 'incoming-payment', actions: ['create', 'list'] }]],
    [false, [{ type: 'incoming-payment', actions: ['read'], identifier: `${bob}/x` }]],
    [false, [{ type: 'quote', actions: ['create'] }]],
    [
      false,
      [
        { type: 'incoming-payment', actions: ['read'] },
        { type: 'quote', actions: ['create'] },
      ],
    ],
    [false, [{ type: 'incoming-payment', actions: ['read'], limits: {} }]],
    [false, ['incoming-payment']],
    [false, [{ type: 'account', actions: ['read'] }]],
  ])('access that the token lacks (active: %s): %j', async (active, access) => {
    const { ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    const { status, body } = await ask({ access_token: value, access })
    expect([status, body.active]).toEqual([200, active])
    if (!active) expect(body).toEqual(inactive)
  })
})

describe('a resource server with access types', () => {
  const only = { ...bank, accessTypes: ['incoming-payment' as const] }
  const quoting = { type: 'quote', actions: ['create'] }

  test('sees only items of these types, with their ids in the grant', async () => {
    const { ask, tokenFor } = setUp({ auth: { resourceServers: [only] } })
    const { value } = await tokenFor([quoting, incomingAccess])
    const { body } = await ask({ access_token: value })
    expect(body.access).toEqual([{ ...incomingAccess, itemId: '2' }])
    const access = [{ type: 'quote', actions: ['create'] }]
    expect((await ask({ access_token: value, access })).body).toEqual(inactive)
  })

  test('sees a token without such items as inactive', async () => {
    const { ask, tokenFor } = setUp({ auth: { resourceServers: [only] } })
    const { value } = await tokenFor([quoting])
    expect((await ask({ access_token: value })).body).toEqual(inactive)
  })
})

const clientKey = testKey('shop')

describe('a request is refused if it has', () => {
  test('a body that its signature does not cover', async () => {
    const { ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    const components = ['"@method"', '"@target-uri"']
    const answer = await ask({ access_token: value }, { components })
    const details = { problem: 'content-digest is not covered' }
    expect([answer.status, answer.body.error]).toEqual([400, { ...invalid, details }])
  })

  test('a key by value that is not registered, or does not sign the request', async () => {
    const { ask, tokenFor } = setUp({
      auth: { resourceServers: [bank, { id: 'other', keys: [testKey('other')] }] },
    })
    const { value } = await tokenFor()
    for (const named of [clientKey, testKey('other')]) {
      const resource_server = { key: { proof: 'httpsig', jwk: jwkOf(named) } }
      for (const key of [bankKey, { ...bankKey, kid: named.kid }]) {
        const answer = await ask({ access_token: value, resource_server }, { key })
        expect([answer.status, answer.body.error]).toEqual([400, invalid])
      }
    }
  })

  test('a nonce that was used before; without a nonce it may repeat', async () => {
    const { world, ask, tokenFor } = setUp()
    const { value } = await tokenFor()
    const created = world.clock.now() / 1000
    for (const body of [{ access_token: value }, { access_token: 17 }]) {
      const nonce = `used for ${JSON.stringify(body).length}`
      await ask(body, { nonce })
      const again = await ask({ access_token: value, access: [] }, { nonce })
      expect([again.status, again.body.error]).toEqual([400, invalid])
      expect(world.refusals.at(-1)).toMatchObject({ refusal: 'replayed' })
    }
    const parameters = [`keyid="${bankKey.kid}"`, `created=${created}`]
    for (let time = 0; time < 2; time++) {
      expect((await ask({ access_token: value }, { parameters })).body.active).toBe(true)
    }
  })
})

test('a refusal does not reveal whether an id is registered', async () => {
  const { ask } = setUp()
  const wrongKey = await ask({ access_token: 'x' }, { key: clientKey })
  const wrongId = await ask({ access_token: 'x', resource_server: 'nobody' })
  expect(wrongKey).toEqual(wrongId)
})

test('a report states why the signature of the resource server is invalid', async () => {
  const { world, ask } = setUp()
  await ask({ access_token: 'x' }, { key: clientKey })
  await ask({ access_token: 'x' }, { key: { ...clientKey, kid: bankKey.kid } })
  expect(world.refusals.map(({ reason }) => reason)).toEqual([
    'keyid does not match a key of the resource server',
    expect.stringContaining('no signature verifies with the key of the client for POST '),
  ])
})

test('a report names the resource server, and never contains a token', async () => {
  const { world, ask, tokenFor } = setUp()
  const { value } = await tokenFor()
  await ask({ access_token: value, access: value })
  expect(world.refusals).toEqual([
    expect.objectContaining({
      refusal: 'body_invalid',
      operation: 'introspectToken',
      keyid: bankKey.kid,
      client: bankId,
    }),
  ])
  await ask({ access_token: value, resource_server: value })
  await ask({ [value]: value, access_token: undefined })
  expect(world.refusals).toHaveLength(3)
  expect(JSON.stringify(world.refusals)).not.toContain(value.slice(-20))
})

test('an introspection stores neither the token nor its hash', async () => {
  const written: string[] = []
  const store = memoryStore()
  const { ask, tokenFor } = setUp({
    store: {
      ...store,
      commit(commit) {
        written.push(JSON.stringify(commit))
        return store.commit(commit)
      },
    },
  })
  const { value } = await tokenFor()
  written.length = 0
  await ask({ access_token: value })
  expect(written).toHaveLength(1)
  const secret = value.slice(value.lastIndexOf('.') + 1)
  const hash = createHash('sha256').update(secret).digest('base64url')
  for (const text of [secret, hash]) expect(written.join()).not.toContain(text)
})

describe('the introspection endpoint', () => {
  test('does not exist without the option resourceServers', async () => {
    const world = createWorld()
    const request = setUp().sign({ access_token: 'x' })
    expect((await world.auth.handle(request)).status).toBe(404)
    expect(world.auth.routes.map(({ operation }) => operation)).not.toContain('introspectToken')
  })

  test('has a route and a handler with the option resourceServers', async () => {
    const { world, sign, tokenFor } = setUp()
    expect(world.auth.routes).toContainEqual({
      operation: 'introspectToken',
      method: 'POST',
      path: '/introspect',
    })
    const { value } = await tokenFor()
    const answer = await world.auth.handlers.introspectToken?.(sign({ access_token: value }))
    expect(answer && answerOf(answer).body.active).toBe(true)
  })
})

describe('the option resourceServers', () => {
  const { x } = bankKey

  function create(resourceServers: unknown) {
    return createAuthorizationServer({
      grantEndpoint,
      consentUrl: 'https://wallet.example/consent',
      store: memoryStore(),
      clientKeys: publishedKeys(),
      resourceServers: resourceServers as never,
    })
  }

  const two = { id: 'two', keys: [testKey('two')] }

  test('accepts an empty list, several servers and an empty list of access types', () => {
    expect(() => create([])).not.toThrow()
    expect(() => create([bank, two, { ...bank, id: 'x', keys: [testKey('x')] }])).not.toThrow()
    expect(() => create([{ ...bank, keys: [jwkOf(bankKey)], accessTypes: [] }])).not.toThrow()
  })

  test.each<[string, string, unknown]>([
    ['an object instead of a list', 'resourceServers', bank],
    ['null', 'resourceServers', null],
    ['an id alone', 'resourceServers.0', [bankId]],
    ['null in the list', 'resourceServers.1', [bank, null]],
    ['a server without an id', 'resourceServers.0.id', [{ keys: [bankKey] }]],
    ['a server with an empty id', 'resourceServers.0.id', [{ ...bank, id: '' }]],
    ['a server with a long id', 'resourceServers.0.id', [{ ...bank, id: 'x'.repeat(257) }]],
    ['two servers with one id', 'resourceServers', [bank, { ...two, id: bank.id }]],
    ['a server without keys', 'resourceServers.0.keys', [{ id: bankId }]],
    ['a server with an empty list of keys', 'resourceServers.0.keys', [{ id: bankId, keys: [] }]],
    ['a key of the wrong type', 'resourceServers.0.keys.0', [{ ...bank, keys: ['key'] }]],
    ['a key without kid', 'resourceServers.0.keys.0', [{ ...bank, keys: [{ x }] }]],
    [
      'a key off the curve',
      'resourceServers.0.keys.0',
      [{ ...bank, keys: [{ kid: 'k', x: 'AA' }] }],
    ],
    ['a private key', 'resourceServers.0.keys.0', [{ ...bank, keys: [{ kid: 'k', x, d: x }] }]],
    [
      'a kid that two keys share',
      'resourceServers.0.keys',
      [{ ...bank, keys: [bankKey, { ...testKey('two'), kid: bankKey.kid }] }],
    ],
    ['a duplicate key', 'resourceServers.0.keys', [{ ...bank, keys: [bankKey, { kid: 'k', x }] }]],
    ['a key of another resource server', 'resourceServers', [bank, { id: 'two', keys: [bankKey] }]],
    [
      'an unknown access type',
      'resourceServers.0.accessTypes.0',
      [{ ...bank, accessTypes: ['account'] }],
    ],
    [
      'access types as a string',
      'resourceServers.0.accessTypes',
      [{ ...bank, accessTypes: 'quote' }],
    ],
    ['a misspelt member', 'resourceServers.0.accesTypes', [{ ...bank, accesTypes: [] }]],
  ])('rejects %s', (_, option, resourceServers) => {
    expect(() => create(resourceServers)).toThrow(invalidInput(option))
  })
})
