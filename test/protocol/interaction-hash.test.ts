import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type InteractionHashInput, interactionHash } from '../../src/protocol/finish.js'
import { importWithoutNode } from '../support/portable.js'

const portable = await importWithoutNode(() => import('../../src/protocol/finish.js'))

const input: InteractionHashInput = {
  clientNonce: 'VJLO6A4CATR0KRO',
  serverNonce: 'MBDOFXG4Y5CVJCX821LH',
  interactRef: '4IFWWIKYB2PQ6U56NL1',
  grantEndpoint: 'https://server.example.com/tx',
}

const printable = fc
  .array(fc.integer({ min: 0x21, max: 0x7e }), { minLength: 1, maxLength: 40 })
  .map((codes) => String.fromCharCode(...codes))

describe.each([
  ['with Node', interactionHash],
  ['with Web Crypto only', portable.interactionHash],
])('the interaction hash %s', (_, interactionHash) => {
  test('covers the four values, separated by line feeds, without a trailing line feed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          clientNonce: printable,
          serverNonce: printable,
          interactRef: printable,
          grantEndpoint: printable,
        }),
        fc.constantFrom('sha-256', 'sha-512'),
        fc.constantFrom('base64', 'base64url'),
        async (input, method, encoding) => {
          const hash = createHash(method.replace('-', ''))
          hash.update(input.clientNonce).update(Uint8Array.of(10))
          hash.update(input.serverNonce).update(Uint8Array.of(10))
          hash.update(input.interactRef).update(Uint8Array.of(10))
          hash.update(input.grantEndpoint)
          expect(await interactionHash(input, method, encoding)).toBe(hash.digest(encoding))
        },
      ),
      { numRuns: 100 },
    )
  })
})

describe('the encoding of the interaction hash', () => {
  test('uses padding and the standard alphabet for base64', async () => {
    expect(await interactionHash(input, 'sha-256', 'base64')).toMatch(/^[A-Za-z0-9+/]{43}=$/)
    expect(await interactionHash(input, 'sha-512', 'base64')).toMatch(/^[A-Za-z0-9+/]{86}==$/)
  })

  test('uses no padding for base64url', async () => {
    expect(await interactionHash(input, 'sha-256', 'base64url')).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(await interactionHash(input, 'sha-512', 'base64url')).toMatch(/^[A-Za-z0-9_-]{86}$/)
  })
})

describe('the interaction hash that a client verifies', () => {
  const changes: readonly (readonly [string, Partial<InteractionHashInput>])[] = [
    ['its own nonce', { clientNonce: 'VJLO6A4CATR0KRP' }],
    ['the nonce of the authorization server', { serverNonce: 'MBDOFXG4Y5CVJCX821LI' }],
    ['the reference', { interactRef: '4IFWWIKYB2PQ6U56NL2' }],
    ['a slash after the grant endpoint', { grantEndpoint: 'https://server.example.com/tx/' }],
    [
      'an upper-case letter in the grant endpoint',
      { grantEndpoint: 'https://Server.example.com/tx' },
    ],
    ['another grant endpoint on the host', { grantEndpoint: 'https://server.example.com/b/tx' }],
    [
      'the two nonces exchanged',
      { clientNonce: input.serverNonce, serverNonce: input.clientNonce },
    ],
  ]

  test.each(changes)('changes with %s', async (_, change) => {
    const hash = await interactionHash(input, 'sha-256', 'base64')
    expect(await interactionHash({ ...input, ...change }, 'sha-256', 'base64')).not.toBe(hash)
  })
})
