import { beforeEach, describe, expect, test } from 'vitest'
import { createCell } from '../../examples/cells/cell.js'
import { routeToCells } from '../../examples/cells/router.js'
import { type Handler, ilpPaymentMethods, memoryStore, type Wallet } from '../../src/index.js'

const origin = 'https://wallet.example'
const [alice, bob] = [`${origin}/alice`, `${origin}/bob`]

describe('two cells on one domain', () => {
  let directory: Map<string, string>
  let cells: { readonly one: Wallet; readonly two: Wallet }
  let router: Handler

  beforeEach(() => {
    directory = new Map([
      ['alice', 'one'],
      ['bob', 'two'],
    ])
    const cell = (name: string) =>
      createCell({
        name,
        store: memoryStore(),
        walletAddresses: {
          find: async (url) =>
            directory.get(url.slice(origin.length + 1)) === name
              ? { url, assetCode: 'USD', assetScale: 2 }
              : undefined,
        },
        paymentMethods: ilpPaymentMethods({
          addressPrefix: `test.wallet.${name}`,
          secret: new Uint8Array(32).fill(7),
        }),
      })
    cells = { one: cell('one'), two: cell('two') }
    const handlers = new Map(Object.entries(cells).map(([name, { handle }]) => [name, handle]))
    router = routeToCells(handlers, async (account) => directory.get(account))
  })

  async function get(handle: Handler, url: string) {
    const request = { method: 'GET', url: url.slice(origin.length), headers: [] as const }
    const { status, body = '' } = await handle({ ...request, body: new Uint8Array() })
    return { status, body: status === 200 ? JSON.parse(body) : undefined }
  }

  async function invoice({ resources }: Wallet, walletAddress: string, idempotencyKey = 'a') {
    const created = await resources.incomingPayments.create({ walletAddress, idempotencyKey })
    return created.ok
      ? { url: `${resources.baseUrl}/incoming-payments/${created.payment.paymentId}` }
      : created
  }

  test.each([
    [alice, 'one'],
    [bob, 'two'],
  ])('%s names the servers of cell %s', async (address, name) => {
    const { body } = await get(router, address)
    expect(body).toMatchObject({
      authServer: `${origin}/${name}/auth`,
      resourceServer: `${origin}/${name}/op`,
    })
  })

  test('an account does not exist in the other cell, and nobody has a name without a cell', async () => {
    expect(await get(cells.one.handle, bob)).toMatchObject({ status: 404 })
    expect(await get(cells.two.handle, alice)).toMatchObject({ status: 404 })
    expect(await get(router, `${origin}/carol`)).toMatchObject({ status: 404 })
    expect(await get(router, `${origin}/constructor`)).toMatchObject({ status: 404 })
    expect(await invoice(cells.one, bob)).toMatchObject({ refusal: 'wallet_address_unknown' })
  })

  test('a payment is in the cell of its account alone', async () => {
    const { url = '' } = (await invoice(cells.one, alice)) as { url?: string }
    expect(await get(router, url)).toMatchObject({ status: 200 })
    const elsewhere = url.replace(`${origin}/one/`, `${origin}/two/`)
    expect(await get(router, elsewhere)).toMatchObject({ status: 404 })
  })

  test('an account that moves has new servers, and its earlier payments stay where they are', async () => {
    const { url = '' } = (await invoice(cells.one, alice)) as { url?: string }
    directory.set('alice', 'two')
    const { body } = await get(router, alice)
    expect(body.resourceServer).toBe(`${origin}/two/op`)
    expect(await invoice(cells.one, alice, 'b')).toMatchObject({
      refusal: 'wallet_address_unknown',
    })
    expect(await invoice(cells.two, alice)).toHaveProperty('url')
    expect(await get(router, url)).toMatchObject({ status: 200 })
    const id = url.slice(url.lastIndexOf('/') + 1)
    const amount = { value: '5', assetCode: 'USD', assetScale: 2 }
    const transfer = { transferId: 'late', amount }
    const received = await cells.one.resources.incomingPayments.receive(id, transfer)
    expect(received).toMatchObject({ ok: true, changed: true })
  })
})
