import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  consumeEvents,
  createAuthorizationServer,
  createResourceServer,
  type DeliveredEvent,
  ilpPaymentMethods,
  type ReceivedFunds,
} from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { postgresStore } from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { publishedKeys, testKey } from '../../test/support/keys.js'
import { alice, bob, grantEndpoint, origin, resourceServer } from '../../test/support/world.js'

/**
 * A wallet in its own process, which the tests may kill at any moment. It has the library's two servers, a
 * consumer that writes each event to a file before it acknowledges it, and the host's own calls under
 * `/host`. It ends when its standard input ends, so that it never outlives the tests.
 */
const [, , databaseUrl = '', schema = '', eventsFile = '', customers = ''] = process.argv

const pool = new Pool({ connectionString: databaseUrl, max: 10, application_name: schema })
// Without both listeners, losing a connection would end the process.
pool.on('error', () => {})
pool.on('connect', (client) => client.on('error', () => {}))

const usd = { assetCode: 'USD', assetScale: 2 }
const clientKeys = publishedKeys()
for (const name of customers.split(' ')) {
  clientKeys.publish(`https://${name}.example`, testKey(name))
}
const store = postgresStore(pool, { schema })
const auth = createAuthorizationServer({
  grantEndpoint,
  consentUrl: `${origin}/consent`,
  store,
  recordsEvents: true,
  clientKeys,
  // Longer than the tests take, except for those that wait for expiry.
  policy: { accessTokens: { lifetimeMs: 86_400_000 } },
})
const resources = createResourceServer({
  baseUrl: resourceServer,
  store,
  recordsEvents: true,
  grants: auth,
  walletAddresses: {
    find: async (url) => ([alice, bob].includes(url) ? { url, ...usd } : undefined),
  },
  paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.faults', secret: Buffer.alloc(32, 7) }),
})
const file = openSync(eventsFile, 'a')
const consumer = consumeEvents([auth.events, resources.events], writeDown, {
  pollMs: 20,
  leaseMs: 500,
  skewMaxMs: 1,
  backoffMs: 50,
})

function writeDown(event: DeliveredEvent): void {
  writeSync(file, `${JSON.stringify(event)}\n`)
  fsyncSync(file)
}

type HostCall = (input: never) => Promise<unknown>

const hostCalls: Readonly<Record<string, HostCall>> = {
  approve: (id: string) =>
    auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] }),
  receive: ({ paymentId, funds }: { paymentId: string; funds: ReceivedFunds }) =>
    resources.incomingPayments.receive(paymentId, funds),
  async introspect(tokens: readonly string[]) {
    const answers = await Promise.all(tokens.map((accessToken) => auth.introspect({ accessToken })))
    return tokens.filter((_, index) => answers[index]?.active)
  },
}

async function serveHost(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const call = hostCalls[request.url?.slice('/host/'.length) ?? '']
  try {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const result = await call?.(JSON.parse(Buffer.concat(chunks).toString()) as never)
    response.end(JSON.stringify(result))
  } catch {
    response.statusCode = 503
    response.end()
  }
}

const serveAuth = toExpress(auth.handle)
const serveResources = toExpress(resources.handle)
const server = createServer((request, response) => {
  if (request.url?.startsWith('/auth')) serveAuth(request, response)
  else if (request.url?.startsWith('/op')) serveResources(request, response)
  else void serveHost(request, response)
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})

process.stdin.resume()
process.stdin.on('end', async () => {
  await consumer.stop()
  closeSync(file)
  process.exit(0)
})
