import { createHeaders } from '@interledger/http-signature-utils'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  approvedToken,
  clientOf,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'
import { dataDirectories, exited, killPrograms, startedWallet } from './program.js'

describe('the wallet in two processes', () => {
  let directories: Awaited<ReturnType<typeof dataDirectories>>
  let shop: Shop
  let client: AuthenticatedClient

  beforeAll(async () => {
    shop = await openShop()
    client = await clientOf(shop)
    directories = await dataDirectories()
  })
  afterAll(async () => {
    killPrograms()
    shop.stop()
    await directories.remove()
  })

  /** Starts both processes, in the order that an operator needs; the first can be restarted. */
  async function started() {
    const port = await freePort()
    const authUrl = `http://localhost:${port}`
    const resource = await startedWallet({
      ROLE: 'resource',
      AUTH_URL: authUrl,
      DATA_DIR: await directories.create(),
      ADAPTER: 'fastify',
      FEE: '1%',
    })
    const [, key = ''] = /RESOURCE_SERVER_KEY=(\S+)/.exec(resource.printed.out) ?? []
    const environment = {
      ROLE: 'auth',
      PORT: `${port}`,
      BASE_URL: resource.baseUrl,
      RESOURCE_SERVER_KEY: key,
      DATA_DIR: await directories.create(),
    }
    return { resource, authUrl, startAuth: () => startedWallet(environment) }
  }

  /** Returns the response to a signed request of the shop, including its headers. */
  async function signedGet(url: string, accessToken: string): Promise<Response> {
    const headers = { authorization: `GNAP ${accessToken}` }
    const request = { method: 'GET', url, headers }
    const signed = await createHeaders({ request, ...shop })
    return fetch(url, {
      headers: {
        ...headers,
        signature: signed.Signature,
        'signature-input': signed['Signature-Input'],
      },
    })
  }

  test('is one wallet for its clients, and one side survives the other', async () => {
    const { resource, authUrl, startAuth } = await started()
    const first = await startAuth()
    const { baseUrl } = resource
    const [alice, bob, op] = [`${baseUrl}/alice`, `${baseUrl}/bob`, `${baseUrl}`]
    const { authServer, resourceServer } = await client.walletAddress.get({ url: alice })
    expect([authServer, resourceServer]).toEqual([`${authUrl}/auth`, op])
    expect((await fetch(`${authUrl}/incoming-payments`)).status).toBe(404)
    expect((await fetch(`${baseUrl}/auth`, { method: 'OPTIONS' })).status).not.toBe(200)

    const receiving = await tokenWithoutConsent(client, authServer, [
      { type: 'incoming-payment', actions: ['create', 'read'] },
    ])
    const where = { url: op, accessToken: receiving }
    const incoming = await client.incomingPayment.create(where, { walletAddress: bob })
    const limits = { debitAmount: usd('2500') }
    const access: Access = [
      { type: 'outgoing-payment', actions: ['create', 'read'], identifier: alice, limits },
    ]
    const { value: accessToken } = await approvedToken(client, authServer, access, shop)
    const pay = () =>
      client.outgoingPayment.create(
        { url: op, accessToken },
        { walletAddress: alice, incomingPayment: incoming.id, debitAmount: usd('1010') },
      )
    const outgoing = await pay()
    const headers = { 'content-type': 'application/json' }
    const path = `/ledger/outgoing-payments/${outgoing.id.split('/').at(-1)}/settle`
    expect((await fetch(baseUrl + path, { method: 'POST', headers })).status).toBe(200)
    const received = () => client.incomingPayment.get({ url: incoming.id, accessToken: receiving })
    expect((await received()).receivedAmount).toEqual(usd('1000'))

    first.child.kill('SIGTERM')
    expect(await first.ended).toEqual(exited)
    expect(first.printed.err).toBe('')
    await expect(pay()).rejects.toMatchObject({ status: 503, code: 'introspection_unavailable' })
    const refused = await signedGet(incoming.id, receiving)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect((await fetch(`${baseUrl}/healthz`)).status).toBe(200)
    expect(resource.printed.err).toContain(
      'tokens cannot be introspected: the server cannot be reached',
    )

    const second = await startAuth()
    expect((await signedGet(incoming.id, receiving)).status).toBe(200)
    expect((await pay()).grantSpentDebitAmount).toEqual(usd('2020'))
    for (const { child } of [second, resource]) child.kill('SIGTERM')
    expect(await Promise.all([second.ended, resource.ended])).toEqual([exited, exited])
    for (const { printed } of [first, second, resource]) {
      for (const secret of [receiving, accessToken, incoming.methods[0]?.sharedSecret ?? '']) {
        expect(printed.out + printed.err).not.toContain(secret)
      }
    }
  })
})
