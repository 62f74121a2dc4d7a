import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, test, vi } from 'vitest'
import { type DeliveredEvent, memoryStore, walletAddressSubjects } from '../../src/index.js'
import { deriveSecret } from '../../src/protocol/credential.js'
import { bankKey, privateJwkOf } from '../support/introspection.js'
import { usd } from '../support/spending.js'
import { type Ask, createSurface, lastSegment, type Surface } from '../support/surface.js'
import {
  type Answer,
  alice,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  issuedGrant,
  outgoingAccess,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

/** The key of the host, from which payment details are derived. */
const hostKey = Buffer.alloc(32, 7)

/** All servers, and a record of everything that their host could store or log. */
async function createWatchedSurface() {
  const memory = memoryStore()
  const written: string[] = []
  const spans: unknown[] = []
  const surface = await createSurface({
    store: {
      ...memory,
      commit(commit) {
        written.push(JSON.stringify(commit))
        return memory.commit(commit)
      },
    },
    auth: { subjects: walletAddressSubjects },
    hooks: {
      telemetry: {
        observe(activity, work) {
          spans.push(activity)
          return work((outcome) => void spans.push(outcome))
        },
      },
    },
  })
  const { auth, resources } = surface.world
  /** Delivers all due events, and returns what became visible. */
  async function drain(handle: (event: DeliveredEvent) => void): Promise<readonly unknown[]> {
    const failures: unknown[] = []
    const onFailure = (failure: unknown) => void failures.push(failure)
    for (const source of [auth.events, resources.events]) {
      while ((await source.drain(handle, { onFailure })).delivered > 0);
    }
    return failures
  }
  return { surface, written, spans, drain }
}

/** Collects secrets, in every encoding in which they could be stored. */
function createSecrets() {
  const names = new Map<string, string>()
  const urls: string[] = []

  function keep(name: string, text: string, bytes = Buffer.from(text, 'base64url')): void {
    names.set(text, name)
    for (const form of ['hex', 'base64', 'base64url'] as const)
      names.set(bytes.toString(form), name)
  }

  /** Keeps a token as presented, and its secret without the id of the grant. */
  function keepToken(name: string, token: string): void {
    names.set(token, name)
    keep(name, token.slice(token.lastIndexOf('.') + 1))
  }

  /** Keeps the secrets of a response, and returns its body. */
  function told({ body }: Answer): Answer['body'] {
    const { access_token, continue: continuation, interact, methods = [], id } = body
    if (access_token) keepToken('an access token', access_token.value)
    if (continuation) keepToken('a continuation token', continuation.access_token.value)
    for (const { sharedSecret } of methods) keep('a shared secret', sharedSecret)
    urls.push(access_token?.manage, continuation?.uri, interact?.redirect, id)
    return body
  }

  return { names, urls, keep, keepToken, told }
}

type Secrets = ReturnType<typeof createSecrets>

/** Runs a grant with a redirect and a subject, approves it twice, and rotates its token twice. */
async function receiveToken(world: World, shop: TestClient, { keep, told }: Secrets) {
  const asked = told(
    await shop.post(grantEndpoint, {
      client: shop.client,
      access_token: { access: [outgoingAccess] },
      subject: { sub_ids: [{ id: alice, format: 'uri' }] },
      interact: withFinish,
    }),
  )
  const refs = new Set<string>()
  for (let clicks = 0; clicks < 2; clicks++) {
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    const id = interactionId(asked.interact.redirect)
    const approved = await world.auth.interactions.approve(id, approval)
    const { searchParams } = new URL((approved.ok && approved.redirect) || '')
    refs.add(searchParams.get('interact_ref') ?? '')
  }
  expect(refs.size).toBe(1)
  const [ref = ''] = refs
  keep('an interaction reference', ref)
  const issued = told(await shop.continue(asked.continue, ref))
  expect(told(await shop.continue(asked.continue, ref))).toEqual(issued)
  const rotated = told(await shop.rotate(issued.access_token))
  expect(told(await shop.rotate(issued.access_token))).toEqual(rotated)
  const live = told(await shop.rotate(rotated.access_token)).access_token
  return { asked, ref, old: issued.access_token, live }
}

/** The host reports what arrived for a payment, and that one payment was sent and another one failed. */
async function reportPayments({ world, held, ask, send }: Surface, { told }: Secrets) {
  const { incomingPayments, outgoingPayments } = world.resources
  const funds = { transferId: 'transfer-1', amount: usd(100) }
  await incomingPayments.receive(lastSegment(held.incoming), funds)
  const sent = { sentAmount: usd(100), deliveredAmount: usd(100) }
  await outgoingPayments.begin(lastSegment(held.outgoing))
  await outgoingPayments.reportSent(lastSegment(held.outgoing), sent)
  const failed = told(await send(ask('createOutgoingPayment')))
  await outgoingPayments.fail(lastSegment(failed.id), { reason: 'no route' })
}

/** Returns the request with the text in the place of each part that a client chooses. */
function misused(asked: Ask, path: string, text: string): readonly Ask[] {
  const { url, body } = asked
  const mark = url.includes('?') ? '&' : '?'
  const own = path.endsWith('{id}') ? lastSegment(url) : url.split('/').at(-2)
  const members = body === undefined ? {} : JSON.parse(body)
  const names = body === undefined ? [] : [...Object.keys(members), text]
  return [
    { ...asked, token: text },
    { ...asked, url: `${url}${mark}${text}=${text}` },
    { ...asked, url: `${url}${mark}cursor=${text}` },
    { ...asked, url: path.includes('{id}') ? url.replace(own ?? '', text) : `${url}/${text}` },
    ...names.map((name) => ({ ...asked, body: JSON.stringify({ ...members, [name]: text }) })),
  ]
}

/** Sends each token in every place of every request, and signed by another client. Every operation serves some. */
async function misuse(
  { routes, world, ask, send }: Surface,
  tokens: readonly string[],
  { told }: Secrets,
): Promise<readonly Answer[]> {
  const refused: Answer[] = []
  const served = new Set<string>()
  const keep = (answer: Answer, operation: string) => {
    if (answer.status >= 400) return void refused.push(answer)
    served.add(operation)
    if (answer.body !== undefined) told(answer)
  }
  const { key } = world.client('mallory')
  for (const token of tokens) {
    const headers = [['Authorization', `Bearer ${token}`]] as const
    keep(await send({ ...ask('createQuote'), token: undefined }, { headers }), 'createQuote')
    for (const { operation, path } of routes) {
      for (const asked of misused(ask(operation), path, token)) keep(await send(asked), operation)
      keep(await send(ask(operation, token), { key }), operation)
    }
    world.clientKeys.unavailable = true
    keep(await send(ask('getQuote', token)), 'getQuote')
    world.clientKeys.unavailable = false
  }
  expect(served).toEqual(new Set(routes.map(({ operation }) => operation)))
  return refused
}

test('no secret appears in the store, in responses, events and reports, or in a URL after all operations', async () => {
  const consoles = (['log', 'info', 'warn', 'error', 'debug'] as const).map((method) =>
    vi.spyOn(console, method),
  )
  const { surface, written, spans, drain } = await createWatchedSurface()
  const { world, shop, held, ask, send } = surface
  const events: DeliveredEvent[] = []
  const secrets = createSecrets()
  for (const key of [shop.key, bankKey]) secrets.keep('a private key', privateJwkOf(key).d ?? '')
  secrets.keep('the key of the host', hostKey.toString(), hostKey)
  secrets.keep('an interaction reference', held.continuing.interactRef)

  const { asked, ref, old, live } = await receiveToken(world, shop, secrets)
  const tokens = [live.value, old.value, asked.continue.access_token.value, ref, held.token.value]
  for (const token of tokens) if (token !== ref) secrets.keepToken('an access token', token)
  const refused = await misuse(surface, tokens, secrets)
  expect(new Set(refused.map(({ status }) => status))).toEqual(
    new Set([400, 401, 403, 404, 405, 503]),
  )
  await reportPayments(surface, secrets)
  const key = 'a-key-that-only-the-client-knows'
  secrets.keep('an idempotency key', key, Buffer.from(key))
  secrets.told(await send(ask('createOutgoingPayment'), { headers: [['Idempotency-Key', key]] }))
  const undelivered = await drain(() => {
    throw new Error('not now')
  })
  world.clock.advance(60_000)
  await drain((event) => void events.push(event))
  await shop.revoke(live)
  world.clock.advance(400 * 86_400_000)
  for (const { sweep } of [world.auth, world.resources]) while ((await sweep()).more);

  const errors = world.errors.map((error) => inspect(error))
  const told = [refused, undelivered, events, world.refusals, errors, spans, secrets.urls]
  const seen = [...written, ...told.map((each) => JSON.stringify(each))].join('\n')
  for (const [secret, name] of secrets.names) {
    expect(seen.includes(secret), `${name} is readable`).toBe(false)
  }
  const { redirect } = asked.interact
  expect(written.join().includes(secretOf(redirect)), 'the path of a consent is stored').toBe(false)
  for (const written of consoles) {
    expect(written).not.toHaveBeenCalled()
    written.mockRestore()
  }
  // Proves that the search works: values derived from secrets and all other records are found.
  expect(seen).toContain(createHash('sha256').update(secretOf(live.value)).digest('base64url'))
  expect(seen).toContain('"salt":')
  expect(new Set(secrets.names.values()).size).toBe(7)
  expect(secrets.names.size).toBeGreaterThan(50)
  expect(new Set(events.map(({ type }) => type)).size).toBeGreaterThan(8)
  expect(undelivered.length).toBeGreaterThan(8)
  expect(spans.length).toBeGreaterThan(500)
})

const secretOf = (token: string) => token.slice(token.lastIndexOf('.') + 1)

test('the store and the interaction reference together do not yield the access token', async () => {
  const world = createWorld()
  const { token, interactRef, id } = await issuedGrant(world, world.client())
  const grant = await world.auth.grants.getRecord(id.slice(0, id.indexOf('.')))
  const salt = grant?.derivation?.salt ?? ''
  expect(salt).not.toBe('')
  expect(token.value).not.toContain(await deriveSecret(interactRef, salt))
})

test('a refusal report names the failed check, the key and the client, and nothing else of the request', async () => {
  const world = createWorld()
  const client = world.client()
  await client.request([incomingAccess], undefined, { created: world.clock.now() / 1000 - 301 })
  expect(world.refusals).toEqual([
    {
      refusal: 'signature_invalid',
      reason: 'created is too long ago',
      status: 401,
      code: 'invalid_client',
      method: 'POST',
      operation: 'requestGrant',
      at: world.clock.now(),
    },
  ])
})
