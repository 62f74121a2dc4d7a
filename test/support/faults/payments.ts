import type { ConditionChanges } from '../../../src/entry-core.js'
import type { AccessItem } from '../../../src/index.js'
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
} from '../spending.js'
import { lastSegment } from '../surface.js'
import { alice, bob, carol, closed, origin } from '../world.js'
import {
  byId,
  change,
  creating,
  each,
  edit,
  type Fault,
  header,
  listing,
  paying,
  type Scene,
  wallets,
} from './fault.js'

const nobody = `${origin}/nobody`

/** Sends the request once, so that its payment waits for its owner. Resolves to the id of the payment. */
async function waitingFor(scene: Scene): Promise<string> {
  const { surface } = scene
  header(scene, 'Idempotency-Key', 'waiting')
  surface.switches.unconfirmed = false
  const { body } = await surface.send(scene.asked, scene.sending)
  surface.switches.unconfirmed = true
  return lastSegment(body.error.details.url)
}

/** A token for what needs no consent. */
async function tokenFor({ surface }: Scene, access: readonly AccessItem[]): Promise<string> {
  return (await surface.shop.request(access)).body.access_token.value
}

/** Amends the grants of the owner. */
async function amendAll({ surface }: Scene, conditions: ConditionChanges): Promise<void> {
  const { grants } = surface.world.auth
  for await (const { grantId } of grants.iterate({ resourceOwner: 'alice' })) {
    await grants.amend(grantId, { conditions })
  }
}

/** The same request for another wallet address, with a token that permits it. */
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

/** A payment or quote that is refused, or a resource that does not exist. */
export const paymentFaults: readonly Fault[] = [
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
    refusal: 'confirmation_declined',
    at: { createOutgoingPayment: '403 confirmation_declined' },
    kind: 'repeat',
    spoils: true,
    async arrange(scene) {
      const { outgoingPayments } = scene.surface.world.resources
      await outgoingPayments.decline(await waitingFor(scene), { resourceOwner: 'alice' })
    },
  },
  {
    refusal: 'confirmation_expired',
    at: { createOutgoingPayment: '403 confirmation_expired' },
    kind: 'repeat',
    spoils: true,
    async arrange(scene) {
      await waitingFor(scene)
      scene.surface.world.clock.advance(60_000)
    },
  },
  {
    refusal: 'grant_ended',
    at: { createOutgoingPayment: '403 grant_ended' },
    kind: 'repeat',
    spoils: true,
    async arrange(scene) {
      const { world, shop } = scene.surface
      const ending = await grantToPay(world, shop)
      const { token } = scene.asked
      change(scene, { token: ending.token })
      await waitingFor(scene)
      await world.auth.grants.revoke(ending.grantId)
      change(scene, { token })
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
      surface.switches.price = async () => ({ ok: false, refusal: 'amount_missing' })
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
      switches.price = async () => ({
        ok: true,
        debitAmount: usd(1),
        receiveAmount: usd(1),
        expiresAt,
      })
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
    refusal: 'grant_paused',
    at: { createOutgoingPayment: '403 not_permitted_now' },
    spoils: true,
    arrange: (scene) =>
      amendAll(scene, { pausedUntil: scene.surface.world.clock.now() + 3_600_000 }),
  },
  {
    refusal: 'conditions_exceeded',
    at: { createOutgoingPayment: '403 not_permitted_now' },
    spoils: true,
    arrange: (scene) => amendAll(scene, { paymentMax: usd(0) }),
  },
  {
    refusal: 'account_limit_exceeded',
    at: { createOutgoingPayment: '403 not_permitted_now' },
    host({ surface }) {
      surface.switches.capped = true
    },
  },
  {
    refusal: 'amount_too_large',
    at: { createIncomingPayment: '400 invalid_amount' },
    host({ surface }) {
      surface.switches.unbounded = false
    },
  },
  {
    refusal: 'payment_not_allowed',
    at: each(['createIncomingPayment', 'createOutgoingPayment'], '403 payment_denied'),
    host({ surface: { switches } }) {
      switches.mayPay = false
      switches.mayReceive = false
    },
  },
  {
    refusal: 'funds_insufficient',
    at: { createOutgoingPayment: '403 insufficient_funds' },
    host({ surface }) {
      surface.switches.funded = false
    },
  },
  {
    refusal: 'confirmation_required',
    at: { createOutgoingPayment: '403 confirmation_required' },
    host({ surface }) {
      surface.switches.unconfirmed = false
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
    refusal: 'payment_expired',
    at: { completeIncomingPayment: '409 payment_expired' },
    async arrange(scene) {
      const { world, shop } = scene.surface
      const actions = ['create', 'complete'] as const
      const token = await tokenFor(scene, [{ type: 'incoming-payment', actions }])
      const expiresAt = new Date(world.clock.now() + 1).toISOString()
      const { body } = await shop.createPayment(token, { walletAddress: bob, expiresAt })
      world.clock.advance(2)
      change(scene, { url: `${body.id}/complete` })
    },
  },
]
