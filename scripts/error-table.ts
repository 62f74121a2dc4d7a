import { type PublicError, type Refusal, refusals, type ServerOperation } from '../src/index.js'

type Where = ServerOperation | 'authorizationServer' | 'resourceServer' | 'walletAddressServer'

const names: Readonly<Record<Where, string>> = {
  authorizationServer: 'authorization server',
  resourceServer: 'resource server',
  walletAddressServer: 'wallet addresses',
  requestGrant: '`POST` grant endpoint',
  discover: '`OPTIONS` grant endpoint',
  continueGrant: '`POST /continue/{id}`',
  cancelGrant: '`DELETE /continue/{id}`',
  rotateToken: '`POST /token/{id}`',
  revokeToken: '`DELETE /token/{id}`',
  introspectToken: '`POST /introspect`',
  createIncomingPayment: '`POST /incoming-payments`',
  listIncomingPayments: '`GET /incoming-payments`',
  getIncomingPayment: '`GET /incoming-payments/{id}`',
  completeIncomingPayment: '`POST /incoming-payments/{id}/complete`',
  createQuote: '`POST /quotes`',
  getQuote: '`GET /quotes/{id}`',
  createOutgoingPayment: '`POST /outgoing-payments`',
  listOutgoingPayments: '`GET /outgoing-payments`',
  getOutgoingPayment: '`GET /outgoing-payments/{id}`',
  getOutgoingPaymentGrant: '`GET /outgoing-payment-grant`',
  getWalletAddress: '`GET` wallet address',
  getWalletAddressKeys: '`GET …/jwks.json`',
  preflight: '`OPTIONS` wallet address',
}

/** Returns the table of refusals as Markdown, in order of precedence. */
export function errorTable(): string {
  const rows = (Object.keys(refusals) as Refusal[]).flatMap((refusal) => {
    const places = Object.entries(refusals[refusal]) as [Where, PublicError][]
    return places.map(
      ([where, { status, code, description }]) =>
        `| \`${refusal}\` | ${names[where]} | ${status} | \`${code}\` | ${description} |`,
    )
  })
  return [
    '| refusal | where | status | code | description |',
    '|---|---|--:|---|---|',
    ...rows,
  ].join('\n')
}
