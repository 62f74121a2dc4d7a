import { readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import * as native from '../../../src/protocol/http-signature/ed25519.js'
import { importOnWorkers, importWithoutNode, withoutWebEd25519 } from '../../support/portable.js'

// Verifiers take text, and 67 of the messages are not UTF-8: here, each character stands for one byte.
vi.mock('../../../src/util/bytes.js', async (original) => ({
  ...(await original<object>()),
  encodeUtf8: (text: string) => Buffer.from(text, 'latin1'),
}))

const portable = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/ed25519.js'),
)
const noble = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/ed25519.js'),
)
const onWorkers = await importOnWorkers(
  () => import('../../../src/protocol/http-signature/ed25519.js'),
)

interface Vector {
  readonly tcId: number
  readonly msg: string
  readonly sig: string
  readonly result: 'valid' | 'invalid'
}

interface Group {
  readonly publicKey: { readonly pk: string }
  readonly tests: readonly Vector[]
}

const { testGroups }: { testGroups: readonly Group[] } = JSON.parse(
  readFileSync(new URL('wycheproof/ed25519.json', import.meta.url), 'utf8'),
)

const vectors = testGroups.flatMap(({ publicKey, tests }) =>
  tests.map(({ tcId, msg, sig, result }) => ({
    tcId,
    key: Buffer.from(publicKey.pk, 'hex'),
    message: Buffer.from(msg, 'hex'),
    signature: Buffer.from(sig, 'hex'),
    result,
  })),
)

const expected = vectors.map(({ tcId, result }) => ({ tcId, result }))

type Verify = (vector: (typeof vectors)[number]) => Promise<boolean>

const verifying =
  ({ verifierOf }: Pick<typeof native, 'verifierOf'>): Verify =>
  ({ key, message, signature }) => {
    const verify = verifierOf(key.toString('base64url'))
    if (verify === undefined) throw new Error('the key was refused')
    return verify(signature, message.toString('latin1'))
  }

async function outcomeOf(verify: Verify, vector: (typeof vectors)[number]) {
  return { tcId: vector.tcId, result: (await verify(vector)) ? 'valid' : 'invalid' }
}

/** Verifies the vectors one by one, each after the previous one. */
async function inTurn(verify: Verify) {
  const outcomes = []
  for (const vector of vectors) outcomes.push(await outcomeOf(verify, vector))
  return outcomes
}

describe('the Ed25519 vectors of Wycheproof', () => {
  test('are 151: 88 valid signatures and 63 invalid ones', () => {
    expect(vectors).toHaveLength(151)
    expect(vectors.filter(({ result }) => result === 'valid')).toHaveLength(88)
  })

  test.each<readonly [string, Verify]>([
    ['Web Crypto alone', verifying(portable)],
    ['Cloudflare Workers', verifying(onWorkers)],
  ])('have their result with %s', async (_, verify) => {
    expect(await inTurn(verify)).toEqual(expected)
  })

  test('have their result with @noble/ed25519 alone', async () => {
    withoutWebEd25519()
    expect(await inTurn(verifying(noble))).toEqual(expected)
    vi.restoreAllMocks()
  })

  test('have their result on the thread of a Node process, and on its thread pool', async () => {
    const calls = vi.spyOn(process.getBuiltinModule('node:crypto'), 'verify')
    const onPool = () => calls.mock.calls.filter((given) => given.length === 5).length
    expect(await inTurn(verifying(native))).toEqual(expected)
    expect([calls.mock.calls.length, onPool()]).toEqual([151, 0])
    calls.mockClear()
    const together = vectors.map((vector) => outcomeOf(verifying(native), vector))
    expect(await Promise.all(together)).toEqual(expected)
    expect([calls.mock.calls.length, onPool()]).toEqual([151, 151])
    calls.mockRestore()
  })
})
