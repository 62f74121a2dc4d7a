import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { payAcross } from '../../examples/demo/two-wallets.js'
import { adapters } from '../../examples/demo/wallet.js'
import { clientOf } from '../support/official-client.js'
import { exited, killPrograms, run } from './program.js'

afterAll(killPrograms)

describe('the demo', () => {
  test.each(Object.keys(adapters))('runs without errors on %s', async (adapter) => {
    const { printed, ended } = run('examples/demo/main.ts', { ADAPTER: adapter })
    expect(await ended, printed.err).toEqual(exited)
    expect(printed.out).toContain(`A wallet on ${adapter}`)
    expect(printed.out).toContain('Everything worked as expected.')
    expect(printed.err).toBe('')
  })
})

describe('its two wallets', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop()
  })
  afterAll(() => shop.stop())

  test('pay each other', async () => {
    const printed = vi.spyOn(console, 'log').mockReturnValue()
    try {
      await payAcross(
        { client: await clientOf(shop), shop },
        { adapter: 'express', outboundTimeoutMs: 60_000 },
      )
      expect(printed.mock.calls.flat().join('\n')).toContain('her invoice is paid')
    } finally {
      printed.mockRestore()
    }
  })
})
