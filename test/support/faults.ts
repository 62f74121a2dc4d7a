import type { AccessItem, Refusal, ServerOperation } from '../../src/index.js'
import { jwkOf, testKey } from './keys.js'
import { contentDigest, withHeader } from './sign.js'
import {
  eur,
  euroReceiver,
  goneReceiver,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  quoteToken,
  usd,
  withKey,
} from './spending.js'
import type { Ask, Sending, Surface } from './surface.js'
import {
  alice,
  bob,
  carol,
  closed,
  interactionId,
  origin,
  outgoingAccess,
  withFinish,
  withoutFinish,
} from './world.js'

/** A request that is about to be sent, and what is wrong with it. */
export interface Scene {
  readonly surface: Surface
  readonly operation: ServerOperation
  asked: Ask
  sending: Sending
}

type Arrange = (scene: Scene) => void | Promise<void>

/** One thing that can be wrong with a request. */
export interface Fault {
  readonly refusal: Refusal
  /** Tells faults with one refusal apart. */
  readonly name?: string
  /** Status and code of the response, for each operation that can refuse for this. */
  readonly at: Cells
  /** Makes this of a request that would be served. */
  readonly arrange?: Arrange
  /** Changes how the host behaves, after the request is arranged. */
  readonly host?: Arrange
  /** True when nothing else can be tried on the same servers afterwards. */
  readonly spoils?: boolean
  /**
   * What the fault is about, where faults exclude each other: a payment is direct or by a quote, and has one
   * address; a grant is in one state.
   */
  readonly kind?: 'direct' | 'quote' | 'address' | 'grant' | 'client'
}

type Cells = { readonly [Name in ServerOperation]?: string }

function each(operations: readonly ServerOperation[], cell: string): Cells {
  return Object.fromEntries(operations.map((operation) => [operation, cell]))
}

const continuation = ['continueGrant', 'cancelGrant'] as const
const management = ['rotateToken', 'revokeToken'] as const
const listing = ['listIncomingPayments', 'listOutgoingPayments'] as const
const paying = ['createQuote', 'createOutgoingPayment'] as const
const creating = ['createIncomingPayment', ...paying] as const
const byId = [
  'getIncomingPayment',
  'completeIncomingPayment',
  'getQuote',
  'getOutgoingPayment',
] as const
const wallets = ['getWalletAddress', 'getWalletAddressKeys'] as const
const resources = [...creating, ...listing, ...byId, 'getOutgoingPaymentGrant'] as const
const atGrants = ['requestGrant', ...continuation, ...management] as const
const authorization = [...atGrants, 'introspectToken', 'discover'] as const
const walletServer = [...wallets, 'preflight'] as const
const everywhere = [...authorization, ...resources, ...walletServer] as const

const signatureCells: Cells = {
  ...each(atGrants, '401 invalid_client'),
  introspectToken: '400 invalid_resource_server',
  ...each(resources, '401 invalid_signature'),
}

const nobody = `${origin}/nobody`

function edit(scene: Scene, changes: object): void {
  const { asked } = scene
  const body = JSON.stringify({ ...JSON.parse(asked.body ?? '{}'), ...changes })
  scene.asked = { ...asked, body }
}

function change(scene: Scene, asked: Partial<Ask>): void {
  scene.asked = { ...scene.asked, ...asked }
}

function bend(scene: Scene, change: NonNullable<Sending['bend']>): void {
  const before = scene.sending.bend ?? ((request) => request)
  scene.sending = { ...scene.sending, bend: (request) => change(before(request)) }
}

/** Sends with this header, and with no other of its name. */
function header(scene: Scene, name: string, ...values: readonly string[]): void {
  const others = (scene.sending.headers ?? []).filter(([other]) => other !== name)
  const headers = [...others, ...values.map((value) => [name, value] as const)]
  scene.sending = { ...scene.sending, headers }
}

/** A token for what needs no consent. */
async function tokenFor({ surface }: Scene, access: readonly AccessItem[]): Promise<string> {
  return (await surface.shop.request(access)).body.access_token.value
}

/** The same request for another wallet address, with a token that is good for it. */
async function moveTo(scene: Scene, walletAddress: string): Promise<void> {
  const { world, shop } = scene.surface
  if (scene.operation === 'createIncomingPayment') {
    const actions = ['create'] as const
    change(scene, { token: await tokenFor(scene, [{ type: 'incoming-payment', actions }]) })
  } else if (scene.operation === 'createOutgoingPayment') {
    const { token } = await grantToPay(world, shop, [outgoingItem(undefined, walletAddress)])
    change(scene, { token })
  }
  edit(scene, { walletAddress })
}

/** Continues a grant that is still to be decided, by polling. */
async function poll(scene: Scene) {
  const { body } = await scene.surface.shop.request([outgoingAccess], withoutFinish)
  const { uri: url, access_token } = body.continue
  change(scene, { url, token: access_token.value, body: undefined })
  return interactionId(body.interact.redirect)
}

const grantOf = (id: string) => id.split('.')[0] ?? ''

const revokeGrant =
  (held: 'continuing' | 'cancelling') =>
  async ({ surface }: Scene) => {
    await surface.world.auth.grants.revoke(grantOf(surface.held[held].id))
  }

/** What is refused before the operation is known, in order of precedence. */
export const beforehand: readonly Fault[] = [
  {
    refusal: 'body_too_large',
    at: each(everywhere, '413 invalid_request'),
    arrange: (scene) =>
      bend(scene, (request) => ({ ...request, body: new Uint8Array(64 * 1024 + 1) })),
  },
  {
    refusal: 'route_unknown',
    at: {
      ...each(authorization, '404 invalid_request'),
      ...each([...resources, ...walletServer], '404 not_found'),
    },
    arrange: (scene) => change(scene, { url: scene.asked.url.replace(/\?|$/, '/%2F$&') }),
  },
  {
    refusal: 'method_unknown',
    at: {
      ...each(authorization, '405 invalid_request'),
      ...each([...resources, ...walletServer], '405 method_not_allowed'),
    },
    arrange: (scene) => change(scene, { method: 'PATCH' }),
  },
  {
    refusal: 'headers_invalid',
    at: each(everywhere, '400 invalid_request'),
    arrange: (scene) =>
      bend(scene, (request) => withHeader(request, 'Host', 'wallet.example', 'evil.example')),
  },
  {
    refusal: 'media_type_unsupported',
    at: {
      ...each(authorization, '415 invalid_request'),
      ...each([...resources, ...walletServer], '415 unsupported_media_type'),
    },
    arrange: (scene) =>
      bend(scene, (request) =>
        request.body.length === 0
          ? withHeader(request, 'Content-Encoding', 'gzip')
          : withHeader(request, 'Content-Type', 'text/plain'),
      ),
  },
]

/** Every refusal that an operation can have, in order of precedence: how it comes about, and its response. */
export const faults: readonly Fault[] = [
  {
    refusal: 'signature_invalid',
    at: signatureCells,
    arrange: (scene) => bend(scene, (request) => withHeader(request, 'Signature')),
  },
  {
    refusal: 'signature_invalid',
    name: 'the signature is too old',
    at: signatureCells,
    arrange(scene) {
      const created = Math.floor(scene.surface.world.clock.now() / 1_000) - 301
      scene.sending = { ...scene.sending, created }
    },
  },
  {
    refusal: 'signature_invalid',
    name: 'the digest is that of another body',
    at: signatureCells,
    arrange: (scene) =>
      bend(scene, (request) =>
        withHeader(request, 'Content-Digest', contentDigest(Buffer.from('other'), 'sha-512')),
      ),
  },
  {
    refusal: 'token_missing',
    at: {
      ...each(continuation, '401 invalid_continuation'),
      ...each(management, '401 invalid_client'),
      ...each(resources, '401 missing_token'),
    },
    arrange(scene) {
      header(scene, 'Authorization')
      change(scene, { token: undefined })
    },
  },
  {
    refusal: 'token_malformed',
    at: {
      ...each(continuation, '401 invalid_continuation'),
      ...each(management, '401 invalid_client'),
      ...each(resources, '401 invalid_token'),
    },
    arrange(scene) {
      header(scene, 'Authorization', `Bearer ${scene.asked.token}`)
      change(scene, { token: undefined })
    },
  },
  {
    refusal: 'token_unknown',
    at: {
      ...each(continuation, '401 invalid_continuation'),
      rotateToken: '404 invalid_rotation',
      revokeToken: '401 invalid_client',
      ...each(resources, '401 invalid_token'),
    },
    arrange(scene) {
      const { token = '' } = scene.asked
      change(scene, { token: token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A') })
    },
  },
  {
    refusal: 'introspection_unavailable',
    at: {
      introspectToken: '503 request_denied',
      ...each(resources, '503 introspection_unavailable'),
    },
    host({ surface }) {
      surface.world.clientKeys.unavailable = true
    },
  },
  {
    refusal: 'resource_server_invalid',
    at: { introspectToken: '400 invalid_resource_server' },
    arrange: (scene) => edit(scene, { resource_server: 'https://nobody.example' }),
  },
  {
    refusal: 'signature_invalid',
    name: 'the keyid is not that of the grant',
    at: each(continuation, '401 invalid_client'),
    arrange(scene) {
      const { asked, sending } = scene
      const key = { ...(sending.key ?? asked.key ?? testKey('nobody')), kid: 'another-key' }
      scene.sending = { ...sending, key }
    },
  },
  {
    refusal: 'client_invalid',
    at: {
      ...each(['requestGrant', 'continueGrant'], '400 invalid_client'),
      ...each(['cancelGrant', ...management], '401 invalid_client'),
    },
    kind: 'client',
    host: ({ surface }) => surface.world.clientKeys.publish('https://shop.example'),
  },
  {
    refusal: 'client_unavailable',
    at: each(atGrants, '503 request_denied'),
    kind: 'client',
    host({ surface }) {
      surface.world.clientKeys.unavailable = true
    },
  },
  {
    refusal: 'signature_invalid',
    name: 'another key has signed',
    at: signatureCells,
    arrange(scene) {
      const { kid } = scene.asked.key ?? testKey('nobody')
      scene.sending = { ...scene.sending, key: { ...testKey('mallory'), kid } }
    },
  },
  {
    refusal: 'rate_limited',
    at: {
      ...each(authorization, '429 request_denied'),
      ...each([...resources, ...wallets], '429 rate_limited'),
    },
    host({ surface }) {
      surface.switches.limited = true
    },
  },
  {
    refusal: 'replayed',
    at: signatureCells,
    spoils: true,
    async arrange(scene) {
      const { ask, send } = scene.surface
      const { operation } = scene
      const atResources = (resources as readonly ServerOperation[]).includes(operation)
      const grantOrPayment = atResources ? 'createIncomingPayment' : 'requestGrant'
      const first = operation === 'introspectToken' ? operation : grantOrPayment
      await send(ask(first), { nonce: 'twice' })
      scene.sending = { ...scene.sending, nonce: 'twice' }
    },
  },
  {
    refusal: 'access_insufficient',
    at: each(resources, '403 insufficient_access'),
    async arrange(scene) {
      const { shop, held } = scene.surface
      const other = /Incoming/.test(scene.operation) ? await quoteToken(shop) : held.rotating.value
      change(scene, { token: other })
    },
  },
  {
    refusal: 'key_rotation_unsupported',
    at: { rotateToken: '400 invalid_rotation' },
    arrange: (scene) => edit(scene, { key: {} }),
  },
  {
    refusal: 'body_invalid',
    at: {
      ...each(['requestGrant', 'continueGrant', 'introspectToken'], '400 invalid_request'),
      rotateToken: '400 invalid_rotation',
      ...each([...creating, 'completeIncomingPayment'], '400 invalid_request'),
    },
    arrange: (scene) =>
      edit(scene, { unknown: 1, interact_ref: 7, access_token: 7, walletAddress: 7 }),
  },
  {
    refusal: 'query_invalid',
    at: each(listing, '400 invalid_request'),
    arrange: (scene) => change(scene, { url: `${scene.asked.url}&first=0` }),
  },
  {
    refusal: 'idempotency_key_invalid',
    at: { createOutgoingPayment: '400 invalid_request' },
    kind: 'direct',
    arrange(scene) {
      header(scene, 'Idempotency-Key', 'two words')
    },
  },
  {
    refusal: 'subject_unsupported',
    at: { requestGrant: '400 invalid_request' },
    arrange: (scene) =>
      edit(scene, {
        subject: { sub_ids: [{ id: alice, format: 'uri' }] },
        interact: withFinish,
      }),
  },
  {
    refusal: 'request_not_allowed',
    at: { requestGrant: '403 request_denied' },
    host({ surface }) {
      surface.switches.mayRequest = false
    },
  },
  {
    refusal: 'interaction_required',
    at: { requestGrant: '400 invalid_request' },
    arrange: (scene) =>
      edit(scene, { access_token: { access: [outgoingAccess] }, interact: undefined }),
  },
  {
    refusal: 'interaction_by_key',
    at: { requestGrant: '400 invalid_client' },
    kind: 'client',
    arrange: (scene) =>
      edit(scene, {
        client: { jwk: jwkOf(scene.surface.shop.key) },
        access_token: { access: [outgoingAccess] },
        interact: withFinish,
      }),
  },
  {
    refusal: 'finish_required',
    at: { requestGrant: '400 invalid_request' },
    host({ surface }) {
      surface.switches.requiresFinish = true
    },
    arrange(scene) {
      edit(scene, { access_token: { access: [outgoingAccess] }, interact: withoutFinish })
    },
  },
  {
    refusal: 'too_fast',
    at: { continueGrant: '400 too_fast' },
    kind: 'grant',
    arrange: async (scene) => void (await poll(scene)),
  },
  {
    refusal: 'poll_with_finish',
    at: { continueGrant: '401 request_denied' },
    kind: 'grant',
    arrange: (scene) => change(scene, { body: undefined }),
  },
  {
    refusal: 'grant_gone',
    at: { continueGrant: '404 invalid_continuation' },
    kind: 'grant',
    spoils: true,
    arrange: revokeGrant('continuing'),
  },
  {
    refusal: 'grant_finalized',
    at: { cancelGrant: '404 invalid_request' },
    kind: 'grant',
    spoils: true,
    arrange: revokeGrant('cancelling'),
  },
  {
    refusal: 'grant_denied',
    at: { continueGrant: '401 request_denied' },
    kind: 'grant',
    async arrange(scene) {
      await scene.surface.world.auth.interactions.deny(await poll(scene))
    },
  },
  {
    refusal: 'interaction_timed_out',
    at: { continueGrant: '401 request_denied' },
    kind: 'grant',
    spoils: true,
    async arrange(scene) {
      await poll(scene)
      scene.surface.world.clock.advance(600_000)
    },
  },
  {
    refusal: 'interact_ref_wrong',
    at: { continueGrant: '404 invalid_continuation' },
    kind: 'grant',
    arrange: (scene) => edit(scene, { interact_ref: 'another' }),
  },
  {
    refusal: 'interact_ref_spent',
    at: { continueGrant: '401 request_denied' },
    kind: 'grant',
    spoils: true,
    async arrange({ surface, asked }) {
      await surface.send(asked)
      surface.world.clock.advance(60_000)
    },
  },
  {
    refusal: 'already_issued',
    at: { continueGrant: '401 request_denied' },
    kind: 'grant',
    spoils: true,
    async arrange(scene) {
      const id = await poll(scene)
      const { world, send } = scene.surface
      const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
      await world.auth.interactions.approve(id, approval)
      await send(scene.asked)
      world.clock.advance(60_000)
    },
  },
  {
    refusal: 'token_not_managed_here',
    at: { rotateToken: '404 invalid_rotation', revokeToken: '401 invalid_client' },
    kind: 'grant',
    spoils: true,
    async arrange({ surface, operation }) {
      const { shop, held, world } = surface
      await shop.rotate(operation === 'rotateToken' ? held.rotating : held.revoking)
      world.clock.advance(60_000)
    },
  },
  {
    refusal: 'token_revoked',
    at: { rotateToken: '404 invalid_rotation' },
    kind: 'grant',
    spoils: true,
    async arrange({ surface }) {
      await surface.shop.revoke(surface.held.rotating)
    },
  },
  {
    refusal: 'grant_over',
    at: { rotateToken: '400 invalid_rotation' },
    kind: 'grant',
    spoils: true,
    async arrange({ surface, asked }) {
      const id = grantOf(asked.url.slice(asked.url.lastIndexOf('/') + 1))
      await surface.world.auth.grants.revoke(id)
    },
  },
  {
    refusal: 'identifier_foreign',
    at: each(
      ['createIncomingPayment', 'createOutgoingPayment', ...listing],
      '403 insufficient_access',
    ),
    kind: 'address',
    arrange(scene) {
      const { url } = scene.asked
      if (scene.operation.startsWith('create')) return edit(scene, { walletAddress: carol })
      change(scene, { url: url.replace(/wallet-address=[^&]*/, `wallet-address=${carol}`) })
    },
  },
  {
    refusal: 'request_differs',
    at: { createOutgoingPayment: '422 request_differs' },
    kind: 'direct',
    async arrange(scene) {
      const { world, shop } = scene.surface
      const { token } = await grantToPay(world, shop)
      await pay(shop, token, 1, {}, withKey('used'))
      header(scene, 'Idempotency-Key', 'used')
    },
  },
  {
    refusal: 'wallet_address_unknown',
    at: each(creating, '404 unknown_wallet_address'),
    kind: 'address',
    arrange: (scene) => moveTo(scene, nobody),
  },
  {
    refusal: 'wallet_address_inactive',
    at: each(creating, '400 inactive_wallet_address'),
    kind: 'address',
    arrange: (scene) => moveTo(scene, closed),
  },
  {
    refusal: 'amount_invalid',
    at: each(creating, '400 invalid_amount'),
    kind: 'direct',
    arrange(scene) {
      const name = scene.operation === 'createIncomingPayment' ? 'incomingAmount' : 'debitAmount'
      edit(scene, { [name]: eur(1) })
    },
  },
  {
    refusal: 'amount_invalid',
    name: 'the amount is zero',
    at: { createOutgoingPayment: '400 invalid_amount' },
    kind: 'direct',
    arrange: (scene) => edit(scene, { debitAmount: usd(0) }),
  },
  {
    refusal: 'expiry_invalid',
    at: { createIncomingPayment: '400 invalid_expiry' },
    arrange: (scene) => edit(scene, { expiresAt: '2020-01-01T00:00:00Z' }),
  },
  {
    refusal: 'amount_missing',
    at: each(paying, '400 invalid_amount'),
    kind: 'direct',
    host({ surface }) {
      surface.switches.price = async () => ({ refusal: 'amount_missing' })
    },
  },
  {
    refusal: 'amount_too_small',
    at: each(paying, '400 invalid_amount'),
    kind: 'direct',
    arrange: (scene) =>
      edit(scene, {
        [scene.operation === 'createQuote' ? 'receiver' : 'incomingPayment']: euroReceiver,
        debitAmount: usd(1),
      }),
  },
  {
    refusal: 'receiver_invalid',
    at: each(paying, '400 invalid_receiver'),
    kind: 'direct',
    arrange: (scene) =>
      edit(scene, {
        [scene.operation === 'createQuote' ? 'receiver' : 'incomingPayment']: goneReceiver,
      }),
  },
  {
    refusal: 'quote_unknown',
    at: { createOutgoingPayment: '404 invalid_quote' },
    kind: 'quote',
    arrange(scene) {
      const quoteId = `${scene.surface.held.quote}-`
      change(scene, { body: JSON.stringify({ walletAddress: alice, quoteId }) })
    },
  },
  {
    refusal: 'quote_mismatch',
    at: { createOutgoingPayment: '400 invalid_quote' },
    kind: 'quote',
    async arrange(scene) {
      const { shop } = scene.surface
      const { body } = await newQuote(shop, await quoteToken(shop), { walletAddress: bob })
      const asked = { walletAddress: alice, quoteId: body.id }
      change(scene, { body: JSON.stringify(asked) })
    },
  },
  {
    refusal: 'quote_expired',
    at: each(paying, '400 invalid_quote'),
    kind: 'quote',
    spoils: true,
    arrange(scene) {
      if (scene.operation === 'createQuote') return
      const { held, world } = scene.surface
      world.clock.advance(300_000)
      const asked = { walletAddress: alice, quoteId: held.quote }
      change(scene, { body: JSON.stringify(asked) })
    },
    host({ operation, surface: { switches, world } }) {
      if (operation !== 'createQuote') return
      const expiresAt = world.clock.now()
      switches.price = async () => ({ debitAmount: usd(1), receiveAmount: usd(1), expiresAt })
    },
  },
  {
    refusal: 'limits_exceeded',
    at: { createOutgoingPayment: '403 insufficient_grant' },
    spoils: true,
    async arrange({ surface }) {
      await pay(surface.shop, surface.held.token.value, 2400)
    },
  },
  {
    refusal: 'resource_unknown',
    at: each([...byId, ...wallets], '404 not_found'),
    arrange(scene) {
      const { url } = scene.asked
      change(scene, { url: url.replace(/\/(?:alice|[\w-]{30,})/, '/nobody') })
    },
  },
  {
    refusal: 'busy',
    at: {
      ...each([...atGrants, 'introspectToken'], '503 request_denied'),
      ...each([...resources, ...wallets], '503 busy'),
    },
    host({ surface }) {
      surface.switches.store = 'contended'
      surface.switches.accounts = Object.assign(new Error('busy'), { code: 'ERR_CONTENTION' })
    },
  },
  {
    refusal: 'internal',
    at: {
      ...each([...atGrants, 'introspectToken'], '500 request_denied'),
      ...each([...resources, ...wallets], '500 internal_error'),
    },
    host({ surface }) {
      surface.switches.store = 'failed'
      surface.switches.accounts = new Error('the accounts cannot be had')
    },
  },
]

/** Applies faults to a request, the first of them last, so that no other one hides it. */
export async function arrange(scene: Scene, some: readonly Fault[]): Promise<void> {
  const lastFirst = some.toReversed()
  for (const fault of lastFirst) await fault.arrange?.(scene)
  for (const fault of lastFirst) await fault.host?.(scene)
}
