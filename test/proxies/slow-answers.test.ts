import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from 'open-payments-programs'
import { expect, test } from 'vitest'
import { listening, stopped } from '../support/hosts.js'
import { installedProxies } from '../support/proxied-wallet.js'
import { startReverseProxy } from '../support/proxies.js'
import { exchange, requestBytes } from '../support/raw-http.js'

/** Longer than the 30 s that `mayPay` may take. */
const waitingMs = 31_000

test.concurrent.each(installedProxies)(
  'a client behind $name reads the answer to a payment that was decided after decideMs',
  async (proxy) => {
    const server = createServer(async (_, response) => {
      await sleep(waitingMs)
      response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"a"}')
    })
    await listening(server, '127.0.0.1')
    const { port } = server.address() as AddressInfo
    const own = await freePort()
    const { stop } = await startReverseProxy(proxy, { own, upstreams: [port, port] })
    const lines = [
      ['Host', 'localhost'],
      ['Connection', 'close'],
      ['Content-Length', '2'],
    ] as const
    const request = requestBytes('POST', '/outgoing-payments', lines, Buffer.from('{}'))
    const { status, body } = await exchange(own, request)
    await stop()
    await stopped(server)
    expect([status, body.toString()]).toEqual([201, '{"id":"a"}'])
  },
)

test.skipIf(installedProxies.length > 0)('skipped: run .ci/proxies', () => {})
