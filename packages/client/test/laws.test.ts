import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import type { createClient, IssuedGrant, Refused } from 'open-payments-client'
import {
  type FetchedDocument,
  FetchRefusedError,
  HostUnreachableError,
  NoResponseError,
} from 'open-payments-server'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { clientRefusals } from '../src/refusal.js'
import {
  type Arrived,
  authServer,
  bob,
  clientOf,
  type Fault,
  honest,
  json,
  now,
  origin,
  type otherWallet,
  usd,
} from './support/other-wallet.js'

const error = (code: string, description = '') => ({ error: { code, description } })
const bytes = (status: number, body = new Uint8Array()) => ({
  status,
  contentType: '',
  body,
  headers: {},
})

type Answered = FetchedDocument | Promise<never>

/** A fault after the wallet has carried the request out. */
const acted =
  (answer: (answer: FetchedDocument) => Answered): Fault =>
  async (_, act) =>
    answer(act())

const never = new Promise<never>(() => {})
const failing = (reason: Error) => async () => Promise.reject(reason)

/** What a network or a server can do to a request. */
const faults: Readonly<Record<string, Fault>> = {
  honest,
  unreachable: failing(new HostUnreachableError('no connection')),
  refusedUrl: failing(new FetchRefusedError('the port is not allowed')),
  lostBefore: failing(new NoResponseError('closed')),
  silent: async () => never,
  permanentRedirect: async () => bytes(308),
  busy: async () => json(503, error('busy'), { 'retry-after': '1' }),
  tooMany: async () => json(429, error('rate_limited'), { 'retry-after': '3' }),
  unauthenticated: async () => json(401, error('invalid_token', 'Invalid Token')),
  forbidden: async () => json(403, error('insufficient_grant', 'unauthorized')),
  unknown: async () => json(404, error('not_found')),
  invalid: async () => json(400, error('invalid_request')),
  lostAfter: acted(() => Promise.reject(new NoResponseError('closed'))),
  foreignError: acted(() => Promise.reject(new Error('what?'))),
  tooLarge: acted(() => Promise.reject(new FetchRefusedError('large', { isSent: true }))),
  endless: acted(() => never),
  truncated: acted((answer) => ({ ...answer, body: answer.body.slice(0, -3) })),
  noText: acted(() => bytes(200, new Uint8Array([0xff, 0x00, 0x7b]))),
  anotherDocument: acted(() => json(200, { id: 'https://eve.example/x', value: 1 })),
  empty: acted(() => bytes(204)),
  redirect: acted(() => bytes(302)),
  badGateway: acted(() => bytes(502)),
  serverTimeout: acted(() => bytes(408)),
  sentTwice: acted(() => json(409, error('signature_used'))),
}

const grant: IssuedGrant = {
  ...{
    authServer,
    resourceServer: origin,
    token: 'p-token',
    manage: `${origin}/token/1`,
    access: [],
  },
  continuation: { uri: `${origin}/continue/1`, token: 'c-token' },
}
const receiver = `${origin}/incoming-payments/7`

type Client = ReturnType<typeof createClient>
type Result = { readonly ok: true } | Refused

const calls: Readonly<Record<string, (client: Client) => Promise<Result>>> = {
  addressOf: (client) => client.addressOf(bob),
  receiverOf: (client) => client.receiverOf(receiver),
  publicReceiverOf: (client) => client.publicReceiverOf(receiver),
  createReceiver: (client) =>
    client.createReceiver({ walletAddress: bob, incomingAmount: usd('5'), expiresAt: now + 1_000 }),
  completeReceiver: (client) => client.completeReceiver(receiver),
  requestGrant: (client) => client.requestGrant({ walletAddress: bob, access: [] }),
  continueGrant: (client) =>
    client.continueGrant(
      { ...grant, continuation: { uri: `${origin}/continue/1`, token: 'c' }, continueAt: now },
      { interactRef: 'ref' },
    ),
  cancelGrant: (client) => client.cancelGrant(grant),
  rotateToken: (client) => client.rotateToken(grant),
  revokeToken: (client) => client.revokeToken(grant),
  createQuote: (client) => client.createQuote({ walletAddress: bob, receiver }),
  getQuote: (client) => client.getQuote(bob, `${origin}/quotes/1`),
  'createPayment by quote': (client) =>
    client.createPayment({ walletAddress: bob, grant, quote: `${origin}/quotes/1` }),
  'createPayment with a key': (client) =>
    client.createPayment({
      ...{ walletAddress: bob, grant, receiver, debitAmount: usd('5') },
      idempotencyKey: 'order-7',
    }),
  getPayment: (client) => client.getPayment(grant, `${origin}/outgoing-payments/1`),
}

/** Most requests succeed, so that calls get to their last one. */
const scripts = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.constant('honest') },
    { weight: 1, arbitrary: fc.constantFrom(...Object.keys(faults)) },
  ),
  { minLength: 1, maxLength: 6 },
)

/** Lets the wallet follow a script, and be honest after it. */
function follow(wallet: ReturnType<typeof otherWallet>, script: readonly string[]): void {
  const left = [...script]
  wallet.fault = (request, act) => (faults[left.shift() ?? 'honest'] ?? honest)(request, act)
}

test.each(Object.entries(calls))('%s succeeds at an honest server', async (_, call) => {
  const { client } = clientOf({ limitMs: 10_000 })
  expect(await call(client)).toMatchObject({ ok: true })
})

describe.each(Object.entries(calls))('%s, whatever the network and the server do,', (_, call) => {
  test('ends with a result or a named refusal, and sends nothing after it', async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const { wallet, client } = clientOf({ limitMs: 25 })
        follow(wallet, script)
        const result = await call(client)
        if (!result.ok) {
          expect(result).toMatchObject({
            reason: expect.any(String),
            publicReason: expect.any(String),
          })
          expect(clientRefusals).toContain(result.refusal)
        }
        const sent = wallet.arrived.length
        await setImmediate()
        expect(wallet.arrived.length).toBe(sent)
      }),
      { numRuns: runs(60) },
    )
  })

  test('believes no random answer', async () => {
    const answers = fc.array(
      fc.tuple(fc.constantFrom(200, 201, 204, 400, 401, 403, 404, 409, 429, 500), fc.jsonValue()),
      { maxLength: 4 },
    )
    await fc.assert(
      fc.asyncProperty(answers, async (script) => {
        const { wallet, client } = clientOf({ limitMs: 10_000 })
        const left = [...script]
        wallet.fault = async (_, act) => {
          const [status, value] = left.shift() ?? []
          return status === undefined ? act() : json(status, value)
        }
        const result = await call(client)
        if (!result.ok) expect(clientRefusals).toContain(result.refusal)
      }),
      { numRuns: runs(60) },
    )
  })
})

/** The calls whose request moves money, or lets it move, and the collections in which it creates something. */
const creating = [
  ['createReceiver', 'incoming-payments'],
  ['createPayment by quote', 'outgoing-payments'],
  ['createPayment with a key', 'outgoing-payments'],
] as const

describe.each(creating)('%s', (name, collection) => {
  const call = calls[name] ?? (() => expect.fail())

  async function expectOneRequest(faultOf: (request: Arrived) => Fault): Promise<void> {
    const { wallet, client } = clientOf({ limitMs: 25 })
    wallet.fault = (request, act) => faultOf(request)(request, act)
    const sent = () => wallet.to('POST', `/${collection}`).length
    // The second call has a token that the first has used.
    for (const _time of [1, 2]) {
      const [sentBefore, createdBefore] = [sent(), wallet.created.length]
      const result = await call(client)
      const [requests, creations] = [sent() - sentBefore, wallet.created.length - createdBefore]
      expect(requests).toBeLessThanOrEqual(1)
      const isUnknown = !result.ok && result.refusal === 'outcome_unknown'
      if (result.ok) expect(creations).toBe(1)
      else if (creations > 0) expect(isUnknown).toBe(true)
      if (isUnknown) expect(requests).toBe(1)
    }
  }

  test.each(Object.keys(faults))(
    'sends the creating request once, and knows what it does not know, after: %s',
    async (fault) => {
      const isCreating = ({ method, url }: Arrived) =>
        method === 'POST' && url.endsWith(`/${collection}`)
      await expectOneRequest((request) => faults[isCreating(request) ? fault : 'honest'] ?? honest)
      let creations = 0
      await expectOneRequest((request) => {
        creations += isCreating(request) ? 1 : 0
        return faults[isCreating(request) && creations > 1 ? fault : 'honest'] ?? honest
      })
    },
  )

  test('does so after any faults', async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const left = [...script]
        await expectOneRequest(() => faults[left.shift() ?? 'honest'] ?? honest)
      }),
      { numRuns: runs(600) },
    )
  })
})
