#!/usr/bin/env bash
# serverless-http 4.0.0 passes on the last line of a repeated header field alone, for payloads of version 1.0.
#
# RFC 9421 permits a request with two signatures in two lines of `Signature` and `Signature-Input`, and RFC 9110 section
# 5.2 joins the lines of a field by commas. A payload of version 1.0 (REST API, load balancer) has all lines in
# `multiValueHeaders`; the application behind the adapter sees the second signature only, and no comma that would tell.
#
# Seen: signature-input: b=("@method"); signature: b=:Mg==:
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts serverless-http@4.0.0
cat >check.mjs <<'JS'
import assert from 'node:assert/strict'
import serverless from 'serverless-http'

const lines = { 'Signature-Input': ['a=("@method")', 'b=("@method")'], Signature: ['a=:MQ==:', 'b=:Mg==:'] }
let headers
const handler = serverless((request, response) => {
  headers = request.headers
  response.end()
})
await handler(
  {
    version: '1.0',
    httpMethod: 'GET',
    path: '/',
    headers: Object.fromEntries(Object.entries(lines).map(([name, [, last]]) => [name, last])),
    multiValueHeaders: lines,
    multiValueQueryStringParameters: null,
    requestContext: {},
  },
  {},
)
console.log(`signature-input: ${headers['signature-input']}; signature: ${headers.signature}`)
assert.equal(headers['signature-input'], 'b=("@method")')
assert.equal(headers.signature, 'b=:Mg==:')
JS
node check.mjs
