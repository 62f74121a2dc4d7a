import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import {
  type AuthenticatedClient,
  createUnauthenticatedClient,
  type Grant,
  isFinalizedGrantWithAccessToken,
  isFinalizedGrantWithSubject,
  isPendingGrant,
  type PendingGrant,
  type UnauthenticatedClient,
} from '@interledger/open-payments'
import { handle } from 'create-open-payments-server/wallet/background'
import { exchangeFor } from 'create-open-payments-server/wallet/exchange'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { fee } from '../../examples/demo/wallet.js'
import type { SentReport } from '../../src/index.js'
import {
  type Access,
  approvedToken,
  clientOf,
  clientSettings,
  deployments,
  eur,
  failure,
  type RunningDeployment,
  startDeployment,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'

/** Creates an unpublished key pair, and the key as a client sends it in a request. */
function ownKey(keyId: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const jwk = { kid: keyId, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x } as const
  return { signing: { keyId, privateKey }, jwk }
}

function tokenOf(grant: object) {
  if (!isFinalizedGrantWithAccessToken(grant as Grant)) throw new Error('the grant has no token')
  return (grant as Grant).access_token as NonNullable<Grant['access_token']>
}

let [shop, other] = [] as unknown as [Shop, Shop]
/** The client, another one, two with false identities, and two without an identity. */
let client: AuthenticatedClient
let stranger: AuthenticatedClient
let thief: AuthenticatedClient
let unknown: AuthenticatedClient
let directed: AuthenticatedClient
let anonymous: UnauthenticatedClient
const { signing: ownSigning, jwk: ownJwk } = ownKey('directed-1')

beforeAll(async () => {
  ;[shop, other] = [await openShop(), await openShop()]
  client = await clientOf(shop)
  stranger = await clientOf(other)
  thief = await clientOf(shop, ownKey(shop.keyId).signing)
  unknown = await clientOf(shop, ownKey('unknown-1').signing)
  directed = await clientOf(shop, ownSigning)
  anonymous = await createUnauthenticatedClient(clientSettings)
})
afterAll(() => {
  shop.stop()
  other.stop()
})

const errors = {
  signature: [401, 'invalid_signature', 'Signature validation error'],
  token: [401, 'invalid_token', 'Invalid Token'],
  access: [403, 'insufficient_access', 'Insufficient Grant'],
  limit: [403, 'insufficient_grant', 'unauthorized'],
  notFound: [404, 'not_found', 'Not found'],
  amount: [400, 'invalid_amount', 'Invalid amount'],
  receiver: [400, 'invalid_receiver', 'invalid receiver'],
  quote: [404, 'invalid_quote', 'unknown quote'],
  client: [401, 'invalid_client', 'Invalid signature'],
} as const

type Expected = readonly [status: number, code: string, description?: string, details?: object]

describe.each(deployments)('the published client and %s', (adapter) => {
  let running: RunningDeployment
  let [alice, bob, carol, auth, op] = ['', '', '', '', '']
  /** Tokens of the client, for quotes and for Bob's incoming payments. */
  let [quoting, receiving] = ['', '']

  beforeAll(async () => {
    running = await startDeployment(adapter, exchangeFor(fee))
    ;({ alice, bob, carol, auth, op } = running)
    quoting = await freely('quote', ['create', 'read'])
    receiving = await freely('incoming-payment', ['create', 'read', 'list', 'complete'])
  })
  afterAll(() => running.stop())

  const item = (type: string, actions: readonly string[], more: object = {}) =>
    [{ type, actions, ...more }] as unknown as Access
  const incoming = (identifier = bob, actions = ['create', 'read']) =>
    item('incoming-payment', actions, { identifier })
  const outgoing = (more: object = {}, actions = ['create', 'read']) =>
    item('outgoing-payment', actions, { identifier: alice, ...more })
  const monthly = {
    limits: { interval: 'R12/2026-12-01T00:00:00Z/P1M', debitAmount: usd('2500') },
  }

  /** Gets a token that does not need consent. */
  const freely = (type: string, actions: readonly string[], more: object = {}, by = client) =>
    tokenWithoutConsent(by, auth, item(type, actions, more))
  /** Gets a token to pay from Alice's account, with her consent. */
  const consented = (more: object = {}, actions = ['create', 'read'], by = client) =>
    approvedToken(by, auth, outgoing(more, actions), shop)
  const paying = async (more?: object, actions?: string[], by?: AuthenticatedClient) =>
    (await consented(more, actions, by)).value

  const request = (access: Access, more: object = {}, by = client) =>
    by.grant.request({ url: auth }, { access_token: { access }, ...more })
  const nonce = 'a-nonce-of-the-shop'
  const redirecting = () => ({
    start: ['redirect' as const],
    finish: { method: 'redirect' as const, uri: shop.finishUri, nonce },
  })
  async function pending(finish = true, more: object = {}): Promise<PendingGrant> {
    const interact = finish ? redirecting() : { start: ['redirect' as const] }
    const grant = await request(outgoing(monthly), { interact, ...more })
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    return grant
  }
  const continuation = (grant: { continue: PendingGrant['continue'] }) => ({
    url: grant.continue.uri,
    accessToken: grant.continue.access_token.value,
  })
  /** Continues a grant, by the redirect of its own interaction or of another, or by polling. */
  async function continued(grant: PendingGrant, location?: URL) {
    const interact_ref = location?.searchParams.get('interact_ref') ?? undefined
    return client.grant.continue(continuation(grant), interact_ref ? { interact_ref } : undefined)
  }
  async function approved(grant: PendingGrant) {
    const { page, location } = await decide(grant.interact.redirect, 'approve')
    return { page, location, answer: (await continued(grant, location)) as Grant }
  }

  /** Creates an incoming payment, with or without an amount. */
  async function receiver(walletAddress = bob, more: object = {}, accessToken = receiving) {
    const created = await client.incomingPayment.create(
      { url: op, accessToken },
      { walletAddress, ...more },
    )
    const where = { url: created.id, accessToken }
    return {
      id: created.id,
      created,
      where,
      read: () => client.incomingPayment.get(where),
      complete: () => client.incomingPayment.complete(where),
    }
  }
  const create = (accessToken: string, walletAddress = bob, by = client) =>
    by.incomingPayment.create({ url: op, accessToken }, { walletAddress })
  const list = (accessToken: string, walletAddress = bob, page: object = {}) =>
    client.incomingPayment.list({ url: op, accessToken, walletAddress }, page as never)
  function quote(asked: object, accessToken = quoting, by = client) {
    const body = { walletAddress: alice, method: 'ilp', debitAmount: usd('1010'), ...asked }
    return by.quote.create({ url: op, accessToken }, body as never)
  }
  const payQuote = (accessToken: string, quoteId: string, more: object = {}) =>
    client.outgoingPayment.create(
      { url: op, accessToken },
      { walletAddress: alice, quoteId, ...more },
    )
  function pay(accessToken: string, to: string, value = usd('100'), by = client, from = alice) {
    const body = { walletAddress: from, incomingPayment: to, debitAmount: value }
    return by.outgoingPayment.create({ url: op, accessToken }, body)
  }
  const read = (url: string, accessToken: string, by = client) =>
    by.outgoingPayment.get({ url, accessToken })
  const spent = (accessToken: string) =>
    client.outgoingPayment.getGrantSpentAmounts({ url: op, accessToken })
  const paid = (accessToken: string, walletAddress = alice, page: object = {}) =>
    client.outgoingPayment.list({ url: op, accessToken, walletAddress }, page as never)
  const managed = ({ manage, value }: { manage: string; value: string }) => ({
    url: manage,
    accessToken: value,
  })

  /** Sends a payment, and all others that were created before it. */
  async function send() {
    const { wallet } = running
    while ((await wallet.resources.events.drain((event) => handle(wallet, event))).delivered > 0);
  }
  /** Reports what was sent of a payment, or that it failed. */
  async function report(paymentUrl: string, sent?: SentReport) {
    const { outgoingPayments } = running.wallet.resources
    const id = outgoingPayments.idOf(paymentUrl) ?? ''
    await outgoingPayments.begin(id)
    const reported = sent ? outgoingPayments.reportSent(id, sent) : outgoingPayments.fail(id)
    expect(await reported).toMatchObject({ ok: true })
  }

  test('reads the document and the keys of a wallet address', async () => {
    expect(await client.walletAddress.get({ url: alice })).toEqual({
      id: alice,
      publicName: 'Alice',
      assetCode: 'USD',
      assetScale: 2,
      authServer: auth,
      resourceServer: op,
    })
    const { keys } = await client.walletAddress.getKeys({ url: alice })
    const key = { kid: 'alice-1', kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' }
    expect(keys).toEqual([{ ...key, x: expect.stringMatching(/^[\w-]{43}$/) }])
    const { keys: published } = await client.walletAddress.getKeys({ url: shop.walletAddress })
    const { x } = createPublicKey(shop.privateKey).export({ format: 'jwk' })
    expect(published).toMatchObject([{ kid: shop.keyId, x }])
  })

  describe('a grant', () => {
    test('that needs no consent is issued at once to a wallet address or a key', async () => {
      const grant = await request(incoming())
      const token = tokenOf(grant)
      expect([token.access, token.expires_in]).toEqual([incoming(), 600])
      expect(token.manage).not.toContain(token.value)
      const body = { access_token: { access: incoming() } }
      const named = { walletAddress: shop.walletAddress } as never
      expect(tokenOf(await client.grant.request({ url: auth }, body, named)).value).toBeTruthy()
      const keyed = await directed.grant.request({ url: auth }, body, { jwk: ownJwk })
      const { value: accessToken } = tokenOf(keyed)
      const payment = await create(accessToken, bob, directed)
      expect(await directed.incomingPayment.get({ url: payment.id, accessToken })).toEqual(payment)
    })

    test('is continued with the interaction reference of the redirect, whose hash is valid', async () => {
      const grant = await pending()
      expect(grant.continue.wait).toBe(5)
      const { page, location, answer } = await approved(grant)
      expect(page).toMatch(/25\.00\sUSD/)
      const parameters = location?.searchParams
      const reference = parameters?.get('interact_ref') ?? ''
      const base = [nonce, grant.interact.finish, reference, auth].join('\n')
      expect(parameters?.get('hash')).toBe(createHash('sha256').update(base).digest('base64'))
      expect(parameters?.get('order')).toBe('17')
      expect(tokenOf(answer).access).toEqual(outgoing(monthly))
      expect(answer.continue.access_token.value).toBe(grant.continue.access_token.value)
    })

    test('is continued by polling after approval if there is no redirect', async () => {
      const { location, answer } = await approved(await pending(false))
      expect(location).toBeUndefined()
      expect(tokenOf(answer).access).toEqual(outgoing(monthly))
    })

    test('redirects after a denial', async () => {
      const { location } = await decide((await pending()).interact.redirect, 'deny')
      expect([...(location?.searchParams ?? [])]).toEqual([
        ['order', '17'],
        ['result', 'grant_rejected'],
      ])
    })

    test('is over after it is cancelled', async () => {
      const grant = await pending(false)
      expect(await client.grant.cancel(continuation(grant))).toBeUndefined()
      expect((await decide(grant.interact.redirect, 'approve')).page).toContain('It has ended')
    })

    test.each([true, false])('includes the subject, with access: %s', async (withAccess) => {
      const subject = { sub_ids: [{ id: alice, format: 'uri' as const }] }
      const access = item('outgoing-payment', ['create'], { identifier: alice })
      const grant = await pending(true, {
        subject,
        access_token: withAccess ? { access } : undefined,
      })
      const { page, answer } = await approved(grant)
      expect(page.replaceAll(/<[^>]+>|[\u2066-\u2069]/g, '')).toContain(
        `know that you are ${alice}`,
      )
      expect(isFinalizedGrantWithSubject(answer) && answer.subject).toEqual(subject)
      expect(isFinalizedGrantWithAccessToken(answer)).toBe(withAccess)
      if (withAccess) expect(tokenOf(answer).access).toEqual(access)
    })

    test('with the subject of another owner cannot be approved', async () => {
      const subject = { sub_ids: [{ id: 'https://other.example/alice', format: 'uri' }] }
      const { interact } = await pending(true, { subject })
      expect((await decide(interact.redirect, 'approve')).location).toBeUndefined()
    })
  })

  test('a token is rotated to another one with the same rights, and revoked', async () => {
    const token = tokenOf(await request(incoming()))
    const { access_token: rotated } = await client.token.rotate(managed(token))
    expect(rotated.value).not.toBe(token.value)
    expect(rotated.manage).not.toBe(token.manage)
    expect(rotated.access).toEqual(token.access)
    expect((await create(rotated.value)).walletAddress).toBe(bob)
    for (let i = 0; i < 2; i++) expect(await client.token.revoke(managed(rotated))).toBeUndefined()
  })

  describe('an incoming payment', () => {
    const asked = () => ({ incomingAmount: usd('2500'), metadata: { invoice: 'A', lines: [1] } })

    test('is created, read with a later token and completed, also when that is repeated', async () => {
      const { created, id, read, complete } = await receiver(bob, asked())
      expect(created).toMatchObject({
        walletAddress: bob,
        completed: false,
        receivedAmount: usd('0'),
        ...asked(),
        methods: [{ type: 'ilp' }],
      })
      expect(id.startsWith(`${op}/incoming-payments/`)).toBe(true)
      expect(await read()).toEqual(created)
      const accessToken = await freely('incoming-payment', ['read'], { identifier: bob })
      expect(await client.incomingPayment.get({ url: id, accessToken })).toEqual(created)
      const { methods: _methods, ...rest } = created
      const completed = await complete()
      expect(completed).toEqual({ ...rest, completed: true })
      expect(await complete()).toEqual(completed)
      expect(await read()).toEqual({ ...completed, methods: [] })
    })

    test('is read by the wallet of the payer, with one token for all accounts', async () => {
      const accessToken = await freely('incoming-payment', ['read-all'], {}, stranger)
      const others = [await receiver(bob, asked()), await receiver(carol)]
      for (const { id, created } of others) {
        expect(await stranger.incomingPayment.get({ url: id, accessToken })).toEqual(created)
      }
    })

    test('has a public view, with and without a key', async () => {
      const { id: url } = await receiver()
      const view = { receivedAmount: usd('0'), authServer: auth }
      expect(await client.incomingPayment.getPublic({ url })).toEqual(view)
      expect(await anonymous.incomingPayment.get({ url })).toEqual(view)
    })

    test('is in lists, which can be paged forwards and backwards', async () => {
      const accessToken = await freely('incoming-payment', ['create', 'list'], {
        identifier: carol,
      })
      const created: string[] = []
      for (let i = 0; i < 5; i++) created.push((await receiver(carol, {}, accessToken)).id)
      const mine = (page?: object) => list(accessToken, carol, page)
      const ids = ({ result }: Awaited<ReturnType<typeof mine>>) => result.map(({ id }) => id)
      const all = await mine({ last: 5 })
      expect(ids(all).toSorted()).toEqual(created.toSorted())
      const first = await mine({ first: 2 })
      const second = await mine({ first: 2, cursor: first.pagination.endCursor })
      expect(second.pagination).toMatchObject({ hasPreviousPage: true })
      const { endCursor: cursor } = all.pagination
      expect(ids(await mine({ last: 2, cursor }))).toEqual(ids(all).slice(2, 4))
      const none = await freely('incoming-payment', ['list'], {}, stranger)
      const where = { url: op, accessToken: none, walletAddress: carol }
      expect(await stranger.incomingPayment.list(where)).toEqual({
        pagination: { hasNextPage: false, hasPreviousPage: false },
        result: [],
      })
    })

    test('of another client is in the list if the owner granted list-all', async () => {
      const created: string[] = []
      for (const by of [client, stranger]) {
        const token = await freely('incoming-payment', ['create'], { identifier: alice }, by)
        created.push((await create(token, alice, by)).id)
      }
      const listing = async (accessToken: string) =>
        (await list(accessToken, alice)).result.map(({ id }) => id)
      const whole = await approvedToken(client, auth, incoming(alice, ['list-all']), shop)
      expect((await listing(whole.value)).toSorted()).toEqual(created.toSorted())
      const own = await freely('incoming-payment', ['list'], { identifier: alice })
      expect(await listing(own)).toEqual(created.slice(0, 1))
    })
  })

  describe('a quote', () => {
    test('is for the amount of the receiver, and then for the remainder', async () => {
      const { id } = await receiver(bob, { incomingAmount: usd('2000') })
      const made = await quote({ receiver: id, debitAmount: undefined })
      expect(made).toMatchObject({
        walletAddress: alice,
        receiver: id,
        method: 'ilp',
        debitAmount: usd('2020'),
        receiveAmount: usd('2000'),
      })
      expect(await client.quote.get({ url: made.id, accessToken: quoting })).toEqual(made)
      const { createdAt, expiresAt } = made
      expect(Date.parse(`${expiresAt}`) - Date.parse(createdAt)).toBe(300_000)
      const { incomingPayments } = running.wallet.resources
      const funds = { transferId: id, amount: usd('500') }
      await incomingPayments.receive(incomingPayments.idOf(id) ?? '', funds)
      const { receiveAmount } = await quote({ receiver: id, debitAmount: undefined })
      expect(receiveAmount).toEqual(usd('1500'))
    })

    test.each([
      ['debited, to dollars', 'bob', { debitAmount: usd('1010') }, ['1010', '1000']],
      ['debited, to euros', 'carol', { debitAmount: usd('1010') }, ['1010', '925']],
      ['received, in dollars', 'bob', { receiveAmount: usd('1000') }, ['1010', '1000']],
      ['received, in euros', 'carol', { receiveAmount: eur('100') }, ['110', '100']],
    ])('is created for an amount %s', async (_, name, asked, [debited = '', received = '']) => {
      const [to, amount] = name === 'bob' ? [bob, usd] : [carol, eur]
      const { id } = await receiver(to)
      expect(await quote({ receiver: id, debitAmount: undefined, ...asked })).toMatchObject({
        debitAmount: usd(debited),
        receiveAmount: amount(received),
      })
    })
  })

  describe('an outgoing payment', () => {
    test('is created from a quote once, and settled', async () => {
      const to = await receiver(bob, { incomingAmount: usd('1000') })
      const { id: quoteId } = await quote({ receiver: to.id })
      const value = await paying({ limits: { debitAmount: usd('1010') } })
      const more = { metadata: { lines: [{ sku: 'x' }] } }
      const payment = await payQuote(value, quoteId, more)
      const { grantSpentDebitAmount, grantSpentReceiveAmount, ...made } = payment
      expect(made).toEqual({
        ...more,
        walletAddress: alice,
        quoteId,
        id: expect.stringContaining(`${op}/outgoing-payments/`),
        failed: false,
        receiver: to.id,
        debitAmount: usd('1010'),
        receiveAmount: usd('1000'),
        sentAmount: usd('0'),
        createdAt: expect.any(String),
      })
      expect([grantSpentDebitAmount, grantSpentReceiveAmount]).toEqual([usd('1010'), usd('1000')])
      expect(await payQuote(value, quoteId, more)).toEqual(payment)
      expect(await read(payment.id, value)).toEqual(made)
      await send()
      expect(await read(payment.id, value)).toEqual({ ...made, sentAmount: usd('1010') })
      expect(await to.read()).toMatchObject({ completed: true, receivedAmount: usd('1000') })
    })

    test('is created directly to an incoming payment, and arrives although the token is revoked', async () => {
      const to = await receiver(carol)
      const token = await consented({ limits: { receiveAmount: eur('925') } })
      const payment = await pay(token.value, to.id, usd('1010'))
      expect(payment).not.toHaveProperty('quoteId')
      expect(payment).toMatchObject({
        receiver: to.id,
        debitAmount: usd('1010'),
        receiveAmount: eur('925'),
        grantSpentDebitAmount: usd('1010'),
        grantSpentReceiveAmount: eur('925'),
      })
      await client.token.revoke(managed(token))
      await send()
      expect((await to.read()).receivedAmount).toEqual(eur('925'))
    })

    test('is made from the account that the owner chose for a client that names none', async () => {
      const to = await receiver(carol)
      const [euros, limits] = [`${running.baseUrl}/alice-euros`, { debitAmount: eur('300') }]
      const open = item('outgoing-payment', ['create'], { limits })
      const { value, access } = await approvedToken(client, auth, open, shop, euros)
      expect(access).toEqual([{ ...open[0], identifier: euros }])
      expect(await failure(pay(value, to.id, usd('1')))).toMatchObject({ status: 403 })
      const payment = await pay(value, to.id, eur('300'), client, euros)
      expect(payment).toMatchObject({ walletAddress: euros, debitAmount: eur('300') })
    })

    test.each([
      ['for the life of the grant', {}],
      ['for a month', { interval: 'R/2020-01-01T00:00:00Z/P1M' }],
    ])('counts under a limit %s, until a part is not sent', async (_, more) => {
      const token = await consented({ limits: { debitAmount: usd('1000'), ...more } })
      const { id } = await receiver()
      const of = (debited: string, received: string) => ({
        spentDebitAmount: usd(debited),
        spentReceiveAmount: usd(received),
      })
      const { access_token: rotated } = await client.token.rotate(managed(token))
      const { value } = rotated
      expect(await spent(value)).toEqual({ spentDebitAmount: usd('0'), spentReceiveAmount: null })
      const first = await pay(value, id, usd('600'))
      const second = await pay(value, id, usd('400'))
      expect(second.grantSpentDebitAmount).toEqual(usd('1000'))
      const some = { sentAmount: usd('202'), deliveredAmount: usd('200') }
      await report(first.id, some)
      expect(await spent(value)).toEqual(of('1000', '990'))
      await report(first.id, { ...some, final: true })
      await report(second.id)
      expect(await spent(value)).toEqual(of('202', '200'))
      expect(await read(second.id, value)).toMatchObject({ failed: true, sentAmount: usd('0') })
    })

    test('is in lists, page by page, with those of other clients if the owner granted it', async () => {
      const { id: to } = await receiver()
      const actions = ['create', 'list', 'read']
      const value = await paying({}, actions)
      const theirs = await paying({}, actions, stranger)
      const ids = [(await pay(value, to)).id, (await pay(value, to, usd('101'))).id]
      const foreign = (await pay(theirs, to, usd('102'), stranger)).id
      const idsOf = ({ result }: Awaited<ReturnType<typeof paid>>) => result.map(({ id }) => id)
      const end = await paid(value, alice, { last: 2 })
      expect(idsOf(end)).toEqual(ids)
      expect(end.result[1]).toEqual(await read(ids[1] ?? '', value))
      expect(end.pagination.hasNextPage).toBe(false)
      const { endCursor: cursor } = end.pagination
      const back = await paid(value, alice, { last: 1, cursor })
      expect(idsOf(back)).toEqual(ids.slice(0, 1))
      const on = await paid(value, alice, { first: 2, cursor: back.pagination.endCursor })
      expect(idsOf(on)).toEqual(ids.slice(1))
      expect(on.pagination).toMatchObject({ hasPreviousPage: true, hasNextPage: false })
      const whole = await paying({}, ['list-all'])
      expect(idsOf(await paid(whole, alice, { last: 3 }))).toEqual([...ids, foreign])
    })
  })

  /** Defines calls that the server refuses. The client validates each error against its schema. */
  function refuses(
    [status, code, description, details]: Expected,
    calls: Readonly<Record<string, () => Promise<unknown>>>,
  ): void {
    test.each(Object.entries(calls))(`refuses with ${code} %s`, async (_, call) => {
      const refused = await failure(call())
      expect(refused).toMatchObject({ status, code, ...(details && { details }) })
      if (description !== undefined) expect(refused.description).toBe(description)
    })
  }

  const to = async (account = bob) => (await receiver(account)).id
  const nobody = () => `${running.baseUrl}/nobody`
  const missing = (path: string) => `${op}/${path}/unknown`
  const elsewhere = 'https://wallet.example/incoming-payments/1'
  const fresh = async (access = incoming()) => tokenOf(await request(access))
  const byKey = (access: Access, jwk: typeof ownJwk, by: AuthenticatedClient, more: object = {}) =>
    by.grant.request({ url: auth }, { access_token: { access }, ...more }, { jwk })
  const closed = async () => {
    const { id, complete } = await receiver()
    await complete()
    return id
  }
  const revoked = async () => {
    const token = await fresh()
    await client.token.revoke(managed(token))
    return token
  }

  describe('grants and tokens', () => {
    refuses(errors.client, {
      'a key that differs from the published one': () => request(incoming(), {}, thief),
      'a key that did not sign': () => byKey(incoming(), ownKey(shop.keyId).jwk, client),
    })
    refuses([400, 'invalid_client', 'Could not determine client'], {
      'a key that is not published': () => request(incoming(), {}, unknown),
    })
    refuses([400, 'invalid_client'], {
      'an interaction for a key alone': () =>
        byKey(outgoing(monthly), ownJwk, directed, { interact: { start: ['redirect'] } }),
    })
    refuses([400, 'invalid_request', "Missing required request field 'interact'"], {
      'access without the interaction that it needs': () => request(outgoing(monthly)),
    })
    refuses([400, 'invalid_request'], {
      'a subject without an interaction': () =>
        request(incoming(), { subject: { sub_ids: [{ id: bob, format: 'uri' }] } }),
      'access that does not exist': () => request(incoming(bob, ['destroy'])),
    })
    refuses([400, 'too_fast', 'Continued before "wait" had passed'], {
      'a poll before the wait has passed': async () => continued(await pending(false)),
    })
    refuses([401, 'request_denied'], {
      async 'a poll if there is a redirect'() {
        const grant = await pending()
        await decide(grant.interact.redirect, 'approve')
        return continued(grant)
      },
    })
    refuses([401, 'request_denied', 'Grant was denied'], {
      async 'a poll after a denial'() {
        const grant = await pending(false)
        await decide(grant.interact.redirect, 'deny')
        return continued(grant)
      },
    })
    refuses([404, 'invalid_continuation'], {
      async 'the reference of another interaction'() {
        const [grant, one] = [await pending(), await pending()]
        await decide(grant.interact.redirect, 'approve')
        return continued(grant, (await decide(one.interact.redirect, 'approve')).location)
      },
      async 'the continuation of a cancelled grant'() {
        const grant = await pending(false)
        await client.grant.cancel(continuation(grant))
        return continued(grant)
      },
    })
    refuses([401, 'invalid_client'], {
      'the rotation with another key': async () => thief.token.rotate(managed(await fresh())),
      'the revocation with another key': async () => thief.token.revoke(managed(await fresh())),
    })
    refuses([404, 'invalid_rotation'], {
      'the rotation with the token of another grant': async () =>
        client.token.rotate(managed({ ...(await fresh()), value: receiving })),
      'the rotation of a revoked token': async () => client.token.rotate(managed(await revoked())),
    })
    refuses(errors.token, {
      'a revoked token': async () => create((await revoked()).value),
      async 'a token that was rotated'() {
        const token = await consented()
        await client.token.rotate(managed(token))
        return spent(token.value)
      },
      async 'the token of a cancelled grant'() {
        const grant = (await request(incoming())) as Grant
        await client.grant.cancel(continuation(grant))
        return create(tokenOf(grant).value)
      },
      'a continuation token': async () =>
        create(((await request(incoming())) as Grant).continue.access_token.value),
      'an unknown token to create': () => create('unknown'),
      'an unknown token to read': async () =>
        client.incomingPayment.get({ url: await to(), accessToken: 'unknown' }),
      'an unknown token to quote': () => quote({ receiver: elsewhere }, 'unknown'),
      'an unknown token to pay': () => pay('unknown', elsewhere),
    })
    refuses(errors.signature, {
      'a token with another key': () => create(receiving, bob, thief),
      'a token of another client': async () => pay(await paying(), await to(), usd('1'), stranger),
    })
  })

  describe('resources', () => {
    refuses([404, 'not_found'], {
      'a DID document': () => client.walletAddress.getDIDDocument({ url: alice }),
    })
    refuses(errors.notFound, {
      'a wallet address that does not exist': () => client.walletAddress.get({ url: nobody() }),
      'the keys of one that does not exist': () => client.walletAddress.getKeys({ url: nobody() }),
      'an incoming payment that does not exist': () =>
        client.incomingPayment.get({ url: missing('incoming-payments'), accessToken: receiving }),
      'an incoming payment into another account than the token names': async () =>
        client.incomingPayment.get({ url: await to(carol), accessToken: (await fresh()).value }),
      'the public view of a payment that does not exist': () =>
        anonymous.incomingPayment.get({ url: missing('incoming-payments') }),
      async 'the completion of the payment of another client'() {
        const accessToken = await freely('incoming-payment', ['complete'], {}, stranger)
        return stranger.incomingPayment.complete({ url: await to(), accessToken })
      },
      async 'a quote of another client'() {
        const made = await quote({ receiver: await to() })
        const accessToken = await freely('quote', ['read'], {}, stranger)
        return stranger.quote.get({ url: made.id, accessToken })
      },
      'a quote that does not exist': () =>
        client.quote.get({ url: missing('quotes'), accessToken: quoting }),
      async 'the outgoing payment of another client'() {
        const { id } = await pay(await paying(), await to())
        return read(id, await paying({}, ['read'], stranger), stranger)
      },
      'an outgoing payment that does not exist': async () =>
        read(missing('outgoing-payments'), await paying()),
    })
    refuses([404, 'unknown_wallet_address'], {
      'a quote for an account that does not exist': async () =>
        quote({ receiver: await to(), walletAddress: nobody() }),
    })
    refuses(errors.access, {
      'a payment without the action': async () =>
        create((await fresh(incoming(bob, ['read']))).value),
      'a payment with a token to pay': async () => create(await paying()),
      'a payment into another account': async () => create((await fresh()).value, carol),
      'a completion without the action': async () =>
        client.incomingPayment.complete({
          url: await to(),
          accessToken: await freely('incoming-payment', ['read-all']),
        }),
      'a list without the action': async () => list(await freely('incoming-payment', ['read-all'])),
      'a list of another account': async () =>
        list((await fresh(incoming(bob, ['list']))).value, carol),
      'a quote without the action': async () =>
        quote({ receiver: elsewhere }, await freely('quote', ['read'])),
      'a quote with a token to pay': async () => quote({ receiver: elsewhere }, await paying()),
      'paying without the action': async () => pay(await paying({}, ['read']), await to()),
      'paying with a token for quotes': async () => pay(quoting, await to()),
      'paying from another account': async () =>
        pay(await paying(), await to(), usd('100'), client, bob),
      'spent amounts without a right to pay': () => spent(quoting),
      'a list of what was paid without the action': async () => paid(await paying()),
      'a list of what another account paid': async () => paid(await paying({}, ['list']), bob),
    })
    refuses([400, 'invalid_request'], {
      'a page of more than 100': () => list(receiving, bob, { first: 101 }),
      'a page in both directions': () => list(receiving, bob, { first: 1, last: 1 }),
      'a page after an unknown cursor': () => list(receiving, bob, { cursor: 'none' }),
      'a page of more than 100 outgoing payments': async () =>
        paid(await paying({}, ['list']), alice, { first: 101 }),
    })
    refuses(errors.amount, {
      'an incoming amount in another asset': () => receiver(carol, { incomingAmount: usd('1') }),
      'a quoted debit amount in another asset': async () =>
        quote({ receiver: await to(), debitAmount: eur('100') }),
      'a quoted receive amount in another asset': async () =>
        quote({ receiver: await to(), debitAmount: undefined, receiveAmount: eur('100') }),
    })
    refuses([400, 'invalid_amount'], {
      'a debit amount in another asset': async () => pay(await paying(), await to(), eur('100')),
    })
    refuses([400, 'invalid_amount', 'Missing amount'], {
      'a quote without an amount': async () =>
        quote({ receiver: await to(), debitAmount: undefined }),
    })
    for (const [least, account] of [
      ['2', () => bob],
      ['3', () => carol],
    ] as const) {
      const details = { minSendAmount: usd(least) }
      refuses([400, 'invalid_amount', 'non-positive receive amount', details], {
        [`an amount below ${least}`]: async () =>
          quote({ receiver: await to(account()), debitAmount: usd('1') }),
      })
    }
    refuses(errors.receiver, {
      'a quote for a completed payment': async () => quote({ receiver: await closed() }),
      'a quote for a payment elsewhere': () => quote({ receiver: elsewhere }),
      'a quote for a payment that does not exist': () =>
        quote({ receiver: missing('incoming-payments') }),
      'paying a completed payment': async () => pay(await paying(), await closed()),
    })
    refuses(errors.quote, {
      async 'the quote of another client'() {
        const token = await freely('quote', ['create'], {}, stranger)
        const theirs = await quote({ receiver: await to() }, token, stranger)
        return payQuote(await paying(), theirs.id)
      },
      'an unknown quote': async () => payQuote(await paying(), missing('quotes')),
      'a quote elsewhere': async () => payQuote(await paying(), 'https://wallet.example/quotes/1'),
    })
    refuses([422, 'request_differs', 'Already used for another payment'], {
      async 'another payment with a used quote'() {
        const { id } = await quote({ receiver: await to() })
        const token = await paying()
        await payQuote(token, id)
        return payQuote(token, id, { metadata: {} })
      },
    })
    refuses(errors.limit, {
      async 'more than the limit'() {
        const token = await paying({ limits: { debitAmount: usd('1000') } })
        await pay(token, await to(), usd('600'))
        return pay(token, await to(), usd('401'))
      },
      'more than the limit of the receive amount': async () =>
        pay(await paying({ limits: { receiveAmount: eur('1') } }), await to(carol)),
      'another asset than the limit': async () =>
        pay(await paying({ limits: { receiveAmount: eur('925') } }), await to()),
      'another receiver than the limit names': async () =>
        pay(await paying({ limits: { receiver: await to() } }), await to()),
      async 'a payment before the first window'() {
        const interval = 'R12/2999-01-01T00:00:00Z/P1M'
        const token = await paying({ limits: { debitAmount: usd('1000'), interval } })
        expect(await spent(token)).toEqual({ spentDebitAmount: null, spentReceiveAmount: null })
        return pay(token, await to())
      },
    })
  })
})
