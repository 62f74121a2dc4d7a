import { freePort } from 'open-payments-programs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AdapterName, adapters, startWallet } from '../../examples/wallet/start.js'

const running = new Map<string, Awaited<ReturnType<typeof startWallet>>>()
const names = Object.keys(adapters) as AdapterName[]

beforeAll(async () => {
  for (const adapter of names) {
    running.set(adapter, await startWallet({ adapter, port: await freePort() }))
  }
})
afterAll(async () => {
  await Promise.all([...running.values()].map(({ stop }) => stop()))
})

test.each(names)('the page at / leads to every account and page, on %s', async (adapter) => {
  const { baseUrl = '', wallet } = running.get(adapter) ?? {}
  const response = await fetch(`${baseUrl}/`)
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/html; charset=utf-8',
  ])
  const shown = await response.text()
  for (const { url } of wallet?.accounts ?? []) expect(shown).toContain(`href="${url}"`)
  expect(shown).toContain(`curl -X OPTIONS ${baseUrl}/auth`)
  const links = [...shown.matchAll(/href="([^"]+)"/g)].map(([, href = '']) => href)
  expect(links.length).toBeGreaterThan(8)
  for (const link of links) {
    // Nobody is signed in, so the pages of owners ask who it is.
    expect([200, 303, 403], link).toContain((await fetch(new URL(link, baseUrl))).status)
  }
})

test.each(names)('every other path is still a wallet address, on %s', async (adapter) => {
  const { baseUrl = '' } = running.get(adapter) ?? {}
  expect((await fetch(`${baseUrl}/nobody`)).status).toBe(404)
  const { id } = (await (await fetch(`${baseUrl}/alice`)).json()) as { id: string }
  expect(id).toBe(`${baseUrl}/alice`)
  expect((await fetch(`${baseUrl}/`, { method: 'DELETE' })).status).toBe(405)
})
