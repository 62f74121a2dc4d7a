import type { ServerOperation } from '../../../src/index.js'
import { testKey } from '../keys.js'
import { contentDigest, withHeader } from '../sign.js'
import { quoteToken } from '../spending.js'
import {
  atGrants,
  authorization,
  bend,
  type Cells,
  change,
  continuation,
  each,
  edit,
  type Fault,
  header,
  management,
  resources,
  wallets,
} from './fault.js'

const signatureCells: Cells = {
  ...each(atGrants, '401 invalid_client'),
  introspectToken: '400 invalid_resource_server',
  ...each(resources, '401 invalid_signature'),
}

/** The operations that give the result of the first again. */
const givenAgain: readonly ServerOperation[] = [
  'completeIncomingPayment',
  'createQuote',
  'createOutgoingPayment',
]

const answered = '409 signature_used'

/** A request whose signature, token or client is refused. */
export const authenticationFaults: readonly Fault[] = [
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
    refusal: 'client_invalid',
    name: 'the client does not publish the key',
    at: { continueGrant: '400 invalid_client', cancelGrant: '400 invalid_client' },
    kind: 'client',
    arrange(scene) {
      const { asked, sending } = scene
      const key = { ...(sending.key ?? asked.key ?? testKey('nobody')), kid: 'another-key' }
      scene.sending = { ...sending, key }
    },
  },
  {
    refusal: 'client_invalid',
    at: each(atGrants, '400 invalid_client'),
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
    at: { ...signatureCells, ...each(resources, '401 signature_used') },
    spoils: true,
    async arrange(scene) {
      const { ask, send } = scene.surface
      const { operation } = scene
      const atResources = (resources as readonly ServerOperation[]).includes(operation)
      const grantOrPayment = atResources ? 'createIncomingPayment' : 'requestGrant'
      const first = operation === 'introspectToken' ? operation : grantOrPayment
      // Of another second, so that its signature is another one.
      const created = Math.floor(scene.surface.world.clock.now() / 1_000) - 1
      await send(ask(first), { nonce: 'twice', created })
      scene.sending = { ...scene.sending, nonce: 'twice' }
    },
  },
  {
    refusal: 'repeated',
    at: {
      ...each(['requestGrant', 'continueGrant', 'rotateToken', 'introspectToken'], answered),
      ...each(
        resources.filter((operation) => !givenAgain.includes(operation)),
        answered,
      ),
    },
    kind: 'repeat',
    spoils: true,
    async arrange(scene) {
      scene.sending = { ...scene.sending, nonce: 'twice' }
      await scene.surface.send(scene.asked, scene.sending)
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
]
