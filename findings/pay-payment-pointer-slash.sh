#!/usr/bin/env bash
# @interledger/pay 0.4.0-alpha.9 drops the slash at the end of a payment pointer's path.
#
# `$wallet.example/alice/` and `$wallet.example/alice` are two pointers of two URLs (RFC 3986 section 6.2.3 makes only an
# empty path equal to "/"). The parser returns one URL for both, so an account whose wallet address ends in a slash is
# looked up under another address.
#
# Seen: $wallet.example/alice/ -> https://wallet.example/alice
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @interledger/pay@0.4.0-alpha.9
cat >check.cjs <<'JS'
const assert = require('node:assert/strict')
const { AccountUrl } = require('@interledger/pay')

for (const pointer of ['$wallet.example/alice', '$wallet.example/alice/']) {
  const url = AccountUrl.fromPaymentPointer(pointer).toString()
  console.log(pointer, '->', url)
  assert.equal(url, 'https://wallet.example/alice')
}
JS
node check.cjs
