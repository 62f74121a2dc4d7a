import { validateSignature, validateSignatureHeaders } from '@interledger/http-signature-utils'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidInputError, requestSigner } from '../../../src/index.js'
import {
  inspectSignatures,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import { startOfTests } from '../../support/clock.js'
import { privateJwkOf } from '../../support/introspection.js'
import { jwkOf, testKey } from '../../support/keys.js'
import { messageOf, messageOrigin, profileFreshness } from '../../support/signed-message.js'

const key = testKey('app')
const sign = requestSigner({ keyId: key.kid, privateKey: privateJwkOf(key) })
const url = `${messageOrigin}/outgoing-payments`
const body = new TextEncoder().encode('{"quoteId":"1"}')

describe('a request that requestSigner signs', () => {
  const parts = fc.record(
    {
      body: fc.json().map((text) => new TextEncoder().encode(text)),
      token: fc.stringMatching(/^[A-Za-z0-9._~+/-]{1,80}$/),
      idempotencyKey: fc.stringMatching(/^[\x20-\x7e]{1,255}$/),
      nonce: fc.uuid(),
    },
    { requiredKeys: [] },
  )

  test('has a signature that the published validator and this library accept', async () => {
    await fc.assert(
      fc.asyncProperty(parts, async (given) => {
        const method = given.body === undefined ? 'GET' : 'POST'
        const headers = await sign({ method, url, createdAt: startOfTests, ...given })
        const text = given.body && new TextDecoder().decode(given.body)
        const sent = { method, url, headers, ...(text !== undefined && { body: text }) }
        expect(validateSignatureHeaders(sent)).toBe(true)
        expect(await validateSignature({ ...jwkOf(key), alg: 'EdDSA' }, sent)).toBe(true)
        const message = messageOf({
          method,
          url: new URL(url).pathname,
          headers: Object.entries(headers),
          body: given.body ?? new Uint8Array(),
        })
        const inspected = await inspectSignatures(message, startOfTests, profileFreshness)
        expect(inspected).toMatchObject({ ok: true })
        if (!inspected.ok) return
        expect(await verifyCandidates(inspected.value, { kid: key.kid, x: key.x })).toBeDefined()
      }),
    )
  })

  test('covers all header fields that it returns, except the signature', async () => {
    const headers = await sign({
      ...{ method: 'POST', url, body, token: 't', idempotencyKey: 'order "7"' },
      createdAt: startOfTests,
    })
    const { signature: _, 'signature-input': input = '', ...covered } = headers
    expect(Object.keys(covered).sort()).toEqual([
      'authorization',
      'content-digest',
      'content-length',
      'content-type',
      'idempotency-key',
    ])
    for (const name of ['@method', '@target-uri', ...Object.keys(covered)]) {
      expect(input).toContain(`"${name}"`)
    }
    expect(headers['idempotency-key']).toBe('"order \\"7\\""')
  })
})

test('a key that cannot sign is refused without its text', () => {
  const d = 'c2VjcmV0'
  const create = () => requestSigner({ keyId: 'app', privateKey: { ...privateJwkOf(key), d } })
  expect(create).toThrow(InvalidInputError)
  expect(create).not.toThrow(d)
})
