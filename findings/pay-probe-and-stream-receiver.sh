#!/usr/bin/env bash
# @interledger/pay 0.4.0-alpha.9 cannot quote a payment to @interledger/stream-receiver 0.3.3-alpha.4, the newest versions of
# both: the receiver answers the test packets of the sender with F05, and the sender goes on after F99 only.
#
# A sender learns the rate by packets that nobody can fulfill. The receiver of version 0.2.2 rejects them with F99
# (application error) and the amount that arrived; 0.3.3-alpha.4 rejects them with F05 (wrong condition), with the same
# authenticated amount. The sender takes F05 for an error of a connector, and ends the quote.
#
# Seen: stream-receiver 0.2.2: F99, quoted; stream-receiver 0.3.3-alpha.4: F05, ConnectorError
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @interledger/pay@0.4.0-alpha.9 ilp-packet@3.1.4-alpha.2 \
  older@npm:@interledger/stream-receiver@0.2.2 newer@npm:@interledger/stream-receiver@0.3.3-alpha.4
cat >check.cjs <<'JS'
const assert = require('node:assert/strict')
const { randomBytes } = require('node:crypto')
const { setupPayment, startQuote } = require('@interledger/pay')
const { deserializeIlpPrepare, serializeIlpReply } = require('ilp-packet')

async function quoteTo({ StreamServer }) {
  const asset = { code: 'USD', scale: 2 }
  const receiver = new StreamServer({ serverSecret: randomBytes(32), serverAddress: 'test.receiver' })
  const { ilpAddress, sharedSecret } = receiver.generateCredentials({ asset })
  const codes = new Set()
  const plugin = {
    isConnected: () => true,
    async connect() {},
    async disconnect() {},
    registerDataHandler() {},
    deregisterDataHandler() {},
    async sendData(bytes) {
      const reply = receiver.createReply(deserializeIlpPrepare(bytes))
      if ('code' in reply) codes.add(reply.code)
      return serializeIlpReply('accept' in reply ? reply.accept() : reply)
    },
  }
  try {
    const destination = await setupPayment({
      plugin,
      destinationAddress: ilpAddress,
      sharedSecret,
      destinationAsset: asset,
    })
    await startQuote({
      plugin,
      destination,
      sourceAsset: asset,
      slippage: 0,
      prices: { USD: 1 },
      amountToSend: 100n,
    })
    return [[...codes].join(), 'quoted']
  } catch (error) {
    return [[...codes].join(), error]
  }
}

async function main() {
  const older = await quoteTo(require('older'))
  const newer = await quoteTo(require('newer'))
  console.log('stream-receiver 0.2.2:', ...older)
  console.log('stream-receiver 0.3.3-alpha.4:', ...newer)
  assert.deepEqual(older, ['F99', 'quoted'])
  assert.deepEqual(newer, ['F05', 'ConnectorError'])
}
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
JS
node check.cjs
