import { createPrivateKey, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AuthenticatedClient, GrantRequest } from '@interledger/open-payments'
import { startSandbox } from 'open-payments-sandbox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { allWork, outcomesOf, type Snippets, variables } from '../support/clients/quickstarts.js'
import { type Version, versions } from '../support/clients/versions.js'
import {
  clientSettings,
  deployments,
  type RunningDeployment,
  startDeployment,
  usd,
} from '../support/official-client.js'
import { isLong } from '../support/runs.js'

const tried: readonly Version[] = isLong ? ['7.0.0', '7.1.1', '7.4.0'] : ['7.4.0']

/** What quickstarts no longer ask for: to list everybody's payments without consent, and two limits. */
const listAll = 'grant-incoming-payment with list-all'
const bothLimits = 'grant-outgoing-payment with both limits'
const refused = {
  [listAll]: '400 invalid_request',
  [bothLimits]: 'Invalid Grant Request', // by the client, which sends nothing
}

type QuickstartWallet = Pick<RunningDeployment, 'alice' | 'aliceKey' | 'stop'>

async function sandboxWallet(): Promise<QuickstartWallet> {
  const { account, stop } = await startSandbox({ port: 0, outboundTimeoutMs: 60_000 })
  const { walletAddress, privateKeyPem } = account('alice')
  return { alice: walletAddress, aliceKey: createPrivateKey(privateKeyPem), stop }
}

const wallets = [
  ...deployments.map((each) => ({
    name: `the created wallet on ${each}`,
    start: (): Promise<QuickstartWallet> => startDeployment(each),
  })),
  { name: 'the sandbox', start: sandboxWallet },
]

describe.each(wallets)('$name', ({ start }) => {
  let running: QuickstartWallet
  beforeAll(async () => {
    running = await start()
  })
  afterAll(() => running.stop())

  test.each(tried)('serves the TypeScript quickstarts to client %s', async (version) => {
    const snippets = await quickstarts(version, running)
    const expected = allWork(snippets, refused)
    expect(await outcomesOf(snippets)).toEqual(expected)
    if (version !== '7.4.0') return
    const works = Object.values(expected).filter((outcome) => outcome === 'works').length
    const count = Object.keys(snippets).length
    expect(readFileSync('docs/clients.md', 'utf8')).toContain(
      `| TypeScript, \`@interledger/open-payments\` 7.4.0 | ${count} | ${works}; `,
    )
  })
})

/**
 * The calls of each quickstart with its parameters. One wallet address is the client, the payer and the payee, and
 * payments are at its origin, whatever its document says. Versions before 7.4.0 cannot read the amounts spent.
 */
async function quickstarts(
  version: Version,
  { alice: WALLET_ADDRESS, aliceKey: privateKey }: QuickstartWallet,
): Promise<Snippets> {
  const { createAuthenticatedClient, createUnauthenticatedClient, isPendingGrant } =
    versions[version]
  const env = variables()
  const keyId = 'alice-1'
  const identity = { walletAddressUrl: WALLET_ADDRESS, keyId, privateKey }
  const client: AuthenticatedClient = await createAuthenticatedClient({
    ...identity,
    ...clientSettings,
  })
  const { origin } = new URL(WALLET_ADDRESS)
  const address = () => client.walletAddress.get({ url: WALLET_ADDRESS })

  async function grantWithoutConsent(access: object, name: string) {
    const { authServer } = await address()
    const request = { access_token: { access: [access] } } as unknown as GrantRequest
    const grant = await client.grant.request({ url: authServer }, request as never)
    if (isPendingGrant(grant)) throw new Error('the grant is pending')
    const { access_token } = grant as unknown as { access_token: { value: string; manage: string } }
    env(`${name}_ACCESS_TOKEN`, access_token.value)
    env(`${name}_ACCESS_TOKEN_MANAGE_URL`, access_token.manage)
  }

  /** Requests a grant, and opens the printed URL as Alice, who approves, and chooses her account if none is named. */
  async function grantWithConsent(...access: readonly object[]) {
    const { authServer } = await address()
    const finish = { method: 'redirect', uri: 'http://localhost:3344', nonce: randomUUID() }
    const grant = await client.grant.request({ url: authServer }, {
      access_token: { access },
      interact: { start: ['redirect'], finish },
    } as never)
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    env('CONTINUE_ACCESS_TOKEN', grant.continue.access_token.value)
    env('CONTINUE_URI', grant.continue.uri)
    const { location } = await decide(grant.interact.redirect, 'approve', WALLET_ADDRESS)
    env('URL_WITH_INTERACT_REF', String(location))
  }

  async function continueGrant() {
    const { searchParams } = new URL(env('URL_WITH_INTERACT_REF'))
    const grant = await client.grant.continue(
      { accessToken: env('CONTINUE_ACCESS_TOKEN'), url: env('CONTINUE_URI') },
      { interact_ref: searchParams.get('interact_ref') ?? '' },
    )
    const { access_token } = grant as unknown as { access_token: { value: string; manage: string } }
    env('OUTGOING_PAYMENT_ACCESS_TOKEN', access_token.value)
    env('OUTGOING_PAYMENT_ACCESS_TOKEN_MANAGE_URL', access_token.manage)
  }

  async function toPay(limits: object) {
    const quote = await client.quote.get({
      url: env('QUOTE_URL'),
      accessToken: env('QUOTE_ACCESS_TOKEN'),
    })
    const { id: identifier } = await address()
    const actions = ['list', 'list-all', 'read', 'read-all', 'create']
    await grantWithConsent({
      type: 'outgoing-payment',
      actions,
      identifier,
      limits: { debitAmount: quote.debitAmount, ...limits },
    })
  }

  async function quoted(amounts: object) {
    const quote = await client.quote.create(
      { url: origin, accessToken: env('QUOTE_ACCESS_TOKEN') },
      {
        method: 'ilp',
        walletAddress: WALLET_ADDRESS,
        receiver: env('INCOMING_PAYMENT_URL'),
        ...amounts,
      },
    )
    env('QUOTE_URL', quote.id)
    return quote
  }

  async function amountOf(value: string) {
    const { assetCode, assetScale } = await address()
    return { value, assetCode, assetScale }
  }

  async function pay(more: object) {
    const payment = await client.outgoingPayment.create(
      { url: origin, accessToken: env('OUTGOING_PAYMENT_ACCESS_TOKEN') },
      { walletAddress: WALLET_ADDRESS, quoteId: env('QUOTE_URL'), ...more },
    )
    env('OUTGOING_PAYMENT_URL', payment.id)
    expect(payment).toMatchObject({ walletAddress: WALLET_ADDRESS, quoteId: env('QUOTE_URL') })
  }

  const page = { first: 10, last: undefined, cursor: undefined } as never
  const incoming = () => ({
    url: env('INCOMING_PAYMENT_URL'),
    accessToken: env('INCOMING_PAYMENT_ACCESS_TOKEN'),
  })
  const outgoing = () => ({
    url: env('OUTGOING_PAYMENT_URL'),
    accessToken: env('OUTGOING_PAYMENT_ACCESS_TOKEN'),
  })
  const outgoingToken = () => ({
    url: env('OUTGOING_PAYMENT_ACCESS_TOKEN_MANAGE_URL'),
    accessToken: env('OUTGOING_PAYMENT_ACCESS_TOKEN'),
  })

  return {
    'wallet-address-get': async () => {
      expect(await address()).toMatchObject({ id: WALLET_ADDRESS, resourceServer: origin })
    },
    'wallet-address-get-keys': async () => {
      const { keys } = await client.walletAddress.getKeys({ url: WALLET_ADDRESS })
      expect(keys.map(({ kid }) => kid)).toContain(keyId)
    },
    'grant-incoming-payment': () =>
      grantWithoutConsent(
        {
          type: 'incoming-payment',
          actions: ['list', 'read', 'read-all', 'complete', 'create'],
        },
        'INCOMING_PAYMENT',
      ),
    [listAll]: () =>
      grantWithoutConsent(
        {
          type: 'incoming-payment',
          actions: ['list', 'list-all', 'read', 'read-all', 'complete', 'create'],
        },
        'INCOMING_PAYMENT',
      ),
    'incoming-payment-create': async () => {
      const payment = await client.incomingPayment.create(
        { url: origin, accessToken: env('INCOMING_PAYMENT_ACCESS_TOKEN') },
        {
          walletAddress: WALLET_ADDRESS,
          incomingAmount: usd('1000'),
          expiresAt: new Date(Date.now() + 600_000).toISOString(),
        },
      )
      env('INCOMING_PAYMENT_URL', payment.id)
    },
    'incoming-payment-get': async () => {
      const payment = await client.incomingPayment.get(incoming())
      expect(payment).toMatchObject({ incomingAmount: usd('1000'), methods: [{ type: 'ilp' }] })
    },
    'incoming-payment-get-public': async () => {
      const anyone = await createUnauthenticatedClient(clientSettings)
      const payment = await anyone.incomingPayment.get({ url: env('INCOMING_PAYMENT_URL') })
      expect(payment).not.toHaveProperty('methods')
    },
    'incoming-payment-list': async () => {
      const at = { ...incoming(), url: origin, walletAddress: WALLET_ADDRESS }
      const { result } = await client.incomingPayment.list(at, page)
      expect(result.map(({ id }) => id)).toContain(env('INCOMING_PAYMENT_URL'))
    },
    'grant-quote': () =>
      grantWithoutConsent({ type: 'quote', actions: ['create', 'read', 'read-all'] }, 'QUOTE'),
    'quote-create': async () => {
      expect(await quoted({})).toMatchObject({ receiveAmount: usd('1000') })
    },
    'quote-create-debit-amount': async () => {
      const debitAmount = await amountOf('500')
      expect(await quoted({ debitAmount })).toMatchObject({ debitAmount })
    },
    'quote-create-receive-amount': async () => {
      const receiveAmount = await amountOf('500')
      expect(await quoted({ receiveAmount })).toMatchObject({ receiveAmount })
    },
    'quote-get': async () => {
      const at = { url: env('QUOTE_URL'), accessToken: env('QUOTE_ACCESS_TOKEN') }
      expect((await client.quote.get(at)).id).toBe(env('QUOTE_URL'))
    },
    'grant-outgoing-payment': () => toPay({}),
    'grant-continuation': continueGrant,
    'outgoing-payment-create': () => pay({}),
    'outgoing-payment-get': async () => {
      expect((await client.outgoingPayment.get(outgoing())).id).toBe(env('OUTGOING_PAYMENT_URL'))
    },
    'outgoing-payment-list': async () => {
      const at = { ...outgoing(), url: origin, walletAddress: WALLET_ADDRESS }
      const { result } = await client.outgoingPayment.list(at, page)
      expect(result.map(({ id }) => id)).toContain(env('OUTGOING_PAYMENT_URL'))
    },
    ...(version === '7.4.0' && {
      'outgoing-grant-spent-amounts': async () => {
        const { resourceServer: url } = await address()
        const spent = await client.outgoingPayment.getGrantSpentAmounts({ ...outgoing(), url })
        expect(spent.spentDebitAmount).toEqual(usd('500'))
      },
    }),
    'grant-outgoing-payment-interval': async () => {
      await quoted({ debitAmount: await amountOf('500') })
      await toPay({ interval: 'R/2016-08-24T08:00:00Z/P1D' })
      await continueGrant()
    },
    'outgoing-payment-create with metadata': () => pay({ metadata: { description: 'data' } }),
    'incoming-payment-complete': async () => {
      const payment = await client.incomingPayment.complete(incoming())
      expect(payment).toMatchObject({ completed: true })
    },
    'token-rotate': async () => {
      const { access_token } = await client.token.rotate(outgoingToken())
      env('OUTGOING_PAYMENT_ACCESS_TOKEN', access_token.value)
      env('OUTGOING_PAYMENT_ACCESS_TOKEN_MANAGE_URL', access_token.manage)
      expect((await client.outgoingPayment.get(outgoing())).id).toBe(env('OUTGOING_PAYMENT_URL'))
    },
    'token-revoke': () => client.token.revoke(outgoingToken()),
    'grant-revoke': () =>
      client.grant.cancel({
        url: env('CONTINUE_URI'),
        accessToken: env('CONTINUE_ACCESS_TOKEN'),
      }),
    grant: async () => {
      await grantWithConsent(
        { type: 'quote', actions: ['read', 'read-all', 'create'] },
        {
          type: 'incoming-payment',
          actions: ['read', 'read-all', 'list', 'list-all', 'create', 'complete'],
        },
        {
          type: 'outgoing-payment',
          actions: ['read', 'read-all', 'list', 'list-all', 'create'],
          identifier: WALLET_ADDRESS,
          limits: { debitAmount: usd('10000') },
        },
      )
      await continueGrant()
      // Its note says that this token is also for incoming payments and quotes.
      const accessToken = env('OUTGOING_PAYMENT_ACCESS_TOKEN')
      const at = { url: origin, accessToken }
      const walletAddress = WALLET_ADDRESS
      const { id: receiver } = await client.incomingPayment.create(at, { walletAddress })
      const amounts = { method: 'ilp', receiveAmount: usd('100') } as const
      const { id } = await client.quote.create(at, { walletAddress, receiver, ...amounts })
      const payment = await client.outgoingPayment.create(at, { walletAddress, quoteId: id })
      expect(payment.receiveAmount).toEqual(usd('100'))
    },
    [bothLimits]: () => toPay({ receiveAmount: usd('10000') }),
  }
}
