import { describe, expect, test } from 'vitest'
import { requireFreePaths } from '../../examples/wallet/accounts.js'
import { createWalletAddressServer } from '../../src/index.js'

const origin = 'https://wallet.example'
const addresses = createWalletAddressServer({
  baseUrl: origin,
  grantEndpoint: `${origin}/auth`,
  resourceServerUrl: origin,
  walletAddresses: { find: async () => undefined },
})
const mounts = [{ path: '/.well-known' }, { path: '' }]

describe('the names of accounts', () => {
  test.each(['/quotes', '/.well-known'])('%s is refused, because a route serves it', (path) => {
    const accounts = [{ url: `${origin}/alice` }, { url: origin + path }]
    expect(() => requireFreePaths(accounts, addresses, mounts)).toThrow('needs another name')
  })

  test('are accepted if no route serves them', () => {
    expect(() => requireFreePaths([{ url: `${origin}/alice` }], addresses, mounts)).not.toThrow()
  })
})
