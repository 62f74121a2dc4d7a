import { describe, expect, test } from 'vitest'
import { readSettings } from '../../examples/wallet/settings.js'

describe('a role', () => {
  const RESOURCE_SERVER_KEY = 'cVRS7Q6Zzefm8TplD2uIERHwmhcbVf-_Bo0AxlEKl4Q'
  const BASE_URL = 'https://wallet.example'
  const AUTH_URL = 'https://auth.example'

  test('is both by default', () => {
    expect(readSettings({})).not.toHaveProperty('role')
  })

  test('has the location of the other side', () => {
    expect(
      readSettings({ ROLE: 'resource', PORT: '3001', AUTH_URL: `${AUTH_URL}/` }),
    ).toMatchObject({
      baseUrl: 'http://localhost:3001',
      role: { name: 'resource', authUrl: AUTH_URL },
    })
    const auth = { ROLE: 'auth', PORT: '3001', BASE_URL, RESOURCE_SERVER_KEY }
    expect(readSettings(auth)).toMatchObject({
      baseUrl: BASE_URL,
      role: {
        name: 'auth',
        authUrl: 'http://localhost:3001',
        resourceServerKey: RESOURCE_SERVER_KEY,
      },
    })
    expect(readSettings({ ...auth, AUTH_URL }).role?.authUrl).toBe(AUTH_URL)
  })

  test.each([
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
  ])('is rejected for %j', (environment, message) => {
    expect(() => readSettings(environment)).toThrow(message)
  })
})
