import { type Operation, type PublicError, type Refusal, refusals } from '../src/index.js'

type Where = Operation | 'authorizationServer' | 'resourceServer' | 'walletAddressServer'

const names: Readonly<Record<Where, string>> = {
  authorizationServer: 'authorization server',
  resourceServer: 'resource server',
  walletAddressServer: 'wallet addresses',
  requestGrant: '`POST` grant endpoint',
  continueGrant: '`POST /continue/{id}`',
  cancelGrant: '`DELETE /continue/{id}`',
  rotateToken: '`POST /token/{id}`',
  revokeToken: '`DELETE /token/{id}`',
  createIncomingPayment: '`POST /incoming-payments`',
  getIncomingPayment: '`GET /incoming-payments/{id}`',
  getWalletAddress: '`GET` wallet address',
  getWalletAddressKeys: '`GET …/jwks.json`',
}

/** The table of refusals as Markdown, in order of precedence. */
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
