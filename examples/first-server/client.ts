// #region client
import { generateKeyPairSync } from 'node:crypto'
import { createHeaders } from '@interledger/http-signature-utils'

const grantEndpoint = process.env['GRANT_ENDPOINT'] ?? 'http://localhost:3000/auth'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const key = { kid: 'key-1', alg: 'EdDSA', use: 'sig' }
const jwk = { ...publicKey.export({ format: 'jwk' }), ...key }
const access = [{ type: 'incoming-payment', actions: ['create', 'read'] }]

const request = {
  method: 'POST',
  url: grantEndpoint,
  headers: {},
  body: JSON.stringify({ client: { jwk }, access_token: { access } }),
}
// The signature, Content-Type and Content-Digest.
const signed = await createHeaders({ request, privateKey, keyId: jwk.kid })
const response = await fetch(request.url, { ...request, headers: { ...signed } })
console.log(response.status, await response.json())
// #endregion client
