import { randomBytes } from 'node:crypto'
import { databaseOn } from 'create-open-payments-server/databases/postgres'
import { createWallet } from 'create-open-payments-server/wallet/wallet'
import { freePort } from 'open-payments-programs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { startDemoWallet } from '../../examples/demo/wallet.js'
import { ran } from '../../packages/doctor/test/support/doctor.js'
import {
  type FaultyProxy,
  type SeenRequest,
  startFaultyProxy,
} from '../../packages/doctor/test/support/faulty-proxy.js'
import { typescript } from '../support/clients/all.js'
import { type CallResult, calls, runSequence, successes } from '../support/clients/sequence.js'
import { verdictsOf } from '../support/clients/table.js'
import { noFee } from '../support/created-wallet.js'
import { type FreshPostgres, freshPostgres } from '../support/databases.js'
import { changed, configurations, reverseProxies, startReverseProxy } from '../support/proxies.js'
import { exchange, requestBytes } from '../support/raw-http.js'

/** The names of the proxies that are installed, with commas. `.ci/proxies` sets it. */
const installed = process.env['TEST_PROXIES']?.split(',') ?? []

const metadata = { order: 'Fish & chips <large>, 1/2 "crisp"', 'café/zoë': 'naïve 🐟 日本 \\' }
const inAnHour = BigInt(Date.now() + 3_600_000) * 1_000_000n

test('the names in TEST_PROXIES are those of proxies', () => {
  expect(reverseProxies.map(({ name }) => name)).toEqual(expect.arrayContaining(installed))
})

/** Targets that a proxy could write in another way. */
const targets = [
  '/incoming-payments?wallet-address=https%3A%2F%2Fwallet.example%2F%7Ealice&first=10',
  '/incoming-payments?wallet-address=https%3a%2f%2fwallet.example%2fcaf%c3%a9',
  '/incoming-payments?wallet-address=https://wallet.example/~alice',
  '/outgoing-payments/an-id?',
  '/%7Ealice',
  '/caf%c3%a9/jwks.json',
  "/a'b!c(d)*",
  '/Alice%20B/',
]

describe.each(reverseProxies)('behind $name, as the document configures it,', (proxy) => {
  if (!installed.includes(proxy.name)) return test.skip('skipped: run .ci/proxies', () => {})

  let fresh: FreshPostgres
  let shop: Shop
  let own: number
  /** What is between the proxy and each of two processes of the wallet. */
  let links: readonly [FaultyProxy, FaultyProxy]
  let stopProcesses: () => Promise<unknown>
  const arrived: SeenRequest[] = []

  beforeAll(async () => {
    fresh = await freshPostgres({ migrated: false })
    shop = await openShop()
    own = await freePort()
    links = [await startFaultyProxy('127.0.0.1'), await startFaultyProxy('127.0.0.1')]
    const secrets = { sessionSecret: randomBytes(32), paymentDetailsSecret: randomBytes(32) }
    const processes: (() => Promise<void>)[] = []
    for (const link of links) {
      const port = await freePort()
      const { stop } = await startDemoWallet({
        adapter: 'express',
        outboundTimeoutMs: 60_000,
        baseUrl: `http://localhost:${own}`,
        port,
        database: databaseOn(fresh.connect({ options: `-c search_path=${fresh.schema}` })),
        create: (settings, database, ports) => ({
          wallet: createWallet({ ...settings, ...secrets }, database, {
            ...ports,
            exchanges: noFee,
          }),
          work: () => ({ stop: async () => undefined }),
        }),
      })
      link.upstream = port
      processes.push(stop)
    }
    await fresh.pool.query(`UPDATE ${fresh.schema}.accounts SET balance = 1000000000`)
    stopProcesses = () => Promise.all(processes.map((stop) => stop()))
  })
  afterAll(async () => {
    await stopProcesses()
    await Promise.all(links.map((link) => link.stop()))
    shop.stop()
    await fresh.drop()
  })

  /** Runs the proxy meanwhile, in the state in which it starts. */
  async function withProxy<Result>(work: () => Promise<Result>, config?: string): Promise<Result> {
    arrived.length = 0
    const upstreams = links.map(({ origin }) => Number(new URL(origin).port)) as [number, number]
    const { stop } = await startReverseProxy(proxy, { own, upstreams }, config)
    try {
      return await work()
    } finally {
      await stop()
    }
  }

  /** Decides for each signed request that arrives, by the number of the call, whether its answer is lost. */
  function losing(isLost: (call: number) => boolean) {
    const signatures: string[] = []
    for (const link of links) {
      link.fault = async (request, forward) => {
        arrived.push(request)
        const signature = headerOf(request, 'signature')
        if (signature !== undefined && !signatures.includes(signature)) signatures.push(signature)
        const reply = await forward(request)
        const call = signature === undefined ? -1 : signatures.indexOf(signature)
        return { ...reply, ...(isLost(call) && { isLost: true }) }
      }
    }
  }

  async function life() {
    const baseUrl = `http://localhost:${own}`
    const running = {
      alice: `${baseUrl}/alice`,
      bob: `${baseUrl}/bob`,
      auth: `${baseUrl}/auth`,
      op: baseUrl,
    }
    const before = await payments()
    const expected = { expiresAt: inAnHour, metadata }
    const client = { dialect: typescript, running, shop, ...expected, waits: true }
    const results = await runSequence(client)
    return { results, made: (await payments()) - before }
  }

  async function payments(): Promise<number> {
    const { rows } = await fresh.pool.query(
      `SELECT count(*) FROM ${fresh.schema}.open_payments_records WHERE kind = 'outgoing-payment'`,
    )
    return Number(rows[0].count)
  }

  test('the wallet keeps a connection for longer than proxies do, by default for 60 s', async () => {
    const { headers } = await fetch(`http://localhost:${links[0].upstream}/alice`)
    expect(headers.get('keep-alive')).toBe('timeout=65')
  })

  test('a client lives from its first grant to its last, over both processes', async () => {
    losing(() => false)
    const { results, made } = await withProxy(life)
    expect(verdictsOf(results)).toEqual(
      Object.fromEntries(Object.entries(successes).map(([call, status]) => [call, `${status}`])),
    )
    expect(made).toBe(1)
  })

  test('the doctor finds nothing', async () => {
    losing(() => false)
    const { code, out } = await withProxy(() =>
      ran(['--allow-private', '--json', '--timeout', '600', `http://localhost:${own}/alice`]),
    )
    expect({ code, ...JSON.parse(out) }).toMatchObject({ code: 0, findings: [] })
  })

  const planted = mistakes.filter(({ name }) => name === proxy.name)
  test.each(planted)('the doctor finds one mistake, $mistake', async ({ changes, found }) => {
    losing(() => false)
    const [config = ''] = configurations(proxy.language)
    const args = ['--allow-private', '--json', '--timeout', '600', `http://localhost:${own}/alice`]
    const { out } = await withProxy(() => ran(args), changed(config, changes))
    expect(JSON.parse(out).findings).toMatchObject([{ check: found }])
  })

  const [, ...others] = configurations(proxy.language)
  const layouts: readonly (readonly [prefix: string, config?: string])[] = [
    [''],
    ...others.map((config) => ['/payments', config] as const),
  ]

  test.each(layouts)(
    'a request arrives as it was sent, without the prefix "%s"',
    async (prefix, config) => {
      losing(() => false)
      await withProxy(async () => {
        for (const target of targets) {
          for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
            const body = method === 'POST' ? JSON.stringify(metadata, null, 3) : ''
            const length = ['Content-Length', `${Buffer.byteLength(body)}`] as const
            const lines = [
              ['Host', 'localhost'],
              ['Connection', 'close'],
              length,
              ...headers,
            ] as const
            await exchange(own, requestBytes(method, prefix + target, lines, Buffer.from(body)))
            const seen = arrived.at(-1)
            const values = headers.map(([name]) => [name, seen && headerOf(seen, name)])
            expect({ ...seen, headers: values }).toEqual({ method, target, body, headers })
          }
        }
      }, config)
    },
  )

  test('a client reads the answer to a payment that was decided after decideMs', async () => {
    const waiting = 31_000
    for (const link of links) {
      link.fault = async (request, forward) => {
        const reply = await forward(request)
        if (headerOf(request, 'signature')) await new Promise((go) => setTimeout(go, waiting))
        return reply
      }
    }
    const answer = await withProxy(() =>
      exchange(
        own,
        requestBytes('GET', '/outgoing-payments/an-id', [
          ['Host', 'localhost'],
          ['Connection', 'close'],
          ...headers,
        ]),
      ),
    )
    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.body.toString())).toHaveProperty('error.code')
  })

  describe('if an answer is lost, the client does not read that the request was refused', () => {
    test.each(calls.map((call, index) => [call, index] as const))('to %s', async (call, index) => {
      losing((each) => each === index)
      const { results, made } = await withProxy(life)
      expect([call, saysNothing(results[call])]).toEqual([call, true])
      const signatures = arrived.flatMap((request) => headerOf(request, 'signature') ?? [])
      expect(signatures).toEqual([...new Set(signatures)])
      expect(made).toBeLessThanOrEqual(1)
    })
  })
})

/** Mistakes in a configuration: documented text with another in its place, and the check that finds it. */
const mistakes: readonly {
  readonly name: string
  readonly mistake: string
  readonly changes: readonly (readonly [from: string, to: string])[]
  readonly found: string
}[] = [
  {
    name: 'nginx',
    mistake: 'a slash at the end of proxy_pass',
    changes: [['proxy_pass http://wallet;', 'proxy_pass http://wallet/;']],
    found: 'incoming-get-encoded',
  },
  {
    name: 'nginx',
    mistake: 'a limit of bodies of 10 kB',
    changes: [['proxy_read_timeout 40s;', 'proxy_read_timeout 40s; client_max_body_size 10k;']],
    found: 'body-size',
  },
  {
    name: 'nginx',
    mistake: 'error pages of its own',
    changes: [
      ['proxy_read_timeout 40s;', 'proxy_intercept_errors on; error_page 400 401 404 /error.html;'],
    ],
    found: 'grant-unsigned',
  },
  {
    name: 'HAProxy',
    mistake: 'a normalization of targets',
    changes: [
      ['defaults\n', 'global\n  expose-experimental-directives\n\ndefaults\n'],
      ['frontend https\n', 'frontend https\n  http-request normalize-uri percent-to-uppercase\n'],
    ],
    found: 'list-encoded',
  },
  {
    name: 'Apache',
    mistake: 'ProxyPass without nocanon',
    changes: [[' nocanon', '']],
    found: 'incoming-get-encoded',
  },
  {
    name: 'Caddy',
    mistake: 'no DELETE',
    changes: [['reverse_proxy', '@delete method DELETE\n  respond @delete 405\n  reverse_proxy']],
    found: 'token-revoke',
  },
  {
    name: 'Varnish',
    mistake: 'a cache that keeps everything',
    changes: [
      ['return (pass)', 'if (req.method == "GET") { return (hash); }\n  return (pass)'],
      [
        'sub vcl_init',
        'sub vcl_backend_response { set beresp.ttl = 60s; return (deliver); }\nsub vcl_init',
      ],
    ],
    found: 'incoming-complete',
  },
]

/** What a signature covers besides the target and the body. */
const headers = [
  ['Authorization', 'GNAP a-token'],
  ['Content-Type', 'application/json'],
  ['Content-Digest', 'sha-512=:AAAA:'],
  ['Signature-Input', 'sig1=("@method" "@target-uri");created=1;keyid="k"'],
  ['Signature', 'sig1=:AAAA:'],
] as const

function headerOf({ headers: lines }: SeenRequest, wanted: string): string | undefined {
  return lines.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1]
}

/** Whether a client cannot know from what it read whether the request was carried out. */
function saysNothing(result: CallResult): boolean {
  return result === 'no response' || (result !== 'not reached' && result.status >= 500)
}
