import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer as createHttpServer, request as send } from 'node:http'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { perMinute } from 'create-open-payments-server/wallet/rate-limit'
import express from 'express'
import { createWallet, ilpPaymentMethods, memoryStore } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { openShop } from 'open-payments-test-support/examples/demo'
import { listening, stopped } from 'open-payments-test-support/hosts'
import { allDeployments, startDeployment } from 'open-payments-test-support/official-client'
import { seededRandom } from 'open-payments-test-support/random'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { examined, found, livingWorld, mounted, ran } from './support/doctor.js'
import { header, replies } from './support/mistakes.js'
import { otherWallet } from './support/other-wallet.js'

const folder = mkdtempSync(join(tmpdir(), 'healthy-'))
let shop: Awaited<ReturnType<typeof openShop>>

beforeAll(async () => {
  shop = await openShop()
})
afterAll(async () => {
  await shop.stop()
  rmSync(folder, { recursive: true })
})

const clean = { code: 0, found: [] }

async function outcome(...args: Parameters<typeof examined>) {
  const { code, report } = await examined(...args)
  return { code, found: found(report) }
}

describe('the doctor finds nothing wrong with', () => {
  test.each(allDeployments)(
    'a created wallet on %s, as a client, except that its login hides a page',
    async (one) => {
      const running = await startDeployment(one)
      const key = join(folder, 'key.pem')
      writeFileSync(key, shop.privateKey.export({ type: 'pkcs8', format: 'pem' }))
      const client = ['--client', shop.walletAddress, '--key', key]
      const { code, out } = await ran([
        '--allow-private',
        '--json',
        '--timeout',
        '600',
        ...client,
        running.alice,
      ])
      await running.stop()
      const report = JSON.parse(out)
      expect({ code, found: found(report), skipped: report.skipped }).toEqual({
        code: 0,
        found: ['note consent-page'],
        skipped: [],
      })
    },
  )

  test('servers at a path, behind a proxy that removes the prefix', async () => {
    const wallet = createWallet({
      baseUrl: 'https://wallet.example/open',
      strippedPrefix: '/open',
      consentUrl: 'https://wallet.example/consent',
      store: memoryStore(),
      walletAddresses: {
        find: async (url) =>
          url === 'https://wallet.example/open/alice'
            ? { url, assetCode: 'USD', assetScale: 2 }
            : undefined,
      },
      paymentMethods: ilpPaymentMethods({ addressPrefix: 'g.wallet', secret: new Uint8Array(32) }),
    })
    const app = express().use(toExpress(wallet.handle))
    const args = ['https://wallet.example/open/alice']
    const examination = await outcome(app, {
      args,
      fault: (request, forward) =>
        forward({ ...request, target: request.target.replace(/^\/open/, '') }),
    })
    expect(examination).toEqual(clean)
  })

  test('a proxy that writes another Host, compresses responses, and adds headers', async () => {
    const rewritten = header('host', () => '127.0.0.1:3000')
    const compressed = replies(({ body, headers }) => ({
      bytes: gzipSync(body),
      headers: { ...headers, 'content-encoding': 'gzip', via: '1.1 proxy', server: 'nginx' },
    }))
    const examination = await outcome(mounted(livingWorld()), {
      fault: (request, forward) => compressed(request, async (one) => rewritten(one, forward)),
    })
    expect(examination).toEqual(clean)
  })

  test('a proxy that streams over one connection that it keeps open, and never caches', async () => {
    let connections = 0
    const upstream = createHttpServer(mounted(livingWorld()))
    upstream.on('connection', () => connections++)
    const port = await listening(upstream)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const proxy = createHttpServer((incoming, outgoing) => {
      const { method, url: path, headers } = incoming
      const passed = send({ agent, host: 'localhost', port, method, path, headers }, (response) => {
        outgoing.writeHead(response.statusCode ?? 0, response.rawHeaders)
        response.pipe(outgoing)
      })
      incoming.pipe(passed)
    })
    expect(await outcome(proxy)).toEqual(clean)
    agent.destroy()
    await stopped(upstream)
    expect(connections).toBe(1)
  })

  test('a network with IPv6 alone, which translates the IPv4 addresses of the wallet', async () => {
    const addresses = ['64:ff9b::5db8:d70e']
    expect(await outcome(mounted(livingWorld()), { addresses })).toEqual(clean)
  })

  test('a limit of the rate of each client', async () => {
    const perSecond = (callsMax: number) => {
      const limit = perMinute(callsMax)
      return (call: Parameters<typeof limit>[0]) => {
        const answer = limit({ ...call, at: call.at * 60 })
        return answer && { retryAfterMs: 1_000 }
      }
    }
    const options = { rateLimit: perSecond(8) }
    let refused = 0
    const onRefusal = ({ refusal }: { readonly refusal: string }) => {
      if (refusal === 'rate_limited') refused++
    }
    const settings = { ...options, onRefusal }
    const world = livingWorld({ auth: settings, resources: settings })
    expect(await outcome(mounted(world))).toEqual(clean)
    expect(refused).toBeGreaterThan(0)
  })

  test('two processes that share a store', async () => {
    const store = memoryStore()
    const both = ['one', 'two'].map((seed) => {
      const random = seededRandom(seed)
      return mounted(livingWorld({ store, auth: { random }, resources: { random } }))
    })
    let count = 0
    const app = express().use((request, response, next) => {
      both[count++ % 2]?.(request, response, next)
    })
    expect(await outcome(app)).toEqual(clean)
  })

  const args = ['https://wallet.example/accounts/alice']

  test('another server, with URLs and error texts of its own', async () => {
    expect(await outcome(otherWallet(), { args })).toEqual(clean)
  })

  test('another server that refuses clients without a wallet address, except for a note', async () => {
    const examination = await outcome(otherWallet({ needsWalletAddress: true }), { args })
    expect(examination).toEqual({ code: 0, found: ['note signed-request'] })
  })
})

describe('the doctor finds', () => {
  test('a certificate without its chain', async () => {
    const openssl = (text: string) =>
      execFileSync('openssl', text.split(' '), { cwd: folder, stdio: 'ignore' })
    openssl('req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=Authority')
    openssl('req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=localhost')
    openssl(
      'x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 30',
    )
    const [key, cert] = ['leaf.key', 'leaf.pem'].map((name) => readFileSync(join(folder, name)))
    const server = createServer(
      { ...(key && { key }), ...(cert && { cert }) },
      mounted(livingWorld()),
    )
    const port = await listening(server)
    const { code, out } = await ran([
      '--allow-private',
      '--timeout',
      '600',
      `https://localhost:${port}/alice`,
    ])
    await stopped(server)
    expect(code).toBe(1)
    expect(out).toMatch(
      /^PROBLEM wallet-address\n {2}what {2}localhost:.*UNABLE_TO_VERIFY_LEAF_SIGNATURE/m,
    )
    expect(out).toContain('fullchain.pem')
    expect(out).toMatch(/^ {2}also {2}\d+ checks not possible\.$/m)
  })
})
