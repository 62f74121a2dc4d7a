import { describe, expect, test } from 'vitest'
import type { Introspection } from '../../src/index.js'
import { boundedIntrospect } from '../../src/outbound/bounded-introspection.js'
import type { Introspect } from '../../src/ports/host.js'
import { rejectionOf } from '../support/introspection.js'
import { testKey } from '../support/keys.js'

const { kid, x, thumbprint } = testKey('shop')

/** An authorization server that holds each request until the test lets it answer. */
function heldServer() {
  const sent: string[] = []
  const revoked = new Set<string>()
  let held: (() => void)[] = []

  function introspect({ accessToken, keyid }: Parameters<Introspect>[0]): Promise<Introspection> {
    sent.push(keyid === undefined ? accessToken : `${accessToken} of ${keyid}`)
    const active = !revoked.has(accessToken) && !accessToken.startsWith('junk')
    const answer: Introspection = active
      ? { active, grantId: 'g', access: [], key: { kid, x, thumbprint }, expiresAt: 1 }
      : { active }
    return new Promise((resolve) => held.push(() => resolve(answer)))
  }

  const bounded = boundedIntrospect(introspect)
  return {
    sent,
    revoked,
    ask: async (accessToken: string, keyid?: string) =>
      (await bounded({ accessToken, ...(keyid !== undefined && { keyid }) })).active,
    /** Lets the requests answer that have been sent. */
    answer() {
      const answers = held
      held = []
      for (const each of answers) each()
    },
  }
}

/** Answers all requests, and those that are sent then. */
async function settle<Value>({ answer }: { answer(): void }, work: Promise<Value>): Promise<Value> {
  let over = false
  const ended = work.finally(() => {
    over = true
  })
  while (!over) {
    answer()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return ended
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`)
}

describe('requests about one token', () => {
  test('share one request, however many arrive before it is sent', async () => {
    const server = heldServer()
    const asked = Array.from({ length: 1_000 }, () => server.ask('a'))
    await expect.poll(() => server.sent.length).toBeGreaterThan(0)
    expect(new Set(await settle(server, Promise.all(asked)))).toEqual(new Set([true]))
    expect(server.sent.length).toBeLessThanOrEqual(2)
  })

  test('that arrive later are answered by a later request, so that a revocation takes effect', async () => {
    const server = heldServer()
    const before = server.ask('a')
    await expect.poll(() => server.sent).toEqual(['a'])
    server.revoked.add('a')
    const after = Promise.all([server.ask('a'), server.ask('a'), server.ask('a')])
    expect(await settle(server, Promise.all([before, after]))).toEqual([
      true,
      [false, false, false],
    ])
    expect(server.sent).toEqual(['a', 'a'])
  })

  test('that fail reject all who share them, and the next one is sent again', async () => {
    let failing = true
    let sent = 0
    const bounded = boundedIntrospect(async () => {
      sent += 1
      if (failing) throw new Error('out of order')
      return { active: false }
    })
    const both = await Promise.all([
      rejectionOf(bounded({ accessToken: 'a' })),
      rejectionOf(bounded({ accessToken: 'a' })),
    ])
    expect(both.map(({ message }) => message)).toEqual(['out of order', 'out of order'])
    failing = false
    const before = sent
    expect(await bounded({ accessToken: 'a' })).toEqual({ active: false })
    expect(sent).toBe(before + 1)
  })
})

describe('requests about many tokens', () => {
  test('are sent 64 at a time, 128 wait, and the others are rejected immediately', async () => {
    const server = heldServer()
    const outcomes = names('junk', 1_000).map((token) =>
      server.ask(token).catch((error: Error) => error.message),
    )
    const full = 'too many introspection requests are in progress'
    let rejected = 0
    for (const outcome of outcomes) void outcome.then((end) => (rejected += end === full ? 1 : 0))
    await expect.poll(() => rejected).toBe(1_000 - 64 - 128)
    expect(server.sent).toHaveLength(64)
    const ends = await settle(server, Promise.all(outcomes))
    expect(ends.filter((end) => end === false)).toHaveLength(64 + 128)
    expect(server.sent).toHaveLength(64 + 128)
  })

  test('that a stranger invents do not delay those of a token that was active before', async () => {
    const server = heldServer()
    expect(await settle(server, server.ask('honest'))).toBe(true)
    const junk = names('junk', 1_000).map((token) => server.ask(token).catch(() => undefined))
    await expect.poll(() => server.sent.length).toBe(65)
    const honest = server.ask('honest')
    await expect.poll(() => server.sent.at(-1)).toBe('honest')
    expect(await settle(server, honest)).toBe(true)
    await settle(server, Promise.all(junk))
  })

  test.each([
    ['the token', undefined],
    ['its published key', kid],
  ])('that invent a keyid do not delay those about %s', async (_, keyid) => {
    const server = heldServer()
    expect(await settle(server, server.ask('honest', keyid))).toBe(true)
    const junk = names('junk', 1_000).map((each) => server.ask('honest', each).catch(() => false))
    await expect.poll(() => server.sent.length).toBe(65)
    const honest = server.ask('honest', keyid)
    await expect.poll(() => server.sent.at(-1)).toBe(keyid ? `honest of ${keyid}` : 'honest')
    expect(await settle(server, honest)).toBe(true)
    expect(await settle(server, Promise.all(junk))).toContain(true)
    await settle(server, Promise.all(names('junk', 9).map((each) => server.ask('honest', each))))
    expect(server.sent.slice(-9)).toEqual(names('honest of junk', 9))
  })

  test('lose their own slots once their token is inactive', async () => {
    const server = heldServer()
    await settle(server, server.ask('left'))
    server.revoked.add('left')
    expect(await settle(server, server.ask('left'))).toBe(false)
    const junk = names('junk', 1_000).map((token) => server.ask(token).catch(() => undefined))
    await expect.poll(() => server.sent.length).toBe(66)
    expect((await rejectionOf(server.ask('left'))).message).toMatch('too many')
    await settle(server, Promise.all(junk))
  })
})
