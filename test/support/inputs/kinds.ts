import type { HttpRequest } from '../../../src/entry-adapter.js'
import { bankKey } from '../introspection.js'
import { jwkOf, testKey } from '../keys.js'
import { type SignOptions, signedRequest } from '../sign.js'
import { shopReceiver, usd } from '../spending.js'
import type { Ask } from '../surface/asks.js'
import {
  alice,
  bob,
  grantEndpoint,
  origin,
  outgoingAccess,
  resourceServer,
  withFinish,
} from '../world.js'
import type { Dice } from './dice.js'
import { oddBody, oddLine, oddQuery, oddRequest, oddTarget, type Texts } from './grammar.js'
import { mutatedBytes, mutatedRequest, mutatedText, spliced } from './mutations.js'
import type { Stage } from './stage.js'

/** What a batch of inputs is made from. */
export interface Batch {
  readonly stage: Stage
  readonly dice: Dice
  readonly texts: Texts
  /** Requests that were served if nothing of them were changed, and no other were sent before. */
  readonly asks: readonly Ask[]
  readonly signed: readonly HttpRequest[]
}

export function createBatch(stage: Stage, dice: Dice, texts: Texts): Batch {
  const asks = [...stage.asks().map(({ asked }) => asked), ...fullAsks(stage)]
  return { stage, dice, texts, asks, signed: asks.map((asked) => stage.sign(asked)) }
}

/** Requests with every member that a body can have, so that mutations reach each of them. */
function fullAsks({ shop, held }: Stage): Ask[] {
  const { key } = shop
  const token = held().token.value
  const post = (path: string, body: object): Ask => ({
    method: 'POST',
    url: resourceServer + path,
    key,
    token,
    body: JSON.stringify(body),
  })
  const metadata = { a: [1, { b: null }], order: '17' }
  const limits = {
    receiver: shopReceiver,
    debitAmount: usd(5),
    interval: 'R3/2026-11-21T00:00:00Z/P1M',
  }
  const grant = (body: object) => ({
    method: 'POST',
    url: grantEndpoint,
    key,
    body: JSON.stringify(body),
  })
  return [
    grant({
      client: { walletAddress: shop.client },
      access_token: { access: [{ ...outgoingAccess, limits }] },
      interact: { ...withFinish, finish: { ...withFinish.finish, hash_method: 'sha-256' } },
    }),
    grant({
      client: { jwk: jwkOf(key) },
      access_token: { access: [{ type: 'quote', actions: ['create'] }] },
    }),
    grant({
      client: shop.client,
      subject: { sub_ids: [{ id: alice, format: 'uri' }] },
      interact: withFinish,
    }),
    post('/incoming-payments', {
      walletAddress: bob,
      incomingAmount: usd(10),
      expiresAt: '2027-01-01T00:00:00Z',
      metadata,
    }),
    post('/quotes', {
      walletAddress: alice,
      receiver: shopReceiver,
      method: 'ilp',
      debitAmount: usd(7),
    }),
    post('/quotes', {
      walletAddress: alice,
      receiver: shopReceiver,
      method: 'ilp',
      receiveAmount: usd(7),
    }),
    post('/outgoing-payments', { walletAddress: alice, quoteId: held().quote, metadata }),
    post('/outgoing-payments', {
      walletAddress: alice,
      incomingPayment: shopReceiver,
      debitAmount: usd(1),
    }),
    {
      method: 'GET',
      url: `${resourceServer}/outgoing-payments?wallet-address=${alice}&first=1&cursor=x`,
      key,
      token,
    },
  ]
}

const strangers = Array.from({ length: 8 }, (_, index) => testKey(`stranger ${index}`))
const hosts = ['https://shop.example', 'https://broken.example', 'https://x.example', bob]

/** One input of each kind; the weights of the kinds say how much of a run they are. */
const kinds: readonly (readonly [
  weight: number,
  name: Kind,
  make: (batch: Batch) => HttpRequest,
])[] = [
  [
    15,
    'grammar',
    ({ stage, dice, texts }) => oddRequest(dice, texts, stage.routes, seconds(stage)),
  ],
  [
    35,
    'mutated',
    ({ dice, signed }) => {
      let request = dice.pick(signed)
      for (let left = 1 + dice.below(3); left > 0; left--) {
        request = mutatedRequest(request, dice, dice.pick(signed))
      }
      return request
    },
  ],
  [10, 'spliced', ({ dice, signed }) => spliced(dice.pick(signed), dice.pick(signed), dice)],
  [25, 'signed again', signedAgain],
  [
    8,
    'signature',
    ({ stage, dice, asks, texts }) => oddlySigned(stage, dice, dice.pick(asks), texts),
  ],
  [5, 'stranger', ({ stage, dice, texts }) => ofStranger(stage, dice, texts)],
  [2, 'unchanged', ({ dice, signed }) => dice.pick(signed)],
]

export type Kind =
  | 'grammar'
  | 'mutated'
  | 'spliced'
  | 'signed again'
  | 'signature'
  | 'stranger'
  | 'unchanged'

export interface Input {
  readonly kind: Kind
  readonly request: HttpRequest
}

const weights = kinds.map(([weight, kind, make]) => [weight, { kind, make }] as const)

export function createInput(batch: Batch): Input {
  const { kind, make } = batch.dice.weighted(weights)
  return { kind, request: make(batch) }
}

function seconds({ clock }: Stage): number {
  return Math.floor(clock.now() / 1_000)
}

/** A valid request that is changed before it is signed, so that the change is seen behind the signature. */
function signedAgain({ stage, dice, asks, texts }: Batch): HttpRequest {
  const asked = dice.pick(asks)
  const { key, method, token } = asked
  if (key === undefined) return mutatedRequest(stage.sign(asked), dice, stage.sign(dice.pick(asks)))
  const part = dice.weighted([
    [asked.body === undefined ? 0 : 10, 'body'],
    [asked.body === undefined ? 6 : 3, 'url'],
    [2, 'bytes'],
    [2, 'token'],
    [2, 'header'],
    [1, 'method'],
    [1, 'key'],
  ] as const)
  const other = dice.pick(asks)
  const changed: Ask = {
    ...asked,
    ...(part === 'body' && { body: oddBody(dice, texts, asked.body) }),
    ...(part === 'url' && { url: oddUrl(dice, asked.url, other.url, stage) }),
    ...(part === 'token' && { token: oddToken(dice, token, other.token) }),
    ...(part === 'method' && { method: other.method }),
    ...(part === 'key' && { key: other.key ?? bankKey }),
  }
  if (part === 'bytes') return sign(stage, changed, bytesFor(dice, asked, other))
  if (part !== 'header') return stage.sign(changed)
  const idempotency = ['Idempotency-Key', dice.pick(['k', 'l', 'x'.repeat(256), '', 'é'])] as const
  const line = dice.chance(50) ? idempotency : oddLine(dice, texts, seconds(stage))
  return sign(stage, { ...changed, method }, { headers: [line] })
}

function bytesFor(dice: Dice, { body = '' }: Ask, other: Ask): Pick<SignOptions, 'body'> {
  return { body: mutatedBytes(Buffer.from(body), dice, Buffer.from(other.body ?? '')) }
}

function oddToken(dice: Dice, token = '', other = ''): string {
  return dice.chance(50) ? mutatedText(token, dice, other) : other
}

function oddUrl(dice: Dice, url: string, other: string, { routes }: Stage): string {
  const [path = ''] = url.split('?')
  return dice.weighted([
    [4, path + oddQuery(dice)],
    [3, origin + mutatedText(url.slice(origin.length), dice, other.slice(origin.length))],
    [2, other],
    [1, origin + oddTarget(dice, routes)],
  ])
}

let nonces = 0

function sign(stage: Stage, asked: Ask, more: Partial<SignOptions> = {}): HttpRequest {
  const { key = bankKey, method, url, token, body } = asked
  const content = { ...(token !== undefined && { token }), ...(body !== undefined && { body }) }
  const created = seconds(stage)
  return signedRequest({ key, method, url, created, nonce: `odd-${nonces++}`, ...content, ...more })
}

const oddComponents = [
  ...['"@method"', '"@target-uri"', '"@authority"', '"@path"', '"@query"', '"authorization"'],
  ...['"content-digest"', '"content-length"', '"content-type"', '"@status"', '"x-none"', '"X"'],
]

/** A valid request with a valid signature of a form, an age or a coverage that is not. */
function oddlySigned(stage: Stage, dice: Dice, asked: Ask, { dictionaries }: Texts): HttpRequest {
  const kid = asked.key?.kid ?? 'shop-key'
  const created = seconds(stage) + dice.pick([0, 0, 0, -299, -300, -301, 60, 61, -1e9, 1e12])
  const parameters = [
    `created=${created}`,
    dice.chance(80) ? `keyid="${kid}"` : dice.pick(['keyid=""', 'keyid=a', 'x="é"', 'keyid="a"']),
    ...dice.some(0, 2, () =>
      dice.pick(['nonce="a"', 'nonce=""', 'alg="ed25519"', 'alg="x"', 'tag']),
    ),
    ...(dice.chance(10) ? [`expires=${seconds(stage) + dice.pick([-1, 0, 1, 1e15])}`] : []),
  ]
  const signed = sign(stage, asked, {
    parameters,
    ...(dice.chance(50) && { components: dice.some(0, 6, () => dice.pick(oddComponents)) }),
    ...(dice.chance(20) && { label: dice.pick(['a', '*b', 'A', '', 'sig-1', 'é']) }),
    ...(dice.chance(30) && { digest: dice.pick(['none', 'sha-256'] as const) }),
  })
  if (dice.chance(70)) return signed
  const name = dice.pick(['Signature', 'Signature-Input', 'Content-Digest'])
  const line = [name, dice.pick(dictionaries)] as const
  return {
    ...signed,
    headers: dice.chance(50) ? [...signed.headers, line] : [line, ...signed.headers],
  }
}

/** A grant request of somebody with a key of their own, or who names a client at any host. */
function ofStranger(stage: Stage, dice: Dice, texts: Texts): HttpRequest {
  const key = dice.pick(strangers)
  const name = `https://h${dice.below(2_000)}${'x'.repeat(dice.below(9))}.example`
  const client = dice.chance(40) ? { jwk: jwkOf(key) } : dice.pick([...hosts, name])
  const access = [{ type: 'incoming-payment', actions: ['create', 'read'], identifier: bob }]
  const body = JSON.stringify({ client, access_token: { access } })
  const asked = { method: 'POST', url: grantEndpoint, key, body }
  return sign(stage, dice.chance(70) ? asked : { ...asked, body: oddBody(dice, texts, body) })
}
