import type { AccessItem, Refusal, ServerOperation } from '../../src/index.js'
import { jwkOf } from './keys.js'
import { withHeader } from './sign.js'
import {
  eur,
  euroReceiver,
  goneReceiver,
  grantToPay,
  newQuote,
  outgoingItem,
  quoteToken,
  usd,
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

/** A request that is about to be sent, and will be refused for one thing. */
export interface Scene {
  readonly surface: Surface
  readonly operation: ServerOperation
  asked: Ask
  sending: Sending
}

/** A way to come by a refusal. */
export interface Fault {
  readonly refusal: Refusal
  /** The operations that can refuse for this. */
  readonly at: readonly ServerOperation[]
  /** Makes a request that would be served one that is refused for this. */
  readonly arrange: (scene: Scene) => void | Promise<void>
  /** True when nothing else can be tried on the same servers afterwards. */
  readonly spoils?: boolean
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
const withToken = [...continuation, ...management, ...resources] as const
const atGrants = ['requestGrant', ...continuation, ...management] as const
const signed = ['requestGrant', 'introspectToken', ...withToken] as const

const nobody = `${origin}/nobody`

function edit(scene: Scene, changes: object): void {
  const { asked } = scene
  const body = JSON.stringify({ ...JSON.parse(asked.body ?? '{}'), ...changes })
  scene.asked = { ...asked, body }
}

function change(scene: Scene, asked: Partial<Ask>): void {
  scene.asked = { ...scene.asked, ...asked }
}

const priceRefused =
  (refusal: 'amount_missing' | 'amount_too_small' | 'receiver_invalid') =>
  ({ surface }: Scene) => {
    surface.switches.price = async () => ({ refusal })
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

/** Every refusal that an operation can have, for each operation that can. */
export const faults: readonly Fault[] = [
  {
    refusal: 'signature_invalid',
    at: signed,
    arrange(scene) {
      scene.sending = { bend: (request) => withHeader(request, 'Signature') }
    },
  },
  {
    refusal: 'token_missing',
    at: withToken,
    arrange: (scene) => change(scene, { token: undefined }),
  },
  {
    refusal: 'token_malformed',
    at: withToken,
    arrange(scene) {
      scene.sending = { headers: [['Authorization', `Bearer ${scene.asked.token}`]] }
      change(scene, { token: undefined })
    },
  },
  {
    refusal: 'token_unknown',
    at: withToken,
    arrange(scene) {
      const { token = '' } = scene.asked
      change(scene, { token: token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A') })
    },
  },
  {
    refusal: 'introspection_unavailable',
    at: ['introspectToken', ...resources],
    arrange({ surface }) {
      surface.world.clientKeys.unavailable = true
    },
  },
  {
    refusal: 'resource_server_invalid',
    at: ['introspectToken'],
    arrange: (scene) => edit(scene, { resource_server: 'https://nobody.example' }),
  },
  {
    refusal: 'client_invalid',
    at: atGrants,
    arrange: ({ surface }) => surface.world.clientKeys.publish('https://shop.example'),
  },
  {
    refusal: 'client_unavailable',
    at: atGrants,
    arrange({ surface }) {
      surface.world.clientKeys.unavailable = true
    },
  },
  {
    refusal: 'rate_limited',
    at: [...signed, 'discover', ...wallets],
    arrange({ surface }) {
      surface.switches.limited = true
    },
  },
  {
    refusal: 'replayed',
    at: signed,
    spoils: true,
    async arrange(scene) {
      scene.sending = { nonce: 'twice' }
      await scene.surface.send(scene.asked, scene.sending)
    },
  },
  {
    refusal: 'access_insufficient',
    at: resources,
    async arrange(scene) {
      const { shop, held } = scene.surface
      const other = /Incoming/.test(scene.operation) ? await quoteToken(shop) : held.rotating.value
      change(scene, { token: other })
    },
  },
  {
    refusal: 'key_rotation_unsupported',
    at: ['rotateToken'],
    arrange: (scene) => edit(scene, { key: {} }),
  },
  {
    refusal: 'body_invalid',
    at: [
      ...(['requestGrant', 'continueGrant', 'rotateToken', 'introspectToken'] as const),
      ...([...creating, 'completeIncomingPayment'] as const),
    ],
    arrange: (scene) =>
      edit(scene, { unknown: 1, interact_ref: 7, access_token: 7, walletAddress: 7 }),
  },
  {
    refusal: 'query_invalid',
    at: listing,
    arrange: (scene) => change(scene, { url: `${scene.asked.url}&first=0` }),
  },
  {
    refusal: 'subject_unsupported',
    at: ['requestGrant'],
    arrange: (scene) =>
      edit(scene, {
        subject: { sub_ids: [{ id: alice, format: 'uri' }] },
        interact: withFinish,
      }),
  },
  {
    refusal: 'request_not_allowed',
    at: ['requestGrant'],
    arrange({ surface }) {
      surface.switches.mayRequest = false
    },
  },
  {
    refusal: 'interaction_required',
    at: ['requestGrant'],
    arrange: (scene) => edit(scene, { access_token: { access: [outgoingAccess] } }),
  },
  {
    refusal: 'interaction_by_key',
    at: ['requestGrant'],
    arrange: (scene) =>
      edit(scene, {
        client: { jwk: jwkOf(scene.surface.shop.key) },
        access_token: { access: [outgoingAccess] },
        interact: withFinish,
      }),
  },
  {
    refusal: 'finish_required',
    at: ['requestGrant'],
    arrange(scene) {
      scene.surface.switches.requiresFinish = true
      edit(scene, { access_token: { access: [outgoingAccess] }, interact: withoutFinish })
    },
  },
  {
    refusal: 'too_fast',
    at: ['continueGrant'],
    arrange: async (scene) => void (await poll(scene)),
  },
  {
    refusal: 'poll_with_finish',
    at: ['continueGrant'],
    arrange: (scene) => change(scene, { body: undefined }),
  },
  {
    refusal: 'grant_gone',
    at: ['continueGrant'],
    spoils: true,
    arrange: revokeGrant('continuing'),
  },
  {
    refusal: 'grant_finalized',
    at: ['cancelGrant'],
    spoils: true,
    arrange: revokeGrant('cancelling'),
  },
  {
    refusal: 'grant_denied',
    at: ['continueGrant'],
    async arrange(scene) {
      await scene.surface.world.auth.interactions.deny(await poll(scene))
    },
  },
  {
    refusal: 'interaction_timed_out',
    at: ['continueGrant'],
    spoils: true,
    async arrange(scene) {
      await poll(scene)
      scene.surface.world.clock.advance(600_000)
    },
  },
  {
    refusal: 'interact_ref_wrong',
    at: ['continueGrant'],
    arrange: (scene) => edit(scene, { interact_ref: 'another' }),
  },
  {
    refusal: 'interact_ref_spent',
    at: ['continueGrant'],
    spoils: true,
    async arrange({ surface, asked }) {
      await surface.send(asked)
      surface.world.clock.advance(60_000)
    },
  },
  {
    refusal: 'already_issued',
    at: ['continueGrant'],
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
    at: management,
    spoils: true,
    async arrange({ surface, operation }) {
      const { shop, held, world } = surface
      await shop.rotate(operation === 'rotateToken' ? held.rotating : held.revoking)
      world.clock.advance(60_000)
    },
  },
  {
    refusal: 'token_revoked',
    at: ['rotateToken'],
    spoils: true,
    async arrange({ surface }) {
      await surface.shop.revoke(surface.held.rotating)
    },
  },
  {
    refusal: 'grant_over',
    at: ['rotateToken'],
    spoils: true,
    async arrange({ surface, asked }) {
      const id = grantOf(asked.url.slice(asked.url.lastIndexOf('/') + 1))
      await surface.world.auth.grants.revoke(id)
    },
  },
  {
    refusal: 'identifier_foreign',
    at: ['createIncomingPayment', 'createOutgoingPayment', ...listing],
    arrange(scene) {
      const { url } = scene.asked
      if (scene.operation.startsWith('create')) return edit(scene, { walletAddress: carol })
      change(scene, { url: url.replace(/wallet-address=[^&]*/, `wallet-address=${carol}`) })
    },
  },
  {
    refusal: 'wallet_address_unknown',
    at: creating,
    arrange: (scene) => moveTo(scene, nobody),
  },
  {
    refusal: 'wallet_address_inactive',
    at: creating,
    arrange: (scene) => moveTo(scene, closed),
  },
  {
    refusal: 'amount_invalid',
    at: creating,
    arrange(scene) {
      const name = scene.operation === 'createIncomingPayment' ? 'incomingAmount' : 'debitAmount'
      edit(scene, { [name]: eur(1) })
    },
  },
  {
    refusal: 'expiry_invalid',
    at: ['createIncomingPayment'],
    arrange: (scene) => edit(scene, { expiresAt: '2020-01-01T00:00:00Z' }),
  },
  { refusal: 'amount_missing', at: paying, arrange: priceRefused('amount_missing') },
  {
    refusal: 'amount_too_small',
    at: paying,
    arrange: (scene) =>
      edit(scene, {
        [scene.operation === 'createQuote' ? 'receiver' : 'incomingPayment']: euroReceiver,
        debitAmount: usd(1),
      }),
  },
  {
    refusal: 'receiver_invalid',
    at: paying,
    arrange: (scene) =>
      edit(scene, {
        [scene.operation === 'createQuote' ? 'receiver' : 'incomingPayment']: goneReceiver,
      }),
  },
  {
    refusal: 'idempotency_key_invalid',
    at: ['createOutgoingPayment'],
    arrange(scene) {
      scene.sending = { headers: [['Idempotency-Key', 'two words']] }
    },
  },
  {
    refusal: 'request_differs',
    at: ['createOutgoingPayment'],
    async arrange(scene) {
      scene.sending = { headers: [['Idempotency-Key', 'one']] }
      await scene.surface.send(scene.asked, scene.sending)
      edit(scene, { debitAmount: usd(99) })
    },
  },
  {
    refusal: 'quote_unknown',
    at: ['createOutgoingPayment'],
    arrange(scene) {
      const quoteId = `${scene.surface.held.quote}-`
      change(scene, { body: JSON.stringify({ walletAddress: alice, quoteId }) })
    },
  },
  {
    refusal: 'quote_mismatch',
    at: ['createOutgoingPayment'],
    async arrange(scene) {
      const { shop } = scene.surface
      const { body } = await newQuote(shop, await quoteToken(shop), { walletAddress: bob })
      const asked = { walletAddress: alice, quoteId: body.id }
      change(scene, { body: JSON.stringify(asked) })
    },
  },
  {
    refusal: 'quote_expired',
    at: paying,
    spoils: true,
    arrange(scene) {
      const { held, switches, world } = scene.surface
      if (scene.operation === 'createQuote') {
        const expiresAt = world.clock.now()
        const price = { debitAmount: usd(1), receiveAmount: usd(1), expiresAt }
        switches.price = async () => price
      } else {
        world.clock.advance(300_000)
        const asked = { walletAddress: alice, quoteId: held.quote }
        change(scene, { body: JSON.stringify(asked) })
      }
    },
  },
  {
    refusal: 'limits_exceeded',
    at: ['createOutgoingPayment'],
    arrange: (scene) => edit(scene, { debitAmount: usd(2500) }),
  },
  {
    refusal: 'resource_unknown',
    at: [...byId, ...wallets],
    arrange(scene) {
      const { url } = scene.asked
      change(scene, { url: url.replace(/\/(?:alice|[\w-]{30,})/, '/nobody') })
    },
  },
  {
    refusal: 'busy',
    at: [...signed, ...wallets],
    arrange({ surface }) {
      surface.switches.store = 'contended'
      surface.switches.accounts = Object.assign(new Error('busy'), { code: 'ERR_CONTENTION' })
    },
  },
  {
    refusal: 'internal',
    at: [...signed, ...wallets],
    arrange({ surface }) {
      surface.switches.store = 'failed'
      surface.switches.accounts = new Error('the accounts cannot be had')
    },
  },
]
