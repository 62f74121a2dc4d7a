#!/usr/bin/env bash
# Two equal requests that the client @interledger/open-payments 7.4.0 signs within one second are equal byte for byte.
#
# Its signatures have `created` in whole seconds and no `nonce`, and Ed25519 is deterministic. A server that refuses each
# signature that it has seen before therefore also refuses a repeat that the application made on purpose, for example
# directly after a lost answer; in the next second the same call has another signature.
#
# Seen: in one second: equal; one second later: another one
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

const seen = []
const server = createServer((request, response) => {
  request.resume()
  response.setHeader('content-type', 'application/json')
  if (request.url === '/alice') {
    const address = { id: `${origin}/alice`, assetCode: 'USD', assetScale: 2, authServer: origin, resourceServer: origin }
    return response.end(JSON.stringify(address))
  }
  const { signature, 'signature-input': input } = request.headers
  seen.push({ signature, created: /;created=(\d+)/.exec(input)?.[1], nonce: /;nonce=/.test(input) })
  response.writeHead(400).end('{}')
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
const rotate = async () => {
  await client.token.rotate({ url: `${origin}/token/1`, accessToken: 'secret' }).catch(() => {})
  return seen.at(-1)
}

let first = await rotate()
let second = await rotate()
// A second may end between the two.
while (second.created !== first.created) [first, second] = [second, await rotate()]
let later = second
while (later.created === first.created) {
  await new Promise((passed) => setTimeout(passed, 50))
  later = await rotate()
}
console.log('in one second:', first.signature === second.signature ? 'equal' : 'different')
console.log('one second later:', first.signature === later.signature ? 'equal' : 'another one')
assert.equal(first.signature, second.signature)
assert.notEqual(first.signature, later.signature)
assert.ok(seen.every(({ nonce }) => !nonce))
server.close()
server.closeAllConnections()
JS
node check.mjs
