import {
  type CreatedWallet,
  plainWallet,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { invalidInput } from 'open-payments-test-support/invalid-input'
import { testKey } from 'open-payments-test-support/keys'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ServerConformanceOptions, serverConformance } from '../src/index.js'

const walletAddress = 'http://localhost:9/alice'
const { privateKey } = testKey('client')
const client = { walletAddress: 'https://client.example', keyId: 'one', privateKey }
const consent = async () => 'https://client.example/finish'

describe('the suite for servers', () => {
  let wallet: CreatedWallet

  beforeAll(async () => {
    wallet = await startCreatedWallet({ adapter: 'hono', create: plainWallet })
  })
  afterAll(() => wallet.stop())

  test('passes on a created wallet, with a new key as the client', async () => {
    const cases = serverConformance({ walletAddress: `${wallet.baseUrl}/alice` })
    // One after the other: all at once would be too slow for their time limits on a busy machine.
    for (const { run } of cases) await run()
    expect(cases.length).toBeGreaterThan(60)
  })

  test('has cases with unique ids and names, and a rule of an RFC or the OpenAPI documents', () => {
    const cases = serverConformance({ walletAddress, client, consent })
    for (const part of ['id', 'name'] as const) {
      expect(new Set(cases.map((each) => each[part])).size).toBe(cases.length)
    }
    for (const { rule, level } of cases) {
      expect(rule).toMatch(/^(RFC \d{4} section \d|OpenAPI \w|Fetch standard)/)
      expect(level).toMatch(/^(required|recommended)$/)
    }
  })

  test('leaves out what needs a wallet address of the client, or an owner, if there is none', () => {
    const [none, known, all] = [{}, { client }, { client, consent }].map((some) =>
      serverConformance({ walletAddress, ...some }).map(({ id }) => id),
    )
    expect(none).not.toContain('grant-pending')
    expect(known).toContain('grant-pending')
    expect(known).not.toContain('outgoing-create')
    expect(all).toContain('outgoing-create')
  })

  test('names the rule and the request if a server cannot be reached', async () => {
    const refused = async () => {
      throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
    }
    const [first] = serverConformance({ walletAddress, fetch: refused })
    await expect(first?.run()).rejects.toThrow(
      'OpenAPI get-wallet-address: fetch failed: connect ECONNREFUSED',
    )
  })

  test('stops waiting for a server that does not respond', async () => {
    const silent = () => new Promise<Response>(() => {})
    const [first] = serverConformance({ walletAddress, fetch: silent, timeoutMs: 20 })
    expect(first?.timeoutMs).toBeGreaterThan(20)
    await expect(first?.run()).rejects.toThrow('within 20 ms the case did not finish')
  })

  test('reads at most 1 MiB of a response', async () => {
    const endless = async () => new Response('x'.repeat(1024 * 1024 + 1))
    const [first] = serverConformance({ walletAddress, fetch: endless })
    await expect(first?.run()).rejects.toThrow('more than 1 MiB')
  })

  test.each([
    ['walletAddress', { walletAddress: 'alice' }],
    ['receiver', { walletAddress, receiver: 'bob' }],
    ['finishUri', { walletAddress, finishUri: '/finish' }],
    ['client', { walletAddress, consent }],
    ['client.walletAddress', { walletAddress, client: { ...client, walletAddress: 'client' } }],
    ['client.privateKey', { walletAddress, client: { ...client, privateKey: {} } }],
    ['client.key', { walletAddress, client: { ...client, key: privateKey } }],
    ['wallet', { walletAddress, wallet: walletAddress }],
  ])('rejects an invalid value of %s', (option, options) => {
    const make = () => serverConformance(options as ServerConformanceOptions)
    expect(make).toThrow(invalidInput(option))
  })
})
