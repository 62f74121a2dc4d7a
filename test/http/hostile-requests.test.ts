import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Json } from '../../src/core/stored.js'
import * as library from '../../src/index.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { hostileRequests, serversWithoutKeys, sizeOf } from '../support/hostile-requests.js'

/** The work that one request causes, in units that do not depend on the machine. */
const noWork = {
  dictionaryCharacters: 0,
  queryCharacters: 0,
  hashedBytes: 0,
  jsonValues: 0,
  verifications: 0,
  verifiedCharacters: 0,
}
const work = vi.hoisted(() => ({}) as Record<keyof typeof noWork, number>)

vi.mock('../../src/protocol/http-signature/dictionary.js', async (original) => {
  const real = await original<typeof import('../../src/protocol/http-signature/dictionary.js')>()
  return {
    ...real,
    parseStrictDictionary(text: string) {
      // A longer text is refused by its length.
      if (text.length <= real.dictionaryLengthMax) work.dictionaryCharacters += text.length
      return real.parseStrictDictionary(text)
    },
  }
})

vi.mock('../../src/util/hash.js', async (original) => {
  const real = await original<typeof import('../../src/util/hash.js')>()
  const counted =
    (digest: typeof real.sha256): typeof real.sha256 =>
    (data) => {
      work.hashedBytes += data.length
      return digest(data)
    }
  return { ...real, sha256: counted(real.sha256), sha512: counted(real.sha512) }
})

vi.mock('../../src/protocol/http-signature/ed25519.js', async (original) => {
  const real = await original<typeof import('../../src/protocol/http-signature/ed25519.js')>()
  return {
    ...real,
    verifierOf(x: string) {
      const verify = real.verifierOf(x)
      return (signature: Uint8Array, base: string) => {
        work.verifications += 1
        work.verifiedCharacters += base.length
        return verify?.(signature, base) ?? false
      }
    },
  }
})

vi.stubGlobal(
  'URLSearchParams',
  class extends URLSearchParams {
    constructor(query: string) {
      work.queryCharacters += query.length
      super(query)
    }
  },
)

const { parse } = JSON
vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
  const value = parse(text)
  work.jsonValues += valuesIn(value)
  return value
})

function valuesIn(root: Json): number {
  const open = [root]
  for (const value of open) {
    if (typeof value === 'object' && value !== null) open.push(...Object.values(value))
  }
  return open.length
}

afterAll(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const requests = hostileRequests(startOfTests / 1000)

describe('a request of a stranger', () => {
  const commit = vi.fn(async () => true)
  const store = { ...library.memoryStore(), commit }
  const handlers = serversWithoutKeys(library, { store, clock: manualClock() })
  beforeEach(() => void Object.assign(work, noWork))

  test.each(requests)('costs little and changes nothing: $name', async ({ server, variants }) => {
    const [request] = variants
    if (request === undefined) throw new Error('no request')
    expect(sizeOf(request)).toBeLessThanOrEqual(64 * 1024)
    const { status } = await handlers[server](request)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(commit).not.toHaveBeenCalled()
    expect(work.dictionaryCharacters).toBeLessThanOrEqual(3 * 2048)
    expect(work.queryCharacters).toBeLessThanOrEqual(4096)
    expect(work.hashedBytes).toBeLessThanOrEqual(2 * request.body.length)
    expect(work.jsonValues).toBeLessThanOrEqual(513)
    expect(work.verifications).toBeLessThanOrEqual(2)
    expect(work.verifiedCharacters).toBeLessThanOrEqual(2 * (8192 + 2 * 2048))
  })

  test('may cause all of this work, so the limits are tested', async () => {
    const most = { ...noWork }
    for (const { server, variants } of requests) {
      Object.assign(work, noWork)
      for (const request of variants) await handlers[server](request)
      for (const unit of Object.keys(noWork) as (keyof typeof noWork)[]) {
        most[unit] = Math.max(most[unit], work[unit])
      }
    }
    expect(most.dictionaryCharacters).toBeGreaterThan(2 * 2048)
    expect(most.queryCharacters).toBeGreaterThan(3_900)
    expect(most.hashedBytes).toBeGreaterThan(100_000)
    expect(most.jsonValues).toBeGreaterThan(490)
    expect(most.verifications).toBe(2)
    expect(most.verifiedCharacters).toBeGreaterThan(2 * 7_900)
  })
})
