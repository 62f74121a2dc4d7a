import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Introspection } from '../../src/index.js'
import { cachedIntrospect } from '../../src/outbound/introspection-cache.js'
import type { Introspect } from '../../src/ports/host.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { testKey } from '../support/keys.js'

const { kid, x, thumbprint } = testKey('shop')

/** An authorization server whose tokens are active until they are revoked. Records each request. */
function setUp(options: { ttlMs: number; entriesMax?: number } = { ttlMs: 1_000 }) {
  const clock = manualClock()
  const asked: string[] = []
  const revoked = new Set<string>()
  const server = {
    expiresAt: startOfTests + 600_000,
    failing: false,
    /** Runs during each request. */
    meanwhile: () => {},
  }

  async function introspect(query: Parameters<Introspect>[0]): Promise<Introspection> {
    const { accessToken, keyid } = query
    asked.push(keyid === undefined ? accessToken : `${accessToken} of ${keyid}`)
    if (server.failing) throw new Error('out of order')
    const active = !revoked.has(accessToken)
    server.meanwhile()
    if (!active) return { active }
    const { expiresAt } = server
    return { active, grantId: accessToken, access: [], key: { kid, x, thumbprint }, expiresAt }
  }

  const cached = cachedIntrospect(introspect, clock, { entriesMax: 10_000, ...options })
  const isActive = async (accessToken: string) => (await cached({ accessToken })).active
  return { clock, asked, revoked, server, cached, isActive }
}

describe('an active token', () => {
  test('is never cached beyond its expiry', async () => {
    const { clock, asked, server, isActive } = setUp()
    server.expiresAt = startOfTests + 300
    await isActive('a')
    clock.advance(299)
    await isActive('a')
    expect(asked).toHaveLength(1)
    clock.advance(1)
    await isActive('a')
    await isActive('a')
    expect(asked).toHaveLength(3)
  })

  test('has no influence on other tokens', async () => {
    const { asked, revoked, isActive } = setUp()
    revoked.add('b')
    expect([await isActive('a'), await isActive('b'), await isActive('a')]).toEqual([
      true,
      false,
      true,
    ])
    expect(asked).toEqual(['a', 'b'])
  })
})

describe('the cache does not keep', () => {
  test('an inactive response', async () => {
    const { asked, revoked, isActive } = setUp()
    revoked.add('a')
    expect(await isActive('a')).toBe(false)
    revoked.clear()
    expect(await isActive('a')).toBe(true)
    expect(asked).toHaveLength(2)
  })

  test('a failure, which leaves existing entries unchanged', async () => {
    const { clock, asked, server, isActive } = setUp()
    server.failing = true
    await expect(isActive('a')).rejects.toThrow('out of order')
    server.failing = false
    expect(await isActive('a')).toBe(true)
    server.failing = true
    expect(await isActive('a')).toBe(true)
    clock.advance(1_000)
    await expect(isActive('a')).rejects.toThrow('out of order')
    expect(asked).toHaveLength(3)
  })

  test('an answer with another key than was asked about, which would evict those of clients', async () => {
    const { asked, cached } = setUp({ ttlMs: 1_000, entriesMax: 2 })
    for (const keyid of [kid, 'other', kid, 'next', 'other', kid]) {
      await cached({ accessToken: 'a', keyid })
    }
    expect(asked).toEqual([`a of ${kid}`, 'a of other', 'a of next', 'a of other'])
  })

  test('more tokens than its capacity: it keeps the half that was used last', async () => {
    const { asked, isActive } = setUp({ ttlMs: 1_000, entriesMax: 4 })
    for (const token of ['a', 'b', 'a', 'c', 'a', 'd', 'a', 'e', 'a', 'b']) await isActive(token)
    expect(asked).toEqual(['a', 'b', 'c', 'd', 'e', 'b'])
  })
})

test('in any history, a token is reported as active only if it was active within the time to live', async () => {
  const token = fc.constantFrom('a', 'b', 'c')
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ ask: token }) },
    { weight: 1, arbitrary: fc.record({ revoke: token }) },
    { weight: 1, arbitrary: fc.record({ revive: token }) },
    { weight: 2, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 700 }) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { clock, revoked, isActive, server } = setUp({ ttlMs: 500, entriesMax: 2 })
      server.expiresAt = startOfTests + 5_000
      const revokedAt = new Map<string, number>()
      for (const step of steps) {
        const now = clock.now()
        if ('pass' in step) clock.advance(step.pass)
        else if ('revoke' in step && !revoked.has(step.revoke)) {
          revoked.add(step.revoke)
          revokedAt.set(step.revoke, now)
        } else if ('revive' in step) {
          revoked.delete(step.revive)
          revokedAt.delete(step.revive)
        } else if ('ask' in step) {
          const since = revokedAt.get(step.ask)
          const active = await isActive(step.ask)
          if (since === undefined) expect(active).toBe(true)
          else if (now - since >= 500) expect(active).toBe(false)
        }
      }
    }),
    { numRuns: 200 },
  )
})
