import { jwkOf } from '../keys.js'
import { alice, interactionId, outgoingAccess, withFinish, withoutFinish } from '../world.js'
import { change, edit, type Fault, type Scene } from './fault.js'

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

/** A grant request that is refused, or a grant in a state in which it cannot be used. */
export const grantFaults: readonly Fault[] = [
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
    refusal: 'interact_ref_used',
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
      // A replaced token yields its successor until that expires.
      world.clock.advance(600_000)
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
]
