import { describe, expect, test } from 'vitest'
import { requireFreePaths } from '../../examples/wallet/accounts.js'

const mounts = [{ path: '/quotes' }, { path: '/.well-known' }, { path: '' }]
const accounts = (path: string) => [{ url: `https://wallet.example${path}` }]

describe('the names of accounts', () => {
  test.each(['/quotes', '/Quotes', '/quotes/alice', '/.well-known'])(
    '%s is refused, because a route serves it',
    (path) => {
      expect(() => requireFreePaths(accounts(path), mounts)).toThrow('needs another name')
    },
  )

  test.each(['/alice', '/quotes2', '/alice/quotes', '/'])('%s is free', (path) => {
    expect(() => requireFreePaths(accounts(path), mounts)).not.toThrow()
  })
})
