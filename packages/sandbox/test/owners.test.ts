import type { AuthenticatedClient, OpenPaymentsClientError } from '@interledger/open-payments'
import { continued, failure } from 'open-payments-test-support/official-client'
import { describe, expect, test } from 'vitest'
import type { OwnerDecision, Sandbox } from '../src/index.js'
import { askToPay, invoiceOf, payerOf } from './support/payer.js'
import { shareSandbox } from './support/shared.js'

let sandbox: Sandbox
let client: AuthenticatedClient
shareSandbox({ approve: ['bruno'] }, (own, app) => {
  sandbox = own
  client = app
})

const addressOf = (name: string) => sandbox.account(name).walletAddress

const noEffect = (message: string) => ({
  code: 'ERR_NO_EFFECT',
  message: expect.stringContaining(message),
})

describe('an owner decides about consent without a page', () => {
  test('and the client gets its token with the redirect', async () => {
    const grant = await askToPay(client, addressOf('alice'))
    await sandbox.decide(grant.interact.redirect, 'approve')
    const { redirect } = await sandbox.decide(grant.interact.redirect, 'approve')
    expect((await continued(client, grant, new URL(redirect ?? ''))).value).toBeTruthy()
    await expect(sandbox.decide(grant.interact.redirect, 'approve')).rejects.toMatchObject(
      noEffect('the grant has been issued'),
    )
  })

  test('and a denial outweighs a rule that would approve', async () => {
    const { interact } = await askToPay(client, addressOf('bruno'))
    const { redirect } = await sandbox.decide(interact.redirect, 'deny')
    expect(redirect).toContain('result=grant_rejected')
    const again = await sandbox.decide(interact.redirect, 'deny')
    expect(again.redirect).toContain('result=grant_rejected')
    await expect(sandbox.decide(interact.redirect, 'approve')).rejects.toMatchObject(
      noEffect('the request has been denied'),
    )
  })

  test('and is told when it is too late', async () => {
    const { interact } = await askToPay(client, addressOf('alice'))
    await sandbox.advance('PT10M')
    await expect(sandbox.decide(interact.redirect, 'approve')).rejects.toMatchObject(
      noEffect('expires after 10 minutes'),
    )
  })

  test.each([
    ['/consent/unknown', 'approve', noEffect('no request for consent has this URL')],
    ['/confirm/unknown', 'confirm', noEffect('no payment waits for its owner at this URL')],
    ['/alice', 'approve', { code: 'ERR_INVALID_OPTION' }],
    ['//shop.example/consent/unknown', 'approve', { code: 'ERR_INVALID_OPTION' }],
    ['/consent/unknown', 'confirm', { message: expect.stringMatching(/approve or deny$/) }],
    ['/confirm/unknown', 'approve', { message: expect.stringMatching(/confirm or decline$/) }],
    ['/consent/unknown', 'agree', { message: expect.stringMatching(/^decision must be one of/) }],
  ])('and is refused at %s with %s', async (path, decision, error) => {
    const { href: url } = new URL(path, sandbox.wallets[0].url)
    await expect(sandbox.decide(url, decision as OwnerDecision)).rejects.toMatchObject(error)
  })

  test('over HTTP', async () => {
    const grant = await askToPay(client, addressOf('alice'))
    const post = (path: string, body: object) =>
      fetch(`${sandbox.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const decision = { url: grant.interact.redirect, decision: 'approve' }
    const decided = await post('/decide', decision)
    expect(decided.status).toBe(200)
    const { redirect } = (await decided.json()) as { redirect: string }
    const { value: token } = await continued(client, grant, new URL(redirect ?? ''))
    expect((await post('/decide', decision)).status).toBe(409)
    expect((await post('/decide', { ...decision, decision: 'yes' })).status).toBe(400)
    const foreign = 'https://shop.example/consent/unknown'
    const refused = await post('/decide', { ...decision, url: foreign })
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 'ERR_INVALID_OPTION' } },
    ])
    const revoked = await post('/revoke', { token })
    expect([revoked.status, await revoked.json()]).toEqual([200, { revoked: 1 }])
    const again = await post('/revoke', { token })
    expect([again.status, await again.json()]).toMatchObject([
      409,
      { error: { code: 'ERR_NO_EFFECT', description: 'the grant is revoked' } },
    ])
  })
})

describe('an owner decides about one payment without a page', () => {
  test.each([
    ['confirm', 'decline', undefined, 'the owner has confirmed the payment'],
    ['decline', 'confirm', 'confirmation_declined', 'the owner declined the payment'],
  ] as const)('to %s it, again and not to %s it', async (decision, other, code, later) => {
    const invoice = await invoiceOf(client, addressOf('dana'), '100')
    const payer = await payerOf(client, addressOf('bruno'))
    const { id } = await payer.quote(invoice.id)
    sandbox.fault({ fault: 'confirmation-required' })
    const refused = await payer.create(id).catch((error: OpenPaymentsClientError) => error)
    const { url } = (refused as OpenPaymentsClientError).details as { readonly url: string }
    expect(await sandbox.decide(url, decision)).toEqual({})
    expect(await sandbox.decide(url, decision)).toEqual({})
    if (code === undefined) {
      await sandbox.advance(1)
      expect((await invoice.read()).completed).toBe(true)
    } else {
      await expect(payer.create(id)).rejects.toMatchObject({ status: 403, code })
    }
    expect(await sandbox.decide(url, decision)).toEqual({})
    await expect(sandbox.decide(url, other)).rejects.toMatchObject(noEffect(later))
  })
})

describe('an owner revokes', () => {
  async function tokenOf(name: string) {
    const grant = await askToPay(client, addressOf(name))
    const { redirect } = await sandbox.decide(grant.interact.redirect, 'approve')
    const { value: accessToken } = await continued(client, grant, new URL(redirect ?? ''))
    const { resourceServer: url } = await client.walletAddress.get({ url: addressOf(name) })
    return { accessToken, url }
  }

  test('the grant of a token', async () => {
    const [one, other] = [await tokenOf('alice'), await tokenOf('alice')]
    expect(await sandbox.revoke({ token: one.accessToken })).toBe(1)
    const listed = client.outgoingPayment.list({ ...one, walletAddress: addressOf('alice') })
    expect(await failure(listed)).toMatchObject({ status: 401 })
    expect(sandbox.requests().at(-1)?.reason).toBe('the token is not active')
    await sandbox.revoke({ token: other.accessToken })
  })

  test('all grants of the account, or those of one client', async () => {
    await tokenOf('chie')
    await expect(sandbox.revoke({ account: 'chie', client: 'dana' })).rejects.toMatchObject(
      noEffect('has approved no grant of dana'),
    )
    expect(await sandbox.revoke({ account: 'chie', client: 'app' })).toBe(1)
    await tokenOf('chie')
    expect(await sandbox.revoke({ account: addressOf('chie') })).toBe(1)
    await expect(sandbox.revoke({ account: 'chie' })).rejects.toMatchObject(noEffect('no grant'))
  })

  test.each([
    [{ token: 'unknown' }, 'no grant has this token'],
    [{ account: 'nobody' }, 'no account is named nobody'],
    [{}, 'either token or account'],
    [{ token: 'one', client: 'app' }, 'client belongs to account'],
    [{ grant: 'one' }, 'a revocation has no member grant'],
  ])('nothing with %j', async (revocation, message) => {
    await expect(sandbox.revoke(revocation as never)).rejects.toThrow(message)
  })
})
