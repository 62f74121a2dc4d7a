#!/usr/bin/env bash
# The client @interledger/open-payments 7.4.0 repeats a GET and a DELETE after 429, 500 and 503, and the repeat is not
# signed: its headers `Signature` and `Signature-Input` are the text "undefined".
#
# The first request covers its method, its target and its token. The HTTP library below the client repeats it twice, and
# the client signs only once. A server that checks signatures refuses the repeat, so the caller reads that refusal in
# place of the first answer: a rate limit looks like a wrong key. A POST is sent once.
#
# Seen, for each of the three statuses:
#   DELETE  signed, undefined, undefined
#   GET     signed, undefined, undefined
#   POST    signed
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @interledger/open-payments@7.4.0
cat >check.mjs <<'JS'
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { createAuthenticatedClient } from '@interledger/open-payments'

let requests = []
let status = 0
const server = createServer((request, response) => {
  request.resume()
  if (request.url === '/alice') {
    const address = { id: `${origin}/alice`, assetCode: 'USD', assetScale: 2, authServer: origin, resourceServer: origin }
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify(address))
  }
  const { signature = 'absent' } = request.headers
  requests.push([request.method, /^sig1=:.+:$/.test(signature) ? 'signed' : signature])
  response.writeHead(status, { 'retry-after': '0' }).end('{}')
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const origin = `http://localhost:${server.address().port}`
const { privateKey } = generateKeyPairSync('ed25519')
const client = await createAuthenticatedClient({
  walletAddressUrl: `${origin}/alice`,
  keyId: 'key',
  privateKey,
  useHttp: true, // the server above has no certificate
  logLevel: 'silent',
})
const token = { url: `${origin}/token/1`, accessToken: 'secret' }

for (status of [429, 500, 503]) {
  requests = []
  for (const send of [
    () => client.token.revoke(token),
    () => client.incomingPayment.get({ url: `${origin}/incoming-payments/1`, accessToken: 'secret' }),
    () => client.token.rotate(token),
  ]) {
    await assert.rejects(send, { status })
  }
  console.log(status, requests.map((request) => request.join(' ')).join(', '))
  assert.deepEqual(requests, [
    ...['signed', 'undefined', 'undefined'].map((signature) => ['DELETE', signature]),
    ...['signed', 'undefined', 'undefined'].map((signature) => ['GET', signature]),
    ['POST', 'signed'],
  ])
}
server.close()
server.closeAllConnections()
JS
node check.mjs
