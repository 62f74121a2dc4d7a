import { authenticationFaults } from './faults/authentication.js'
import {
  atGrants,
  authorization,
  bend,
  change,
  creating,
  each,
  edit,
  everywhere,
  type Fault,
  header,
  listing,
  resources,
  type Scene,
  walletServer,
  wallets,
} from './faults/fault.js'
import { grantFaults } from './faults/grants.js'
import { paymentFaults } from './faults/payments.js'
import { withHeader } from './sign.js'

export type { Fault, Scene } from './faults/fault.js'

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

const malformed: readonly Fault[] = [
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
]

/** A store or an account source that fails. */
const failures: readonly Fault[] = [
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
      surface.switches.accounts = Object.assign(new Error('it has failed'), {
        code: 'ERR_TRANSACTION_FAILED',
      })
    },
  },
]

/** Every refusal that an operation can have, in order of precedence: how it comes about, and its response. */
export const faults: readonly Fault[] = [
  ...authenticationFaults,
  ...malformed,
  ...grantFaults,
  ...paymentFaults,
  ...failures,
]

/** Applies faults to a request, the first of them last, so that no other one hides it. */
export async function arrange(scene: Scene, some: readonly Fault[]): Promise<void> {
  const lastFirst = some.toReversed()
  for (const fault of lastFirst) await fault.arrange?.(scene)
  for (const fault of lastFirst) await fault.host?.(scene)
}
