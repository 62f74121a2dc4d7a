import { freePort } from 'open-payments-programs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AdapterName, adapters, startWallet } from '../../examples/wallet/start.js'
import { exchange, headerValues, requestBytes } from '../support/raw-http.js'

type Started = Awaited<ReturnType<typeof startWallet>> & { readonly port: number }

const names = Object.keys(adapters) as AdapterName[]
const running = new Map<AdapterName, Started>()
beforeAll(async () => {
  for (const adapter of names) {
    const port = await freePort()
    running.set(adapter, { ...(await startWallet({ adapter, port })), port })
  }
})
afterAll(async () => {
  await Promise.all([...running.values()].map(({ stop }) => stop()))
})

describe.each(names)('the example wallet on %s', (adapter) => {
  /** A request as of a page of the host. */
  function ask(hosts: readonly string[], method: string, path: string, type = '', body = '') {
    const { port } = running.get(adapter) as Started
    const content = Buffer.from(body)
    return exchange(
      port,
      requestBytes(
        method,
        path,
        [
          ...hosts.map((host) => ['Host', host.replace('PORT', `${port}`)] as const),
          ['Sec-Fetch-Site', 'same-origin'],
          ['Connection', 'close'],
          ['Content-Length', `${content.length}`],
          ...(type === '' ? [] : [['Content-Type', type] as const]),
        ],
        content,
      ),
    )
  }
  const json = 'application/json'
  const form = 'application/x-www-form-urlencoded'

  test.each([
    ['the first page', 'GET', '/'],
    ['the login', 'POST', '/grants', form, 'owner=alice'],
    ['the page of connected apps', 'GET', '/grants'],
    ['the page of keys', 'GET', '/keys'],
    ['a key', 'POST', '/keys', form, 'owner=alice'],
    ['a consent page', 'GET', '/consent/abc'],
    ['a decision', 'POST', '/consent/abc', form, 'decision=approve'],
    ['a transfer', 'POST', '/ledger/transfers', json, '{}'],
    ['a settlement', 'POST', '/ledger/settlements', json, '{}'],
    ['the balances with peers', 'GET', '/ledger/peers'],
  ])('serves %s to no other host that leads to this machine', async (_, ...request) => {
    for (const hosts of [
      ['evil.example:PORT'],
      ['evil.example'],
      ['localhost.evil.example:PORT'],
      ['localhost:PORT@evil.example'],
      ['localhost:PORT', 'evil.example:PORT'],
    ]) {
      const response = await ask(hosts, ...(request as [string, string]))
      // Node.js and frameworks refuse some of them before.
      expect([400, 421], `${hosts}`).toContain(response.status)
      expect(headerValues(response, 'set-cookie')).toEqual([])
    }
    expect((await ask(['evil.example:PORT'], ...(request as [string, string]))).status).toBe(421)
  })

  test.each(['localhost:PORT', '127.0.0.1:PORT', '[::1]:PORT', 'LOCALHOST', 'localhost'])(
    'serves its pages at %s',
    async (host) => {
      expect((await ask([host], 'GET', '/')).status).toBe(200)
      expect((await ask([host], 'POST', '/grants', form, 'owner=alice')).status).toBe(303)
      expect((await ask([host], 'GET', '/ledger/peers')).status).toBe(200)
    },
  )

  test('serves what is public, or signed, whatever name a proxy has for it', async () => {
    const host = ['wallet.internal:8080']
    expect((await ask(host, 'GET', '/healthz')).status).toBe(200)
    expect((await ask(host, 'GET', '/alice')).status).toBe(200)
    expect((await ask(host, 'GET', '/alice/jwks.json')).status).toBe(200)
    expect((await ask(host, 'POST', '/auth', json, '{}')).status).toBe(401)
    expect((await ask(host, 'GET', '/incoming-payments?wallet-address=x')).status).toBe(401)
  })
})
