import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchRoute, type ServerRoute } from '../../src/http/routes.js'
import { createSpendingWorld } from '../support/spending.js'
import { createWorld } from '../support/world.js'

const { auth, resources, wallets } = createWorld()

function found(routes: readonly ServerRoute[], method: string, path: string): string {
  const match = matchRoute(routes, method, path)
  if (!match.ok) {
    return match.refusal === 'route_unknown' ? 'unknown' : `allow ${match.allow}`
  }
  return `${match.value.route.operation} ${match.value.id}`
}

const id = 'abcDEF-_0123.secret'

describe('the routes of the authorization server', () => {
  test.each([
    ['POST', '', 'requestGrant '],
    ['POST', '/', 'requestGrant '],
    ['OPTIONS', '', 'discover '],
    ['OPTIONS', '/', 'discover '],
    ['POST', `/continue/${id}`, `continueGrant ${id}`],
    ['POST', `/continue/${id}/`, `continueGrant ${id}`],
    ['DELETE', `/continue/${id}`, `cancelGrant ${id}`],
    ['POST', `/token/${id}`, `rotateToken ${id}`],
    ['DELETE', `/token/${id}`, `revokeToken ${id}`],
    ['POST', '/token/%41', 'rotateToken %41'],
  ])('resolve %s %s to %s', (method, path, expected) => {
    expect(found(auth.routes, method, path)).toBe(expected)
  })

  test.each([
    '/continue',
    '/continue/',
    `/continue/${id}//`,
    `/continue/${id}/more`,
    `/continue//${id}`,
    `/Continue/${id}`,
    `/continue${id}`,
    `/x/continue/${id}`,
    '/token',
    '/token/',
    '/tokens/x',
    '/introspect',
    '//',
    '/favicon.ico',
  ])('do not include %s for any method', (path) => {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD']) {
      expect(found(auth.routes, method, path)).toBe('unknown')
    }
  })

  test.each([
    ['GET', '', 'allow POST, OPTIONS'],
    ['HEAD', '', 'allow POST, OPTIONS'],
    ['DELETE', '/', 'allow POST, OPTIONS'],
    ['options', '', 'allow POST, OPTIONS'],
    ['OPTIONS', `/continue/${id}`, 'allow POST, DELETE'],
    ['PATCH', `/continue/${id}`, 'allow POST, DELETE'],
    ['PUT', `/continue/${id}`, 'allow POST, DELETE'],
    ['GET', `/token/${id}`, 'allow POST, DELETE'],
    ['post', `/token/${id}`, 'allow POST, DELETE'],
    ['Delete', `/token/${id}`, 'allow POST, DELETE'],
    ['PROPFIND', `/token/${id}`, 'allow POST, DELETE'],
    ['', `/token/${id}`, 'allow POST, DELETE'],
  ])('refuse %s %j with the allowed methods: %s', (method, path, expected) => {
    expect(found(auth.routes, method, path)).toBe(expected)
  })
})

describe('the routes of the resource server', () => {
  test.each([
    ['POST', '/incoming-payments', 'createIncomingPayment '],
    ['GET', '/incoming-payments', 'listIncomingPayments '],
    ['HEAD', '/incoming-payments/', 'listIncomingPayments '],
    ['GET', `/incoming-payments/${id}`, `getIncomingPayment ${id}`],
    ['HEAD', `/incoming-payments/${id}`, `getIncomingPayment ${id}`],
    ['GET', '', 'unknown'],
    ['GET', '/', 'unknown'],
    ['POST', `/incoming-payments/${id}/complete`, `completeIncomingPayment ${id}`],
    ['GET', `/incoming-payments/${id}/complete`, 'allow POST'],
    ['POST', '/incoming-payments/complete', 'allow GET, HEAD'],
    ['POST', '/incoming-payments//complete', 'unknown'],
    ['POST', `/incoming-payments/${id}/x/complete`, 'unknown'],
    ['POST', `/incoming-payments/${id}/complete/`, `completeIncomingPayment ${id}`],
    ['GET', `/incoming-payments/${id}/`, `getIncomingPayment ${id}`],
    ['GET', `/incoming-payments/${id}//`, 'unknown'],
    ['GET', '/incoming-payments//', 'unknown'],
    ['GET', `/outgoing-payments/${id}`, 'unknown'],
    ['DELETE', `/incoming-payments/${id}`, 'allow GET, HEAD'],
    ['get', `/incoming-payments/${id}`, 'allow GET, HEAD'],
    ['PUT', '/incoming-payments', 'allow POST, GET, HEAD'],
  ])('resolve %s %s to %s', (method, path, expected) => {
    expect(found(resources.routes, method, path)).toBe(expected)
  })
})

describe('the routes of the wallet addresses', () => {
  test.each([
    ['GET', '/alice', 'getWalletAddress /alice'],
    ['HEAD', '/alice', 'getWalletAddress /alice'],
    ['GET', '/a/b/c', 'getWalletAddress /a/b/c'],
    ['GET', '/alice/', 'getWalletAddress /alice'],
    ['GET', '', 'getWalletAddress '],
    ['GET', '/', 'getWalletAddress '],
    ['GET', '/alice/jwks.json', 'getWalletAddressKeys /alice'],
    ['HEAD', '/alice/jwks.json', 'getWalletAddressKeys /alice'],
    ['GET', '/a/b/jwks.json', 'getWalletAddressKeys /a/b'],
    ['GET', '/jwks.json', 'getWalletAddressKeys '],
    ['GET', '/alicejwks.json', 'getWalletAddress /alicejwks.json'],
    ['GET', '/alice/jwks.json/', 'getWalletAddressKeys /alice'],
    ['GET', '/alice/JWKS.json', 'getWalletAddress /alice/JWKS.json'],
    ['OPTIONS', '/alice', 'preflight /alice'],
    ['OPTIONS', '/alice/jwks.json', 'preflight /alice/jwks.json'],
    ['POST', '/alice', 'allow GET, OPTIONS, HEAD'],
  ])('resolve %s %s to %s', (method, path, expected) => {
    expect(found(wallets.routes, method, path)).toBe(expected)
  })

  test('list each allowed method once, even if two routes match', () => {
    expect(found(wallets.routes, 'POST', '/alice/jwks.json')).toBe('allow GET, OPTIONS, HEAD')
  })
})

describe('a route', () => {
  test('matches paths of its pattern and extracts the id', () => {
    const segment = fc.string({ unit: fc.constantFrom(...'abz09-_.~%:@!$'), minLength: 1 })
    fc.assert(
      fc.property(segment, (value) => {
        expect(found(auth.routes, 'POST', `/continue/${value}`)).toBe(`continueGrant ${value}`)
        expect(found(auth.routes, 'POST', `/continue/${value}/${value}`)).toBe('unknown')
        expect(found(auth.routes, 'POST', `/${value}/continue/${value}`)).toBe('unknown')
      }),
      { numRuns: 200 },
    )
  })

  test('is unknown in an empty table', () => {
    expect(found([], 'GET', '/')).toBe('unknown')
  })

  test('with a fixed suffix needs the complete suffix after the id', () => {
    const routes: ServerRoute[] = [
      { operation: 'getIncomingPayment', method: 'GET', path: '/aa/{id}/aa' },
    ]
    expect(found(routes, 'GET', '/aa/x/aa')).toBe('getIncomingPayment x')
    expect(found(routes, 'GET', '/aa/x/aa/')).toBe('getIncomingPayment x')
    for (const path of ['/aa', '/aa/aa', '/aa//aa', '/aa/x', '/aa/x/aa//']) {
      expect(found(routes, 'GET', path)).toBe('unknown')
    }
  })
})

test('each route has a handler of its own, and nothing else has one', () => {
  const { auth: introspected } = createWorld({ auth: { resourceServers: [] } })
  const { resources: priced } = createSpendingWorld()
  for (const { routes, handlers } of [auth, introspected, resources, priced, wallets]) {
    const operations = routes.map(({ operation }) => operation)
    expect(Object.keys(handlers).toSorted()).toEqual(operations.toSorted())
  }
  expect(auth.handlers).not.toHaveProperty('introspectToken')
  expect(introspected.handlers.introspectToken).toBeTypeOf('function')
  expect(resources.handlers).not.toHaveProperty('createQuote')
  expect(priced.handlers.createQuote).toBeTypeOf('function')
})

test('the reason for an unknown path names the paths that there are', () => {
  expect(matchRoute(auth.routes, 'POST', '/grants')).toMatchObject({
    reason: 'no operation matches this path; there is /, /continue/{id}, /token/{id}',
  })
})
