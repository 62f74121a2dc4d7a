import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, test, vi } from 'vitest'
import {
  type DeliveredEvent,
  ilpPaymentMethods,
  memoryStore,
  type Store,
  type Telemetry,
  walletAddressSubjects,
} from '../../src/index.js'
import { deriveSecret } from '../../src/protocol/credential.js'
import { bankId, bankKey, privateJwkOf } from '../support/introspection.js'
import { testKey } from '../support/keys.js'
import { signedRequest } from '../support/sign.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  type Answer,
  alice,
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

/** Returns a store that keeps the text of every commit. */
function recordingStore(): Store & { readonly written: string[] } {
  const store = memoryStore()
  const written: string[] = []
  return {
    ...store,
    written,
    commit(commit) {
      written.push(JSON.stringify(commit))
      return store.commit(commit)
    },
  }
}

test('no token, reference or shared secret appears in the store, an event, a report or an error', async () => {
  const store = recordingStore()
  const world = createWorld({ store })
  const client = world.client()
  const secrets = new Map<string, string>()
  const keep = (name: string, value: string) => {
    secrets.set(`${name} ${secrets.size}`, value)
    // The part after the last dot is the secret, which a store could keep without the id of its
    // grant.
    secrets.set(`${name} ${secrets.size}`, value.slice(value.lastIndexOf('.') + 1))
  }

  const { token, body, interactRef } = await issuedGrant(world, client)
  keep('access token', token.value)
  keep('continuation token', body.continue.access_token.value)
  keep('interaction reference', interactRef)
  keep('rotated token', (await client.rotate(token)).body.access_token.value)
  keep('the same again', (await client.rotate(token)).body.access_token.value)
  const again = await client.continue(body.continue, interactRef)
  expect(again.status).toBe(401)

  const polled = await approvedGrant(world, client, withoutFinish)
  keep('polled token', (await client.continue(polled.body.continue)).body.access_token.value)

  const granted = (await client.request([incomingAccess])).body
  keep('payment token', granted.access_token.value)
  const payment = await client.createPayment(granted.access_token.value, { walletAddress: bob })
  keep('shared secret', payment.body.methods[0].sharedSecret)
  await client.getPayment(granted.access_token.value, payment.body.id)

  // The following requests are refused for wrong keys, wrong tokens and wrong bodies.
  const mallory = world.client('mallory')
  await mallory.continue(body.continue, interactRef)
  await mallory.rotate(token)
  await client.continue(polled.body.continue, 'a guess')
  await client.request([outgoingAccess], { ...withFinish, start: [] })
  await client.createPayment(token.value, { walletAddress: bob })
  await client.cancel(polled.body.continue)
  expect(world.refusals.length).toBeGreaterThan(5)

  const seen = [...store.written, JSON.stringify(world.refusals), String(world.errors)].join('\n')
  for (const [name, secret] of secrets) {
    expect(seen.includes(secret), `${name} is readable`).toBe(false)
  }
  expect(secrets.size).toBeGreaterThan(12)
})

/** The key of the host, from which payment details are derived. */
const hostKey = Buffer.from('the key of the host, of 32 bytes')

/** A wallet that records everything its host could log. */
function createWatchedWorld() {
  const store = recordingStore()
  const spans: unknown[] = []
  const telemetry: Telemetry = {
    observe(activity, work) {
      spans.push(activity)
      return work((outcome) => void spans.push(outcome))
    },
  }
  const ilp = { addressPrefix: 'test.wallet', secret: hostKey }
  const resourceServers = [{ id: bankId, keys: [bankKey] }]
  const world = createSpendingWorld({
    store,
    auth: { telemetry, resourceServers, subjects: walletAddressSubjects },
    resources: { telemetry, paymentMethods: ilpPaymentMethods(ilp) },
  })
  /** Delivers all due events, and returns what became visible. */
  async function drain(handle: (event: DeliveredEvent) => void): Promise<readonly unknown[]> {
    const failures: unknown[] = []
    const onFailure = (failure: unknown) => void failures.push(failure)
    for (const source of [world.auth.events, world.resources.events]) {
      while ((await source.drain(handle, { onFailure })).delivered > 0);
    }
    return failures
  }
  return { world, store, spans, drain }
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

  return { names, urls, keep, told }
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
  const refs: string[] = []
  for (let clicks = 0; clicks < 2; clicks++) {
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    const id = interactionId(asked.interact.redirect)
    const approved = await world.auth.interactions.approve(id, approval)
    const { searchParams } = new URL((approved.ok && approved.redirect) || '')
    refs.push(searchParams.get('interact_ref') ?? '')
  }
  for (const ref of refs) keep('an interaction reference', ref)
  const [dead = '', ref = ''] = refs
  expect((await shop.continue(asked.continue, dead)).status).toBe(404)
  const issued = told(await shop.continue(asked.continue, ref))
  expect(told(await shop.continue(asked.continue, ref))).toEqual(issued)
  const rotated = told(await shop.rotate(issued.access_token))
  expect(told(await shop.rotate(issued.access_token))).toEqual(rotated)
  const live = told(await shop.rotate(rotated.access_token)).access_token
  return { asked, ref, old: issued.access_token, live }
}

/** Runs incoming payments: lists, pays, reads and completes them. */
async function receivePayments(world: World, payee: TestClient, { told }: Secrets) {
  const actions = ['create', 'read', 'list', 'complete'] as const
  const { value } = told(await payee.request([{ ...incomingAccess, actions }])).access_token
  const payment = told(await payee.createPayment(value, { walletAddress: bob }))
  const { incomingPayments } = world.resources
  const paymentId = incomingPayments.idOf(payment.id) ?? ''
  await incomingPayments.receive(paymentId, { transferId: 'transfer-1', amount: usd(100) })
  told(await payee.getPayment(value, payment.id))
  const bare = { method: 'GET', url: `/op/incoming-payments/${paymentId}`, headers: [] }
  await world.handle({ ...bare, body: new Uint8Array() })
  await payee.getPayment(value, `${resourceServer}/incoming-payments?wallet-address=${bob}`)
  await payee.post(`${payment.id}/complete`, undefined, value)
  return value
}

/** Runs outgoing payments, with a quote and directly, of which one arrives and one fails. */
async function sendPayments(world: World, shop: TestClient, { told, keep }: Secrets) {
  const paying = await grantToPay(world, shop, [outgoingItem({ debitAmount: usd(2500) })])
  told({ status: 200, headers: {}, body: { access_token: paying.accessToken } })
  const quote = told(await newQuote(shop, await quoteToken(shop)))
  const sent = told(await payByQuote(shop, paying.token, quote.id))
  const failed = told(await pay(shop, paying.token, 100))
  const key = 'a-key-that-only-the-client-knows'
  keep('an idempotency key', key, Buffer.from(key))
  const headers = [['Idempotency-Key', key]] as const
  const body = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(7) }
  told(await shop.post(`${resourceServer}/outgoing-payments`, body, paying.token, { headers }))
  const { outgoingPayments } = world.resources
  const [sentId = '', failedId = ''] = [sent, failed].map(({ id }) => outgoingPayments.idOf(id))
  await outgoingPayments.begin(sentId)
  const all = { sentAmount: usd(1000), deliveredAmount: usd(1000) }
  await outgoingPayments.reportSent(sentId, { ...all })
  await outgoingPayments.fail(failedId, { reason: 'no route' })
  return paying
}

/**
 * Presents each token in every place, as its owner and as another client, so that every request is
 * refused.
 */
async function misuse(
  world: World,
  clients: readonly TestClient[],
  tokens: readonly string[],
): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  const incoming = `${resourceServer}/incoming-payments`
  for (const token of tokens) {
    for (const client of clients) {
      const { body } = await client.request([incomingAccess])
      const good: string = body.access_token.value
      const headers = [['Authorization', `Bearer ${token}`]] as const
      answers.push(
        await client.post(`${grantEndpoint}/continue/${token}`, undefined, token),
        await client.post(body.continue.uri, { interact_ref: token }, token),
        await client.post(body.continue.uri, { [token]: token }, body.continue.access_token.value),
        await client.post(`${grantEndpoint}/token/${token}`, undefined, token),
        await client.post(body.access_token.manage, { [token]: token }, good),
        await client.request([{ type: token } as never]),
        await client.getPayment(token, `${incoming}/${token}`),
        await client.getPayment(token, `${incoming}?cursor=${token}`),
        await client.getPayment(token, `${incoming}?wallet-address=${bob}&${token}=${token}`),
        await client.createPayment(good, { walletAddress: token }),
        await client.createPayment(good, { walletAddress: bob, [token]: token }),
        await client.createPayment(good, { walletAddress: bob, expiresAt: token }),
        await client.post(`${resourceServer}/${token}`, undefined, token),
        await client.post(`${resourceServer}/quotes`, {}, undefined, { headers }),
      )
    }
  }
  world.clientKeys.unavailable = true
  for (const token of tokens) {
    for (const client of clients) answers.push(await client.getPayment(token, incoming))
  }
  world.clientKeys.unavailable = false
  return answers
}

test('no secret appears in the store, in responses, events and reports, or in a URL after all operations', async () => {
  const consoles = (['log', 'info', 'warn', 'error', 'debug'] as const).map((method) =>
    vi.spyOn(console, method),
  )
  const { world, store, spans, drain } = createWatchedWorld()
  const events: DeliveredEvent[] = []
  const secrets = createSecrets()
  const shop = world.client()
  for (const key of [shop.key, bankKey, testKey('directed')]) {
    secrets.keep('a private key', privateJwkOf(key).d ?? '')
  }
  secrets.keep('the key of the host', hostKey.toString(), hostKey)

  const { asked, ref, old, live } = await receiveToken(world, shop, secrets)
  const payee = world.client('directed', { byKey: true })
  const incoming = await receivePayments(world, payee, secrets)
  const paying = await sendPayments(world, shop, secrets)
  for (const access_token of [live.value, old.value, asked.continue.access_token.value]) {
    const url = `${grantEndpoint}/introspect`
    const created = world.clock.now() / 1000
    const body = JSON.stringify({ access_token, proof: 'httpsig', resource_server: bankId })
    await world.handle(signedRequest({ method: 'POST', url, key: bankKey, created, body }))
  }
  const tokens = [live.value, old.value, asked.continue.access_token.value, ref, incoming]
  const clients = [shop, payee, world.client('mallory')]
  const refused = await misuse(world, clients, [...tokens, paying.token])
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([400, 401, 403, 404, 503]))
  const undelivered = await drain(() => {
    throw new Error('not now')
  })
  world.clock.advance(60_000)
  await drain((event) => void events.push(event))
  await shop.revoke(live)
  await world.auth.grants.revoke(paying.grantId)
  world.clock.advance(400 * 86_400_000)
  for (const { sweep } of [world.auth, world.resources]) while ((await sweep()).more);

  const errors = world.errors.map((error) => inspect(error))
  const told = [refused, undelivered, events, world.refusals, errors, spans, secrets.urls]
  const seen = [...store.written, ...told.map((each) => JSON.stringify(each))].join('\n')
  for (const [secret, name] of secrets.names) {
    expect(seen.includes(secret), `${name} is readable`).toBe(false)
  }
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
