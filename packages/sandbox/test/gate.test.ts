import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAuthenticatedClient } from '@interledger/open-payments'
import { clientSettings, tokenWithoutConsent } from 'open-payments-test-support/official-client'
import { expect, test, vi } from 'vitest'
import { openGate } from '../src/gate.js'
import { startSandbox } from '../src/index.js'
import { newSandboxKey } from '../src/keys.js'
import { clientFor, invoiceOf } from './support/payer.js'

test('a gate closes when what has passed is done, and then lets the rest pass', async () => {
  const gate = openGate()
  const order: string[] = []
  const step = (name: string, ms: number) => async () => {
    order.push(`${name} begins`)
    await sleep(ms)
    order.push(`${name} ends`)
  }
  await Promise.all([
    gate.pass(step('one', 20)),
    gate.close(step('change', 10)),
    gate.close(step('another change', 0)),
    gate.pass(step('two', 0)),
  ])
  const each = (name: string) => [`${name} begins`, `${name} ends`]
  expect(order).toEqual(['one', 'change', 'another change', 'two'].flatMap(each))
})

test('a gate closes without work that takes too long, and opens after a change that failed', async () => {
  const gate = openGate(10)
  const endless = gate.pass(() => sleep(60_000, undefined, { ref: false }))
  await expect(gate.close(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  expect(await gate.pass(async () => 'passed')).toBe('passed')
  endless.catch(() => undefined)
})

test('The clock moves when the requests that are being served are done, also if they wait for a key', async () => {
  const printed = vi.spyOn(console, 'error').mockReturnValue()
  const sandbox = await startSandbox({ port: 0, approve: ['all'], outboundTimeoutMs: 60_000 })
  const client = await clientFor(sandbox)
  sandbox.fault({ fault: 'slow', operation: 'getWalletAddressKeys', delayMs: 300 })
  const invoice = invoiceOf(client, sandbox.account('dana').walletAddress, '100')
  await vi.waitFor(() => expect(sandbox.faults()).toEqual([]), { timeout: 60_000, interval: 5 })
  await sandbox.advance('PT10M')
  const [first] = sandbox.requests().filter(({ operation }) => operation === 'requestGrant')
  await invoice.catch(() => undefined) // its token may have expired
  await sandbox.stop()
  const { calls } = printed.mock
  printed.mockRestore()
  expect(first).toMatchObject({ status: 200 })
  expect(calls).toEqual([])
})

test('A client at localhost whose server asks the wallet for a name while the clock moves gets its grant', async () => {
  const sandbox = await startSandbox({ port: 0, outboundTimeoutMs: 60_000 })
  const key = newSandboxKey('shop-1')
  const { walletAddress } = sandbox.account('dana')
  const operations = () => sandbox.requests().map(({ operation }) => operation)
  let servedBefore: Promise<readonly unknown[]> | undefined
  const server = createServer(async (_request, response) => {
    servedBefore ??= sandbox.advance('PT10M').then(operations)
    await fetch(walletAddress)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ keys: [key.publicKeyJwk] }))
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const { port } = server.address() as AddressInfo
  const client = await createAuthenticatedClient({
    ...clientSettings,
    walletAddressUrl: `http://localhost:${port}/shop`,
    keyId: key.keyId,
    privateKey: Buffer.from(key.privateKeyPem),
  })
  const access = [{ type: 'incoming-payment', actions: ['create'] }] as const
  const token = await tokenWithoutConsent(client, sandbox.wallets[1].authServer, [
    ...access,
  ] as never)
  const served = await servedBefore
  server.closeAllConnections()
  server.close()
  await sandbox.stop()
  expect(token).toBeTruthy()
  expect(served).toContain('requestGrant')
})
