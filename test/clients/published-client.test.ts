import { readFileSync } from 'node:fs'
import type { AuthenticatedClient, Grant, PendingGrant } from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import type { AdapterName } from '../../examples/demo/wallet.js'
import { packages, type Version, versions } from '../support/clients/versions.js'
import {
  allDeployments,
  clientSettings,
  type RunningDeployment,
  startDeployment,
  usd,
} from '../support/official-client.js'

/**
 * Each older version runs on one adapter, the newest on every adapter. The version determines the requests and the
 * validation of responses; an adapter passes both through, so other pairs would add nothing.
 */
const runs: readonly (readonly [version: Version, adapter: AdapterName])[] = [
  ['7.0.0', 'express'],
  ['7.1.1', 'fastify'],
  ...allDeployments.map((name) => ['7.4.0', name] as const),
]

test.each(Object.entries(packages))('version %s of the client is installed', (version, name) => {
  const { version: installed } = JSON.parse(
    readFileSync(`node_modules/${name}/package.json`, 'utf8'),
  )
  expect(installed).toBe(version)
})

const clients = new Map<Version, AuthenticatedClient>()
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  const { walletAddress: walletAddressUrl, keyId, privateKey } = shop
  for (const [version, { createAuthenticatedClient }] of Object.entries(versions)) {
    const settings = { walletAddressUrl, keyId, privateKey, ...clientSettings }
    clients.set(version as Version, await createAuthenticatedClient(settings))
  }
})
afterAll(() => shop.stop())

describe.each(runs)('version %s of the TypeScript client on %s', (version, adapter) => {
  const { isPendingGrant, isFinalizedGrant } = versions[version]
  let client: AuthenticatedClient
  let running: RunningDeployment

  beforeAll(async () => {
    running = await startDeployment(adapter)
    client = clients.get(version) as AuthenticatedClient
  })
  afterAll(() => running.stop())

  type GrantRequest = Parameters<AuthenticatedClient['grant']['request']>[1]

  function withToken(grant: object) {
    const { access_token, ...rest } = grant as Grant
    if (!isFinalizedGrant(grant as Grant) || access_token === undefined) {
      throw new Error('the grant has no token')
    }
    return { ...rest, access_token }
  }

  async function tokenFor(url: string, access: object) {
    const request = { access_token: { access: [access] } } as unknown as GrantRequest
    const grant = await client.grant.request({ url }, request)
    return withToken(grant).access_token
  }

  /** A pending grant to pay from a wallet address, with the actions of the quickstarts. */
  async function pendingGrant(url: string, identifier: string, limits: object) {
    const item = {
      type: 'outgoing-payment',
      actions: ['list', 'list-all', 'read', 'read-all', 'create'],
      identifier,
      limits,
    }
    const finish = { method: 'redirect', uri: shop.finishUri, nonce: 'a-nonce' }
    const request = {
      access_token: { access: [item] },
      interact: { start: ['redirect'], finish },
    } as unknown as GrantRequest
    const grant = await client.grant.request({ url }, request)
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    return grant
  }

  async function continued({ continue: { uri, access_token }, interact }: PendingGrant) {
    const { location } = await decide(interact.redirect, 'approve')
    const interact_ref = location?.searchParams.get('interact_ref') ?? ''
    const where = { url: uri, accessToken: access_token.value }
    const grant = await client.grant.continue(where, { interact_ref })
    return withToken(grant)
  }

  test('takes a shop from its first grant to a revoked token', async () => {
    const sender = await client.walletAddress.get({ url: running.alice })
    const receiver = await client.walletAddress.get({ url: running.bob })

    const receiving = await tokenFor(receiver.authServer, {
      type: 'incoming-payment',
      actions: ['create', 'read', 'read-all', 'list', 'complete'],
    })
    const atReceiver = { url: receiver.resourceServer, accessToken: receiving.value }
    const incoming = await client.incomingPayment.create(atReceiver, {
      walletAddress: receiver.id,
      incomingAmount: usd('1000'),
      expiresAt: new Date(Date.now() + 600_000).toISOString(),
    })
    expect(incoming).toMatchObject({ walletAddress: receiver.id, completed: false })

    const quoting = await tokenFor(sender.authServer, {
      type: 'quote',
      actions: ['create', 'read', 'read-all'],
    })
    const quote = await client.quote.create(
      { url: sender.resourceServer, accessToken: quoting.value },
      { walletAddress: sender.id, receiver: incoming.id, method: 'ilp' },
    )
    expect(quote).toMatchObject({ receiver: incoming.id, receiveAmount: usd('1000') })

    const { debitAmount } = quote
    const limits = { debitAmount }
    const granted = await continued(await pendingGrant(sender.authServer, sender.id, limits))
    const atSender = { url: sender.resourceServer, accessToken: granted.access_token.value }
    const outgoing = await client.outgoingPayment.create(atSender, {
      walletAddress: sender.id,
      quoteId: quote.id,
    })
    expect(outgoing).toMatchObject({ receiver: incoming.id, debitAmount })

    const quoted = { url: quote.id, accessToken: quoting.value }
    expect(await client.quote.get(quoted)).toEqual(quote)
    const paid = await client.outgoingPayment.get({ ...atSender, url: outgoing.id })
    expect(paid.id).toBe(outgoing.id)
    const read = await client.incomingPayment.get({ ...atReceiver, url: incoming.id })
    expect(read).toMatchObject({ id: incoming.id, methods: [{ type: 'ilp' }] })
    const received = await client.incomingPayment.list({
      ...atReceiver,
      walletAddress: receiver.id,
    })
    expect(received.result.map(({ id }) => id)).toContain(incoming.id)
    const sentPayments = await client.outgoingPayment.list({
      ...atSender,
      walletAddress: sender.id,
    })
    expect(sentPayments.result.map(({ id }) => id)).toContain(outgoing.id)
    expect(
      await client.incomingPayment.complete({ ...atReceiver, url: incoming.id }),
    ).toMatchObject({ completed: true })

    const { access_token: rotated } = await client.token.rotate({
      url: granted.access_token.manage,
      accessToken: granted.access_token.value,
    })
    expect(rotated.value).not.toBe(granted.access_token.value)
    const old = client.outgoingPayment.get({ ...atSender, url: outgoing.id })
    await expect(old).rejects.toMatchObject({ status: 401, code: 'invalid_token' })
    await client.token.revoke({ url: rotated.manage, accessToken: rotated.value })
  })

  test('gets a grant with a recurring limit, and cancels it', async () => {
    const { id, authServer } = await client.walletAddress.get({ url: running.alice })
    const limits = { debitAmount: usd('1000'), interval: 'R/2016-08-24T08:00:00Z/P1D' }
    const granted = await continued(await pendingGrant(authServer, id, limits))
    expect(granted.access_token.access).toMatchObject([{ identifier: id, limits }])
    const { uri: url, access_token } = granted.continue
    await client.grant.cancel({ url, accessToken: access_token.value })
  })
})
