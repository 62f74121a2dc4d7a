import { describe, expect, test } from 'vitest'
import { siteOf } from '../../src/network/site.js'

describe('the site of a host', () => {
  test.each([
    ['shop.example', 'shop.example'],
    ['a.shop.example', 'shop.example'],
    ['b.a.shop.example', 'shop.example'],
    ['shop.co.uk', 'shop.co.uk'],
    ['a.shop.co.uk', 'shop.co.uk'],
    ['a.b.shop.com.br', 'shop.com.br'],
    ['co.uk', 'co.uk'],
    ['a.b.shop.anything.ck', 'shop.anything.ck'],
    ['localhost', 'localhost'],
  ])('of %s is the registered domain: %s', (host, site) => {
    expect(siteOf(host)).toBe(site)
  })

  test.each([
    ['abc.io', 'a.abc.io', 'b.abc.io'],
    ['shop.com', 'co.shop.com', 'a.co.shop.com'],
    ['ltd.cc', 'a.ltd.cc', 'b.ltd.cc'],
    ['co.nl', 'a.co.nl', 'b.a.co.nl'],
    ['constructor.uk', 'a.constructor.uk', 'b.constructor.uk'],
  ])('is the same for all subdomains, whatever their labels: %s', (site, ...hosts) => {
    for (const host of hosts) expect(siteOf(host)).toBe(site)
  })

  test('is one for all addresses, because a client can name any address', () => {
    const sites = ['8.8.8.8', '1.1.1.1', '[2606:4700::1111]', '[::1]'].map(siteOf)
    expect(new Set(sites)).toEqual(new Set(['addresses']))
  })

  test('is approximate: hosts of different owners below one domain share it', () => {
    expect(siteOf('alice.hosting.example')).toBe(siteOf('bob.hosting.example'))
  })
})
