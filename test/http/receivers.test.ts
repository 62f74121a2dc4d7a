import { describe, expect, test } from 'vitest'
import type { PriceRequest, ResourceServerOptions } from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { createSpendingWorld, listPrice, usd } from '../support/spending.js'
import { resourceServer } from '../support/world.js'

/** A server whose host records the receivers that it is asked to price. */
async function setUp(authority: Authority, options: Partial<ResourceServerOptions> = {}) {
  const priced: string[] = []
  const price = async (request: PriceRequest) => {
    priced.push(request.receiver)
    return listPrice(request)
  }
  const world = createSpendingWorld({ resources: { pricing: { price }, ...options } })
  const payer = await payerOf(world, authority)
  return {
    world,
    priced,
    quote: (receiver: string) => payer.quote({ receiver, debitAmount: usd(1) }),
    pay: (incomingPayment: string) => payer.pay(1, { incomingPayment }),
  }
}

const local = [
  'http://127.0.0.1:9200/incoming-payments/1',
  'http://localhost:9200/incoming-payments/1',
  'http://[::1]:9200/incoming-payments/1',
  'https://localhost/incoming-payments/1',
]

const forbidden = [
  ...local,
  'https://wallet.localhost/incoming-payments/1',
  'https://127.0.0.1/incoming-payments/1',
  'https://127.1/incoming-payments/1',
  'https://2130706433/incoming-payments/1',
  'https://0x7f000001/incoming-payments/1',
  'https://0.0.0.0/incoming-payments/1',
  'https://10.0.0.1/incoming-payments/1',
  'https://172.16.0.1/incoming-payments/1',
  'https://192.168.1.1:8443/incoming-payments/1',
  'https://100.64.0.1/incoming-payments/1',
  'https://169.254.169.254/latest/meta-data/incoming-payments/1',
  'https://[::1]/incoming-payments/1',
  'https://[::ffff:169.254.169.254]/incoming-payments/1',
  'https://[64:ff9b::169.254.169.254]/incoming-payments/1',
  'https://[fd00:ec2::254]/incoming-payments/1',
  'https://[fe80::1]/incoming-payments/1',
]

describe.each(authorities)(
  'a receiver of %s on this machine or in a private network',
  (authority) => {
    test.each(forbidden)('is refused before the host prices it: %s', async (receiver) => {
      const { world, priced, quote, pay } = await setUp(authority)
      for (const answer of [await quote(receiver), await pay(receiver)]) {
        expect([answer.status, answer.body?.error?.code]).toEqual([400, 'invalid_receiver'])
      }
      expect(priced).toEqual([])
      if (authority === 'the owner of the account') return
      expect(world.refusals.at(-1)).toMatchObject({
        refusal: 'receiver_invalid',
        reason: 'must be on the public internet',
      })
    })

    test.each(local)('is accepted in development, if it is on loopback: %s', async (receiver) => {
      const { priced, quote, pay } = await setUp(authority, { allowLoopback: true })
      expect((await quote(receiver)).status).toBe(201)
      expect((await pay(receiver)).status).toBe(201)
      expect(priced).toHaveLength(2)
    })

    test.each(['https://10.0.0.1/incoming-payments/1', 'https://[fd00::1]/incoming-payments/1'])(
      'is refused in development too, if it is not on loopback: %s',
      async (receiver) => {
        const { priced, quote } = await setUp(authority, { allowLoopback: true })
        expect((await quote(receiver)).status).toBe(400)
        expect(priced).toEqual([])
      },
    )
  },
)

describe.each(authorities)('a receiver of %s whose path has escaped slashes', (authority) => {
  test.each([
    'https://bank.example/..%2fincoming-payments/1',
    'https://bank.example/incoming-payments/..%2F..%2Fadmin',
    'https://bank.example/incoming-payments/..%5cadmin',
    'https://bank.example/incoming-payments/..%252fadmin',
    'https://bank.example/incoming-payments/%2e%2e%2fadmin',
  ])('is refused with 400, whatever the options: %s', async (receiver) => {
    const { priced, quote, pay } = await setUp(authority, { allowLoopback: true })
    for (const answer of [await quote(receiver), await pay(receiver)]) {
      expect([answer.status, answer.body?.error?.code]).toEqual([400, 'invalid_request'])
    }
    expect(priced).toEqual([])
  })
})

describe.each(authorities)('a receiver of %s', (authority) => {
  test.each([
    'https://bank.example/incoming-payments/1',
    'https://8.8.8.8/incoming-payments/1',
    'https://[2606:4700::1111]/incoming-payments/1',
    'https://localhost.example/incoming-payments/1',
    'https://127.0.0.1.nip.io/incoming-payments/1',
    'https://bank.example/caf%C3%A9/incoming-payments/1',
    `${resourceServer}/incoming-payments/1`,
  ])('on the public internet is passed to the host: %s', async (receiver) => {
    const { priced, quote, pay } = await setUp(authority)
    expect((await quote(receiver)).status).toBe(201)
    expect((await pay(receiver)).status).toBe(201)
    expect(priced).toEqual([receiver, receiver])
  })
})
