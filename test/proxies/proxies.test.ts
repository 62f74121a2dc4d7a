import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { successes } from '../support/clients/sequence.js'
import { verdictsOf } from '../support/clients/table.js'
import { doctor } from '../support/doctor.js'
import type { SeenRequest } from '../support/faulty-proxy.js'
import {
  headerOf,
  installedProxies,
  metadata,
  type ProxiedWallet,
  startProxiedWallet,
} from '../support/proxied-wallet.js'
import { changed, configurations, reverseProxies } from '../support/proxies.js'
import { exchange, requestBytes } from '../support/raw-http.js'

test('the names in TEST_PROXIES are those of proxies', () => {
  const names = process.env['TEST_PROXIES']?.split(',') ?? []
  expect(installedProxies.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
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
  if (!installedProxies.includes(proxy)) return test.skip('skipped: run .ci/proxies', () => {})

  let wallet: ProxiedWallet
  let own: number
  const arrived: SeenRequest[] = []

  beforeAll(async () => {
    wallet = await startProxiedWallet()
    own = wallet.own
    for (const link of wallet.links) {
      link.fault = (request, forward) => {
        arrived.push(request)
        return forward(request)
      }
    }
  })
  afterAll(() => wallet.stop())

  const examine = () =>
    doctor(['--allow-private', '--json', '--timeout', '600', `http://localhost:${own}/alice`])

  test('the wallet keeps a connection for longer than proxies do, by default for 60 s', async () => {
    const { headers } = await fetch(`http://localhost:${wallet.links[0].upstream}/alice`)
    expect(headers.get('keep-alive')).toBe('timeout=65')
  })

  test('a client lives from its first grant to its last, over both processes', async () => {
    const before = await wallet.payments()
    const results = await wallet.behind(proxy, wallet.live)
    expect(verdictsOf(results)).toEqual(
      Object.fromEntries(Object.entries(successes).map(([call, status]) => [call, `${status}`])),
    )
    expect((await wallet.payments()) - before).toBe(1)
  })

  test('the doctor finds nothing', async () => {
    const { code, out } = await wallet.behind(proxy, examine)
    expect({ code, ...JSON.parse(out) }).toMatchObject({ code: 0, findings: [] })
  })

  const planted = mistakes.filter(({ name }) => name === proxy.name)
  test.each(planted)('the doctor finds one mistake, $mistake', async ({ changes, found }) => {
    const [config = ''] = configurations(proxy.language)
    const { out } = await wallet.behind(proxy, examine, changed(config, changes))
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
      const send = async () => {
        for (const target of targets) {
          for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
            const body = method === 'POST' ? JSON.stringify(metadata, null, 3) : ''
            const length = ['Content-Length', `${Buffer.byteLength(body)}`] as const
            const lines = [['Connection', 'close'], length, ...headers] as const
            await exchange(own, requestBytes(method, prefix + target, lines, Buffer.from(body)))
            const seen = arrived.at(-1)
            const values = headers.map(([name]) => [name, seen && headerOf(seen, name)])
            expect({ ...seen, headers: values }).toEqual({ method, target, body, headers })
          }
        }
      }
      await wallet.behind(proxy, send, config)
    },
  )
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

/** What a signature covers besides the target and the body, and where a page is shown. */
const headers = [
  ['Host', 'localhost:3000'],
  ['Authorization', 'GNAP a-token'],
  ['Content-Type', 'application/json'],
  ['Content-Digest', 'sha-512=:AAAA:'],
  ['Signature-Input', 'sig1=("@method" "@target-uri");created=1;keyid="k"'],
  ['Signature', 'sig1=:AAAA:'],
] as const
