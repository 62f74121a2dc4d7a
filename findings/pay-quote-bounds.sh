#!/usr/bin/env bash
# The bounds of a quote by @interledger/pay 0.4.0-alpha.9 are one unit wider than the amount, also where the rate is exactly
# 1 and no unit can be lost by rounding.
#
# A payment that sends 100 is complete when 99 have arrived, and one that delivers 100 may take 101. A wallet that shows
# these bounds as its prices, or that debits `maxSourceAmount`, is off by a unit from what its own rate says. A payment of
# one unit is complete when nothing has arrived.
#
# Seen, with slippage 0 between two accounts of one currency:
#   send 1: at most 1, at least 0        deliver 1: at most 2, at least 1
#   send 100: at most 100, at least 99   deliver 100: at most 101, at least 100
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts \
  @interledger/pay@0.4.0-alpha.9 @interledger/stream-receiver@0.2.2 ilp-packet@3.1.4-alpha.2
cat >check.cjs <<'JS'
const assert = require('node:assert/strict')
const { randomBytes } = require('node:crypto')
const { setupPayment, startQuote } = require('@interledger/pay')
const { StreamServer } = require('@interledger/stream-receiver')
const { deserializeIlpPrepare, serializeIlpReply } = require('ilp-packet')

const asset = { code: 'USD', scale: 2 }
const receiver = new StreamServer({ serverSecret: randomBytes(32), serverAddress: 'test.receiver' })
const { ilpAddress, sharedSecret } = receiver.generateCredentials({ asset })
const plugin = {
  isConnected: () => true,
  async connect() {},
  async disconnect() {},
  registerDataHandler() {},
  deregisterDataHandler() {},
  async sendData(bytes) {
    const reply = receiver.createReply(deserializeIlpPrepare(bytes))
    return serializeIlpReply('accept' in reply ? reply.accept() : reply)
  },
}

async function quote(amounts) {
  const destination = await setupPayment({
    plugin,
    destinationAddress: ilpAddress,
    sharedSecret,
    destinationAsset: asset,
  })
  const { maxSourceAmount, minDeliveryAmount } = await startQuote({
    plugin,
    destination,
    sourceAsset: asset,
    slippage: 0,
    prices: { USD: 1 },
    ...amounts,
  })
  return [maxSourceAmount, minDeliveryAmount]
}

async function main() {
  for (const amount of [1n, 100n]) {
    const sent = await quote({ amountToSend: amount })
    const delivered = await quote({ amountToDeliver: amount })
    console.log(`send ${amount}: at most ${sent[0]}, at least ${sent[1]}`)
    console.log(`deliver ${amount}: at most ${delivered[0]}, at least ${delivered[1]}`)
    assert.deepEqual(sent, [amount, amount - 1n])
    assert.deepEqual(delivered, [amount + 1n, amount])
  }
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
