import { randomUUID } from 'node:crypto'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isPendingGrant,
} from '@interledger/open-payments'
import {
  clientSettings,
  continued,
  tokenWithoutConsent,
} from 'open-payments-test-support/official-client'
import type { Sandbox } from '../../src/index.js'

export const finishUri = 'http://localhost:1/thank-you'

/** The published client, which acts for an account of the sandbox with its current key. */
export function clientFor(sandbox: Sandbox, name = 'app'): Promise<AuthenticatedClient> {
  const { walletAddress: walletAddressUrl, keyId, privateKeyPem } = sandbox.account(name)
  const privateKey = Buffer.from(privateKeyPem)
  return createAuthenticatedClient({ walletAddressUrl, keyId, privateKey, ...clientSettings })
}

/** Creates an invoice of an account. */
export async function invoiceOf(client: AuthenticatedClient, walletAddress: string, value: string) {
  const { authServer, resourceServer, assetCode, assetScale } = await client.walletAddress.get({
    url: walletAddress,
  })
  const accessToken = await tokenWithoutConsent(client, authServer, [
    { type: 'incoming-payment', actions: ['create', 'read'] },
  ])
  const { id } = await client.incomingPayment.create(
    { url: resourceServer, accessToken },
    { walletAddress, incomingAmount: { value, assetCode, assetScale } },
  )
  return { id, read: () => client.incomingPayment.get({ url: id, accessToken }) }
}

interface Limits {
  readonly debitAmount: Amount
  readonly interval?: string
}

interface Amount {
  readonly value: string
  readonly assetCode: string
  readonly assetScale: number
}

/** Requests a grant to pay from an account. */
export async function askToPay(
  client: AuthenticatedClient,
  walletAddress: string,
  limits?: Limits,
) {
  const { authServer } = await client.walletAddress.get({ url: walletAddress })
  const grant = await client.grant.request(
    { url: authServer },
    {
      access_token: {
        access: [
          {
            type: 'outgoing-payment',
            actions: ['create', 'read'],
            identifier: walletAddress,
            ...(limits !== undefined && { limits }),
          },
        ],
      },
      interact: {
        start: ['redirect'],
        finish: { method: 'redirect', uri: finishUri, nonce: randomUUID() },
      },
    },
  )
  if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
  return grant
}

/** Visits the page for consent as a browser that does not follow the redirect. */
export async function visit(url: string) {
  const { status, headers } = await fetch(url, { redirect: 'manual' })
  const location = headers.get('location')
  return { status, location: location === null ? undefined : new URL(location) }
}

/** Answers as the owner on the page that confirms a payment. */
export async function answer(url: string, decision: 'confirm' | 'decline') {
  const shown = await fetch(url)
  const text = await shown.text()
  const fieldOf = (name: string) => {
    const [, value = ''] = new RegExp(`name="${name}" value="([^"]*)"`).exec(text) ?? []
    return value.replaceAll('&#34;', '"')
  }
  const body = new URLSearchParams({ token: fieldOf('token'), shown: fieldOf('shown'), decision })
  const headers = { cookie: shown.headers.get('set-cookie')?.split(';')[0] ?? '' }
  const { status } = await fetch(url, { method: 'POST', headers, body })
  return { text, status }
}

/** A client that may pay from an account, as a rule of the sandbox has approved. */
export async function payerOf(client: AuthenticatedClient, walletAddress: string, limits?: Limits) {
  const { authServer, resourceServer: url } = await client.walletAddress.get({ url: walletAddress })
  const quoting = await tokenWithoutConsent(client, authServer, [
    { type: 'quote', actions: ['create', 'read'] },
  ])
  const grant = await askToPay(client, walletAddress, limits)
  const { location } = await visit(grant.interact.redirect)
  const { value: accessToken } = await continued(client, grant, location)
  const quote = (receiver: string, fixed: { readonly debitAmount?: Amount } = {}) =>
    client.quote.create({ url, accessToken: quoting }, {
      walletAddress,
      receiver,
      method: 'ilp',
      ...fixed,
    } as Parameters<AuthenticatedClient['quote']['create']>[1])
  const create = (quoteId: string) =>
    client.outgoingPayment.create({ url, accessToken }, { walletAddress, quoteId })
  return {
    quote,
    create,
    pay: async (receiver: string) => create((await quote(receiver)).id),
    read: (id: string) => client.outgoingPayment.get({ url: id, accessToken }),
    spent: () => client.outgoingPayment.getGrantSpentAmounts({ url, accessToken }),
  }
}
