import { describe, expect, test } from 'vitest'
import { readSettings } from '../../examples/wallet/settings.js'

const RESOURCE_SERVER_KEY = 'cVRS7Q6Zzefm8TplD2uIERHwmhcbVf-_Bo0AxlEKl4Q'
const BASE_URL = 'https://wallet.example'
const AUTH_URL = 'https://auth.example'
const ILP_TOKEN = 'a-secret-of-the-peers'

describe('the settings of the wallet', () => {
  test('name peers by the URL of their wallet, or by ILP address and endpoint', () => {
    const rail = { ilpAddress: 'test.localhost-3000', peers: [], token: '' }
    expect(readSettings({}).rail).toEqual(rail)
    const PEERS = 'http://localhost:3001, test.bank=https://bank.example/ilp'
    // Only another wallet of this example is known to count a packet once that it gets twice.
    expect(readSettings({ PEERS, ILP_TOKEN, ILP_ADDRESS: 'test.ours' })).toMatchObject({
      settle: 'auto',
      rail: {
        ilpAddress: 'test.ours',
        peers: [
          {
            ilpAddress: 'test.localhost-3001',
            url: 'http://localhost:3001/ilp/test.ours',
            countsRepeats: true,
          },
          { ilpAddress: 'test.bank', url: 'https://bank.example/ilp' },
        ],
        token: ILP_TOKEN,
      },
    })
  })

  test.each([
    [undefined, 0n, 0n],
    ['1%', 100n, 0n],
    ['0.25%', 25n, 0n],
    ['0.3', 0n, 30n],
    ['2', 0n, 200n],
  ])('take the fee %s', (FEE, basisPoints, fixed) => {
    expect(readSettings({ FEE }).fee).toEqual({ basisPoints, fixed })
  })

  test('give a role the location of the other side', () => {
    expect(readSettings({})).not.toHaveProperty('role')
    const resource = { ROLE: 'resource', PORT: '3001', AUTH_URL: `${AUTH_URL}/` }
    expect(readSettings(resource)).toMatchObject({
      baseUrl: 'http://localhost:3001',
      role: { name: 'resource', authUrl: AUTH_URL },
    })
    const auth = { ROLE: 'auth', PORT: '3001', BASE_URL, RESOURCE_SERVER_KEY }
    const authUrl = 'http://localhost:3001'
    expect(readSettings(auth)).toMatchObject({
      baseUrl: BASE_URL,
      role: { name: 'auth', authUrl, resourceServerKey: RESOURCE_SERVER_KEY },
    })
    expect(readSettings({ ...auth, AUTH_URL }).role?.authUrl).toBe(AUTH_URL)
  })

  test.each([
    [{ DATABASE_URL: 'localhost' }, 'DATABASE_URL must be a URL'],
    [{ DATABASE_URL: 'postgres://localhost/x', DATA_DIR: 'x' }, 'not both'],
    [{ DATABASE_URL: 'mysql://localhost/x' }, 'must begin with postgres:// or postgresql://'],
    [
      { WEBHOOK_URL: 'https://shop.example' },
      'WEBHOOK_URL and WEBHOOK_SECRET must be set together',
    ],
    [{ OUTBOUND_TIMEOUT_MS: '0' }, 'OUTBOUND_TIMEOUT_MS must be a number of milliseconds'],
    [{ OUTBOUND_TIMEOUT_MS: '60001' }, 'OUTBOUND_TIMEOUT_MS must be'],
    [{ OUTBOUND_TIMEOUT_MS: '2s' }, 'OUTBOUND_TIMEOUT_MS must be'],
    [{ PORT: '65536' }, 'PORT must be a port number'],
    [{ SETTLE: 'later' }, 'SETTLE must be auto or manual'],
    [{ ILP_ADDRESS: 'wallet' }, 'ILP_ADDRESS must be an ILP address'],
    [{ ILP_ADDRESS: `test.${'x'.repeat(500)}` }, 'ILP_ADDRESS must be an ILP address'],
    [{ PEERS: 'http://localhost:3001' }, 'PEERS needs ILP_TOKEN'],
    [{ PEERS: 'http://localhost:3001', ILP_TOKEN: 'short' }, 'PEERS needs ILP_TOKEN'],
    [{ PEERS: 'http://localhost:3001/ilp', ILP_TOKEN }, 'each entry of PEERS must be an origin'],
    [{ PEERS: 'test.b=localhost', ILP_TOKEN }, 'each entry of PEERS must be an origin, or'],
    [
      { PEERS: 'b=http://localhost:3001/ilp', ILP_TOKEN },
      'each entry of PEERS must be an origin, or',
    ],
    [{ PEERS: 'http://localhost:3000', ILP_TOKEN }, 'not this one'],
    [{ PEERS: 'http://localhost:3001,http://localhost:3001', ILP_TOKEN }, 'once'],
    [{ FEE: '-1%' }, 'FEE must be a percentage such as 1% or 0.25%, or an amount such as 0.30'],
    [{ FEE: '100%' }, 'FEE must be'],
    [{ FEE: '0.125' }, 'FEE must be'],
    [{ FEE: 'USD 1' }, 'FEE must be'],
    [{ FEE: '%' }, 'FEE must be'],
    [{ FEE: '1%', ROLE: 'auth', BASE_URL, RESOURCE_SERVER_KEY }, 'cannot be used with ROLE=auth'],
    [{ ROLE: 'both' }, 'ROLE must be auth or resource'],
    [{ ROLE: 'resource' }, 'needs AUTH_URL'],
    [{ ROLE: 'resource', AUTH_URL: 'auth.example' }, 'AUTH_URL must be an origin'],
    [{ ROLE: 'resource', AUTH_URL: `${AUTH_URL}/auth` }, 'AUTH_URL must be an origin'],
    [{ ROLE: 'auth', RESOURCE_SERVER_KEY }, 'needs BASE_URL'],
    [{ ROLE: 'auth', BASE_URL }, 'needs RESOURCE_SERVER_KEY'],
    [{ ROLE: 'auth', BASE_URL, RESOURCE_SERVER_KEY: 'x' }, 'needs RESOURCE_SERVER_KEY'],
    [{ AUTH_URL }, 'AUTH_URL and RESOURCE_SERVER_KEY need ROLE'],
    [{ RESOURCE_SERVER_KEY }, 'AUTH_URL and RESOURCE_SERVER_KEY need ROLE'],
    [{ BASE_URL: `${BASE_URL}/pay` }, 'BASE_URL must be an origin'],
  ])('are refused: %j', (environment, message) => {
    expect(() => readSettings(environment)).toThrow(message)
  })
})
