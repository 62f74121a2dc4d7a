import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as library from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { migrate, postgresStore } from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { bankId, bankKey } from '../../../test/support/introspection.js'
import { grantEndpoint, origin, pricing, resourceServer, walletAddresses } from '../fixtures.js'
import { keySetAt } from './key-hosts.js'

/**
 * The servers of a wallet in one process, with the background work of a host. Tells the parent its port, and its memory
 * and CPU time whenever it is asked. Node's limit on headers is raised, so that hostile headers reach the servers.
 */
const [connectionString = '', schema = ''] = process.argv.slice(2)
const pool = new Pool({ connectionString, max: 10 })
await migrate(pool, { schema })
// The store takes a connection for each statement.
let statements = 0
pool.on('acquire', () => {
  statements += 1
})
const store = postgresStore(pool, { schema })
let errors = 0
const hooks = {
  onError(error: unknown) {
    errors += 1
    if (errors < 10) console.error(error)
  },
}
const auth = library.createAuthorizationServer({
  ...hooks,
  store,
  grantEndpoint,
  consentUrl: `${origin}/consent`,
  clientKeys: library.remoteClientKeys({ fetch: keySetAt }),
  resourceServers: [{ id: bankId, keys: [bankKey] }],
})
const resources = library.createResourceServer({
  ...hooks,
  store,
  baseUrl: resourceServer,
  grants: auth,
  walletAddresses,
  pricing,
  paymentMethods: library.ilpPaymentMethods({
    addressPrefix: 'test.load',
    secret: new Uint8Array(32).fill(7),
  }),
})

/** Consents to every grant, as a page of the host would; the response is the interaction reference. */
async function approve(id: string): Promise<Awaited<ReturnType<library.Handler>>> {
  const approval = { resourceOwner: 'alice', walletAddresses: [`${origin}/alice`] }
  const result = await auth.interactions.approve(id, approval)
  const redirect = result.ok ? new URL(result.redirect ?? origin) : undefined
  const body = redirect?.searchParams.get('interact_ref') ?? ''
  return { status: redirect === undefined ? 400 : 200, headers: {}, body }
}

/** Sends a payment and receives it, as the rail of a host would. */
async function settle(outgoing: string, incoming: string) {
  const { incomingPayments, outgoingPayments } = resources
  const amount = { value: '100', assetCode: 'USD', assetScale: 2 }
  const done = [
    await outgoingPayments.begin(outgoing),
    await outgoingPayments.reportSent(outgoing, {
      sentAmount: amount,
      deliveredAmount: amount,
      final: true,
    }),
    await incomingPayments.receive(incoming, { transferId: outgoing, amount }),
  ]
  return { status: done.every(({ ok }) => ok) ? 200 : 400, headers: {}, body: '' }
}

const consumer = library.consumeEvents([auth.events, resources.events], async () => undefined)
const sweeping = setInterval(() => {
  void Promise.all([auth.sweep(), resources.sweep()]).catch(hooks.onError)
}, 10_000)

const handle: library.Handler = (request) => {
  if (request.url.startsWith('/op')) return resources.handle(request)
  if (request.url.startsWith('/approve/')) return approve(request.url.slice('/approve/'.length))
  const [, outgoing, incoming] = /^\/settle\/(.+)\/(.+)$/.exec(request.url) ?? []
  if (outgoing !== undefined && incoming !== undefined) return settle(outgoing, incoming)
  return auth.handle(request)
}
const server = createServer({ maxHeaderSize: 80 * 1024 }, toExpress(handle))
// An idle connection that the server closes could be reused at the same time, and fail a request.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})

const collectGarbage = (globalThis as { gc?: () => void }).gc

process.on('disconnect', () => process.exit())
process.on('message', async (message) => {
  if (message === 'memory') {
    collectGarbage?.()
    const { heapUsed, rss, external } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    process.send?.({ heapUsed, rss, external, cpuMs: (user + system) / 1_000, errors, statements })
    return
  }
  clearInterval(sweeping)
  server.closeAllConnections()
  server.close()
  await consumer.stop()
  await pool.end()
  process.exit()
})
