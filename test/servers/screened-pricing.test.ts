import { describe, expect, test } from 'vitest'
import { hostPricing } from '../../src/servers/host-ports.js'
import { usd } from '../support/spending.js'

const price = { ok: true, debitAmount: usd(1), receiveAmount: usd(1) } as const
const account = { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }
const client = 'https://shop.example'

function priceAt(baseUrl: string, receiver: string, allowLoopback?: boolean) {
  const pricing = { price: async () => price }
  const screened = hostPricing(pricing, 1_000, baseUrl, allowLoopback)
  return screened.price({ receiver, account, client, method: 'ilp' })
}

const refused = expect.objectContaining({ refusal: 'receiver_invalid' })

describe('the screening of receivers', () => {
  test.each([
    'http://localhost:3000/op',
    'http://127.0.0.1:3000/op',
    'http://[::1]:3000',
    'https://localhost/op',
  ])('accepts receivers on loopback by default if the server is there: %s', async (baseUrl) => {
    const receiver = 'http://localhost:4000/incoming-payments/1'
    expect(await priceAt(baseUrl, receiver)).toBe(price)
    expect(await priceAt(baseUrl, receiver, false)).toEqual(refused)
  })

  test.each(['https://10.0.0.5/op', 'http://127.0.0.1:3000/op'])(
    'always accepts the incoming payments of the server itself: %s',
    async (baseUrl) => {
      expect(await priceAt(baseUrl, `${baseUrl}/incoming-payments/abc`, false)).toBe(price)
      expect(await priceAt(baseUrl, `${baseUrl}/admin/incoming-payments/abc`, false)).toEqual(
        refused,
      )
    },
  )

  test('calls the method on the object of the host', async () => {
    class Market {
      readonly known = price
      async price() {
        return this.known
      }
    }
    const screened = hostPricing(new Market(), 1_000, 'https://wallet.example')
    const receiver = 'https://bank.example/incoming-payments/1'
    expect(await screened.price({ receiver, account, client, method: 'ilp' })).toBe(price)
  })
})
