import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createWallet, ilpPaymentMethods, memoryStore } from '../../src/index.js'
import { jwkOf, testKey } from '../support/keys.js'
import { signedRequest } from '../support/sign.js'

const origin = 'https://wallet.example'
const key = testKey('shop')

function askedNow(handle: ReturnType<typeof createWallet>['handle']) {
  const access = [{ type: 'incoming-payment', actions: ['create'] }]
  const client = { jwk: jwkOf(key) }
  const body = JSON.stringify({ client, access_token: { access } })
  const created = Math.floor(Date.now() / 1_000)
  return handle(signedRequest({ key, method: 'POST', url: `${origin}/auth`, body, created }))
}

describe('the default clock', () => {
  afterEach(() => void vi.useRealTimers())

  test('is the global Date at each call, which tests replace after they have created a wallet', async () => {
    const { handle } = createWallet({
      baseUrl: origin,
      consentUrl: `${origin}/consent`,
      store: memoryStore(),
      walletAddresses: { find: async () => undefined },
      paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.w', secret: new Uint8Array(32) }),
    })
    vi.useFakeTimers({ now: Date.UTC(2030, 4, 5), toFake: ['Date'] })
    expect((await askedNow(handle)).status).toBe(200)
  })

  const folders = ['src', 'adapters', 'examples', 'programs', 'packages']
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => /\.(?:ts|js|mjs)$/.test(path))
      .filter((path) => !/node_modules|[\\/]dist[\\/]|[\\/]test[\\/]|\.d\.ts$/.test(path)),
  )

  test('is nowhere a Date or a Date.now that was read when the code was loaded', () => {
    const kept = /(?:\?\?|=>|[=:(,]) *Date(?:\.now)?\b(?! *[.(<>|\]])/
    const found = files.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => kept.test(line) && !/^\s*(?:\*|\/[/*])/.test(line))
        .filter((line) => !/[\w)]: Date(?:[;)]| \||$)/.test(line)) // a type
        .map((line) => `${path}: ${line.trim()}`),
    )
    expect(files.length).toBeGreaterThan(300)
    expect(found).toEqual([])
  })
})
