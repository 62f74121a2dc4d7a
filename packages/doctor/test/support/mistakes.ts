import type { Server } from 'node:http'
import { gzipSync } from 'node:zlib'
import cors from 'cors'
import type { Express } from 'express'
import express, { type RequestHandler } from 'express'
import helmet from 'helmet'
import {
  createWallet,
  createWalletAddressServer,
  ilpPaymentMethods,
  memoryStore,
  remoteGrants,
  type Store,
  toFetch,
  type WalletAddresses,
} from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import type { ProxyFault, Reply, SeenRequest } from 'open-payments-test-support/faulty-proxy'
import { bankId, bankKey, privateJwkOf } from 'open-payments-test-support/introspection'
import { testKey } from 'open-payments-test-support/keys'
import {
  grantEndpoint,
  origin,
  resourceServer,
  type WorldOptions,
} from 'open-payments-test-support/world'
import { expect } from 'vitest'
import { type Examination, examined, headlines, livingWorld, mounted } from './doctor.js'

/** What an operator does wrong, and the one finding that the doctor must report for it. */
export interface Mistake {
  readonly name: string
  readonly plant: Plant
  /** The severity, the check and what was seen, as in `PROBLEM clock: the clock …`. Ids are written as `{id}`. */
  readonly line: string
  /** Part of the lines to change. */
  readonly fix?: string
}

export interface Plant extends Examination {
  /** The application behind the proxy. Default: the servers as the README mounts them. */
  readonly app?: () => Express | Server
}

/** Plants a mistake, and expects its finding and no other. */
export async function findsOnly({ plant: { app, ...examination }, line, fix = '' }: Mistake) {
  const { code, report } = await examined(app?.() ?? mounted(livingWorld()), examination)
  expect(headlines(report)).toEqual([line])
  expect(code).toBe(line.startsWith('PROBLEM') ? 1 : 0)
  for (const finding of report.findings) {
    expect(finding.why).not.toBe('')
    expect(finding.fix.join('\n')).toContain(fix)
  }
}

/** A proxy that changes requests. */
export function requests(change: (request: SeenRequest) => Partial<SeenRequest>): ProxyFault {
  return (request, forward) => forward({ ...request, ...change(request) })
}

/** A proxy that changes responses. */
export function replies(
  change: (reply: Reply, request: SeenRequest) => Partial<Reply>,
  applies: (request: SeenRequest) => boolean = () => true,
): ProxyFault {
  return async (request, forward) => {
    const reply = await forward(request)
    return applies(request) ? { ...reply, ...change(reply, request) } : reply
  }
}

/** A proxy that responds itself, instead of forwarding requests. */
export function responds(
  reply: Reply,
  applies: (request: SeenRequest) => boolean = () => true,
): ProxyFault {
  return async (request, forward) => (applies(request) ? reply : forward(request))
}

export function page(status: number, title: string, headers: Reply['headers'] = {}): Reply {
  const body = `<!doctype html><html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>`
  return { status, headers: { 'content-type': 'text/html; charset=utf-8', ...headers }, body }
}

function redirect(status: number, location: string): Reply {
  return page(status, 'Moved', { location })
}

/** A proxy that changes the wallet address document, or another one that begins with the same path. */
function documents(
  change: (body: Record<string, unknown>) => object,
  target = '/alice',
): ProxyFault {
  return replies(
    ({ body }) => ({ body: JSON.stringify(change(JSON.parse(body))) }),
    (request) => request.method === 'GET' && request.target === target,
  )
}

/** A proxy that removes header lines of requests. */
export function without(...names: readonly string[]): ProxyFault {
  return requests(({ headers }) => ({
    headers: headers.filter(([name]) => !names.includes(name.toLowerCase())),
  }))
}

/** A proxy that changes a header of requests. */
export function header(name: string, change: (value: string) => string): ProxyFault {
  return requests(({ headers }) => ({
    headers: headers.map(([each, value]) => [
      each,
      each.toLowerCase() === name ? change(value) : value,
    ]),
  }))
}

function reserialized(change: (body: unknown) => string): ProxyFault {
  return requests(({ body }) => (body === '' ? {} : { body: change(JSON.parse(body)) }))
}

/** Formats JSON like `json.dumps` of Python. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([name, one]) => `${JSON.stringify(name)}: ${spaced(one)}`,
  )
  return `{${members.join(', ')}}`
}

function caching(): ProxyFault {
  const kept = new Map<string, Reply>()
  return async (request, forward) => {
    const reply = (request.method === 'GET' && kept.get(request.target)) || (await forward(request))
    if (request.method === 'GET') kept.set(request.target, reply)
    return reply
  }
}

/** A proxy that forwards this number of requests and refuses all further ones. */
function limited(callsMax: number): ProxyFault {
  let calls = 0
  const refuse = responds(page(429, 'Too many requests'))
  return (request, forward) => (calls++ < callsMax ? forward(request) : refuse(request, forward))
}

const isAt = (path: string) => (request: SeenRequest) =>
  request.target === path || request.target.startsWith(`${path}/`)
const isGrant = (request: SeenRequest) => request.method === 'POST' && request.target === '/auth'
const isKeys = (request: SeenRequest) => request.target === '/alice/jwks.json'
const isUnknownAddress = (request: SeenRequest) => request.target.startsWith('/alice-')
const isApi = (request: SeenRequest) => isAt('/auth')(request) || isAt('/op')(request)

/** The servers behind middleware. */
function behind(...middleware: readonly RequestHandler[]): () => Express {
  return () => {
    const app = express()
    for (const each of middleware) app.use(each)
    return mounted(livingWorld(), app)
  }
}

function world(options: WorldOptions): () => Express {
  return () => mounted(livingWorld(options))
}

const asset = (assetCode: string, assetScale: number): (() => Express) =>
  world({
    resources: {
      walletAddresses: { find: async (url) => ({ url, assetCode, assetScale }) },
    },
  })

/** A wallet with a consent page. */
function consent(answer: RequestHandler, consentUrl = 'https://wallet.example/consent'): Plant {
  return {
    asShop: true,
    app() {
      const app = express()
      app.get('/consent/:id', answer)
      return mounted(livingWorld({ auth: { consentUrl } }), app)
    },
  }
}

const form: RequestHandler = (_request, response) =>
  void response.send('<form method="post"><button>Approve</button></form>')

/** The wallet address server finds its accounts here, and the others where they should. */
function accounts(find: WalletAddresses['find']): () => Express {
  const wallets = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServerUrl: resourceServer,
    walletAddresses: { find },
  })
  return () => mounted({ ...livingWorld(), wallets })
}

function unavailableStore(): Store {
  const fail = async () => {
    throw new Error('the database refuses connections')
  }
  return new Proxy(memoryStore(), { get: () => fail })
}

/** Writes everything, and shows no grant. */
function hidingGrants(): Store {
  const store = memoryStore()
  return {
    ...store,
    load: async (keys) =>
      (await store.load(keys)).map((record, index) =>
        keys[index]?.kind === 'grant' ? undefined : record,
      ),
  }
}

/** The resource server introspects tokens with a key that the authorization server does not know. */
function withUnknownKey(): Express {
  const accessTypes = ['incoming-payment'] as const
  const split = livingWorld({
    auth: { resourceServers: [{ id: bankId, keys: [bankKey], accessTypes }] },
    resources: {
      grants: remoteGrants({
        grantEndpoint,
        resourceServerId: bankId,
        key: { kid: bankKey.kid, privateKey: privateJwkOf(testKey('alice')) },
        fetch: async (input, init) => toFetch(split.auth.handle)(new Request(input, init)),
      }),
    },
  })
  return mounted(split)
}

/** Each request goes to the next of two processes, each with a store in its own memory. */
function twoStores(): Express {
  const both = [mounted(livingWorld()), mounted(livingWorld())] as const
  let count = 0
  return express().use((request, response, next) => {
    const isSigned = request.headers['signature'] !== undefined
    both[isSigned ? count++ % 2 : 0]?.(request, response, next)
  })
}

/** A wallet whose option `baseUrl` is not the origin of the published wallet address. */
function basedAt(baseUrl: string): () => Express {
  const wallet = createWallet({
    baseUrl,
    consentUrl: `${baseUrl}/consent`,
    store: memoryStore(),
    walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
    paymentMethods: ilpPaymentMethods({ addressPrefix: 'g.wallet', secret: new Uint8Array(32) }),
  })
  return () => express().use(toExpress(wallet.handle))
}

const ahead = 600_000
const listUrl =
  'https://wallet.example/op/incoming-payments?wallet-address=https%3A%2F%2Fwallet.example%2Falice&first=50'
const encodedListUrl = `https://wallet.example/op/incoming-payments?wallet-address=${[...Buffer.from('https://wallet.example/alice')].map((byte) => `%${byte.toString(16)}`).join('')}&first=1`

export const mistakes: readonly Mistake[] = [
  // The wallet address.
  {
    name: 'The wallet address redirects to www',
    fix: 'Redirect browsers only',
    plant: { fault: responds(redirect(301, 'https://www.wallet.example/alice'), isAt('/alice')) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice redirects to the host www.wallet.example (301)',
  },
  {
    name: 'The published wallet address has http, which redirects to https',
    plant: {
      args: ['http://wallet.example/alice'],
      fault: responds(redirect(301, 'https://wallet.example/alice'), isAt('/alice')),
    },
    line: 'PROBLEM wallet-address: GET http://wallet.example/alice redirects to https (301)',
  },
  {
    name: 'The proxy redirects to a path with a slash at the end',
    plant: {
      fault: responds(redirect(308, '/alice/'), (request) => request.target === '/alice'),
    },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice redirects to the same path with a slash at the end (308)',
  },
  {
    name: 'The proxy redirects to the path in lower case',
    plant: {
      args: ['https://wallet.example/Alice'],
      fault: responds(redirect(301, '/alice'), (request) => request.target === '/Alice'),
    },
    line: 'PROBLEM wallet-address: GET https://wallet.example/Alice redirects to the same path in lower case (301)',
  },
  {
    name: 'The wallet address is behind a login',
    plant: { fault: responds(redirect(302, '/login?next=%2Falice'), isAt('/alice')) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice redirects to a login page (302)',
  },
  {
    name: 'Everything is behind basic authentication',
    fix: 'auth_basic off',
    plant: {
      fault: responds(
        page(401, 'Authorization Required', { 'www-authenticate': 'Basic realm="staging"' }),
      ),
    },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice asks for a password (401, Basic)',
  },
  {
    name: 'A single-page application answers at the wallet address',
    plant: { fault: responds(page(200, 'My wallet'), isAt('/alice')) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with a web page (200, "My wallet")',
  },
  {
    name: 'The proxy answers an empty page at the wallet address, as Caddy does below a prefix',
    plant: { fault: responds({ status: 200, headers: {}, body: '' }, isAt('/alice')) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with status 200 without a JSON object',
  },
  {
    name: 'The wallet address server is not mounted',
    plant: { app: () => express().set('env', 'test').get('/', form) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with status 404: nothing is served at this path',
  },
  {
    name: 'The account does not exist',
    plant: { args: ['https://wallet.example/nobody'] },
    line: 'PROBLEM wallet-address: GET https://wallet.example/nobody responded with status 404: the wallet knows no account with this URL',
  },
  {
    name: 'The proxy adds a prefix to the path',
    plant: { fault: requests(({ target }) => ({ target: `/v1${target}` })) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with status 404: the wallet knows no account with this URL',
  },
  {
    name: 'The document has another content type',
    plant: {
      fault: replies(
        ({ headers }) => ({ headers: { ...headers, 'content-type': 'text/plain' } }),
        isAt('/alice'),
      ),
    },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with status 200 and Content-Type text/plain; expected application/json',
  },
  {
    name: 'Responses are compressed without Content-Encoding',
    plant: { fault: replies(({ body }) => ({ bytes: gzipSync(body) })) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with gzip data without Content-Encoding',
  },
  {
    name: 'Responses are cut off',
    plant: { fault: replies(() => ({ isCutOff: true }), isApi) },
    line: 'PROBLEM signed-request: the response to POST https://wallet.example/auth is cut off',
  },
  {
    name: 'Responses end in the middle of their JSON',
    fix: 'Content-Length',
    plant: { fault: replies(({ body }) => ({ body: body.slice(0, 100) }), isAt('/alice')) },
    line: 'PROBLEM wallet-address: the response to GET https://wallet.example/alice is cut: its JSON ends after 100 bytes',
  },
  {
    name: 'The proxy writes responses in Latin-1',
    fix: 'charset off',
    plant: {
      fault: replies(({ body }) => {
        const named = { ...JSON.parse(body), publicName: 'Zoë' }
        return { bytes: Buffer.from(JSON.stringify(named), 'latin1') }
      }, isAt('/alice')),
    },
    line: 'PROBLEM wallet-address: the response to GET https://wallet.example/alice is not UTF-8, as JSON must be: something writes it in another character set, such as Latin-1',
  },
  {
    name: 'The wallet address sends megabytes',
    plant: { fault: replies(() => ({ body: ' '.repeat(1024 * 1024 + 1) }), isAt('/alice')) },
    line: 'PROBLEM wallet-address: the response to GET https://wallet.example/alice has more than 1 MiB',
  },
  {
    name: 'The application is not running behind the proxy',
    plant: { fault: responds(page(502, '502 Bad Gateway')) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with a page of the proxy (502, "502 Bad Gateway")',
  },
  {
    name: 'The site is in maintenance',
    plant: { fault: responds(page(503, 'Be right back')) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with a page of the proxy (503, "Be right back")',
  },
  {
    name: 'The database of the accounts is down',
    plant: {
      app: accounts(async () => {
        throw new Error('the database refuses connections')
      }),
    },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with status 503: the wallet says "Temporarily unavailable"',
  },
  {
    name: 'A firewall admits browsers only',
    plant: { fault: responds(page(403, 'Attention Required!', { server: 'firewall' })) },
    line: 'PROBLEM wallet-address: a firewall or proxy refused GET https://wallet.example/alice (403, "Attention Required!")',
  },
  {
    name: 'A firewall asks visitors with status 200 whether they are people',
    fix: 'clients are programs',
    plant: { fault: responds(page(200, 'Just a moment...')) },
    line: 'PROBLEM wallet-address: a firewall or proxy refused GET https://wallet.example/alice (200, "Just a moment...")',
  },
  {
    name: 'A firewall asks clients of the servers with status 503 whether they are people',
    fix: 'clients are programs',
    plant: { fault: responds(page(503, 'Checking your browser'), isApi) },
    line: 'PROBLEM signed-request: a firewall or proxy refused POST https://wallet.example/auth (503, "Checking your browser")',
  },
  {
    name: 'A firewall limits the rate of all clients together',
    plant: { fault: responds(page(429, 'Too many requests', { 'retry-after': '3600' })) },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice is limited: status 429 and Retry-After 3600',
  },
  {
    name: 'A firewall limits the rate after the first request',
    plant: { fault: limited(1) },
    line: 'PROBLEM wallet-document: GET https://wallet.example/alice is limited: status 429',
  },
  {
    name: 'The proxy limits the rate of the servers with status 503',
    fix: 'limit_req_status 429',
    plant: { fault: responds(page(503, '503 Service Temporarily Unavailable'), isApi) },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth responded with a page of the proxy (503, "503 Service Temporarily Unavailable")',
  },
  {
    name: 'The proxy fails with a page of its own',
    plant: { fault: responds(page(500, '500 Internal Server Error'), isApi) },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth responded with a page of the proxy (500, "500 Internal Server Error")',
  },
  {
    name: 'Middleware fails in front of the wallet',
    fix: 'log of the application',
    plant: {
      app: behind((_request, _response, next) => next(new Error('no session store'))),
    },
    line: 'PROBLEM wallet-address: GET https://wallet.example/alice responded with status 500: the application failed before it verified the request',
  },
  {
    name: 'baseUrl is still the one of development',
    fix: "baseUrl: 'https://wallet.example'",
    plant: { app: basedAt('http://localhost:3000') },
    line: 'PROBLEM wallet-address: the wallet takes http://localhost:3000 for its origin, but the wallet address has https://wallet.example',
  },
  {
    name: 'baseUrl has www, and the wallet address does not',
    plant: { app: basedAt('https://www.wallet.example') },
    line: 'PROBLEM wallet-address: the wallet takes https://www.wallet.example for its origin, but the wallet address has https://wallet.example',
  },
  {
    name: 'The id of the account has the host behind the proxy',
    plant: { fault: documents((body) => ({ ...body, id: 'http://10.0.0.7:3000/alice' })) },
    line: 'PROBLEM wallet-id: the id is "http://10.0.0.7:3000/alice"; expected "https://wallet.example/alice"',
  },
  {
    name: 'The scale of the asset is text',
    plant: { fault: documents((body) => ({ ...body, assetScale: '2' })) },
    line: 'PROBLEM wallet-document: assetScale must be an integer from 0 to 255 but is "2"',
  },
  {
    name: 'The asset of the account is missing',
    plant: { fault: documents(({ assetCode: _, ...body }) => body) },
    line: 'PROBLEM wallet-document: GET https://wallet.example/alice responded with status 200; expected text in assetCode',
  },
  {
    name: 'The resource server knows another scale',
    plant: { app: asset('USD', 6) },
    line: 'PROBLEM asset: the wallet address says USD with scale 2, and the resource server says USD with scale 6',
  },
  {
    name: 'The resource server knows another asset',
    plant: { app: asset('EUR', 2) },
    line: 'PROBLEM asset: the wallet address says USD with scale 2, and the resource server says EUR with scale 2',
  },
  {
    name: 'authServer has http',
    plant: { fault: documents((body) => ({ ...body, authServer: 'http://wallet.example/auth' })) },
    line: 'PROBLEM wallet-urls: authServer must be an absolute https URL but is "http://wallet.example/auth"',
  },
  {
    name: 'resourceServer is a path',
    plant: { fault: documents((body) => ({ ...body, resourceServer: '/op' })) },
    line: 'PROBLEM wallet-urls: resourceServer must be an absolute https URL but is "/op"',
  },
  {
    name: 'authServer names a host that does not exist',
    plant: {
      fault: documents((body) => ({ ...body, authServer: 'https://auth.wallet.invalid' })),
    },
    line: 'PROBLEM dns: auth.wallet.invalid, the host of authServer, has no address in DNS',
  },
  {
    name: 'authServer names another path',
    plant: { fault: documents((body) => ({ ...body, authServer: 'https://wallet.example/gnap' })) },
    line: 'PROBLEM signed-request: authServer is https://wallet.example/gnap, but the resource server names https://wallet.example/auth',
  },
  {
    name: 'authServer has a slash at the end',
    fix: "grantEndpoint: 'https://wallet.example/auth'",
    plant: {
      fault: documents((body) => ({ ...body, authServer: 'https://wallet.example/auth/' })),
    },
    line: 'PROBLEM discovery: authServer is https://wallet.example/auth/, but the authorization server names https://wallet.example/auth',
  },
  {
    name: 'authServer and resourceServer are swapped',
    plant: {
      fault: documents((body) => ({
        ...body,
        authServer: body['resourceServer'],
        resourceServer: body['authServer'],
      })),
    },
    line: 'PROBLEM signed-request: authServer and resourceServer are swapped',
  },
  {
    name: 'resourceServer names another path',
    plant: {
      fault: documents((body) => ({ ...body, resourceServer: 'https://wallet.example/payments' })),
    },
    line: 'PROBLEM resource-server: POST https://wallet.example/payments/incoming-payments does not reach the resource server (405)',
  },
  {
    name: 'The key set contains private keys',
    plant: {
      fault: documents(
        ({ keys }) => ({ keys: (keys as object[]).map((key) => ({ ...key, d: 'A'.repeat(43) })) }),
        '/alice/jwks.json',
      ),
    },
    line: 'PROBLEM wallet-keys: https://wallet.example/alice/jwks.json publishes a private key',
  },
  {
    name: 'The key set contains RSA keys',
    plant: {
      fault: documents(
        () => ({
          keys: [{ kid: 'a', kty: 'RSA', alg: 'RS256', use: 'sig', n: 'AQAB', e: 'AQAB' }],
        }),
        '/alice/jwks.json',
      ),
    },
    line: 'PROBLEM wallet-keys: alg of a key must be EdDSA',
  },
  {
    name: 'The key set is behind a login',
    plant: { fault: responds(redirect(302, '/login'), isKeys) },
    line: 'PROBLEM wallet-keys: GET https://wallet.example/alice/jwks.json redirects to a login page (302)',
  },
  {
    name: 'A single-page application answers at the key set',
    plant: { fault: responds(page(200, 'My wallet'), isKeys) },
    line: 'PROBLEM wallet-keys: GET https://wallet.example/alice/jwks.json responded with a web page (200, "My wallet")',
  },
  {
    name: 'A single-page application answers at unknown paths',
    plant: { fault: responds(page(200, 'My wallet'), isUnknownAddress) },
    line: 'PROBLEM wallet-unknown: GET https://wallet.example/alice-{id}, which is no account, responded with a web page (200, "My wallet")',
  },
  {
    name: 'Unknown paths redirect to the home page',
    plant: { fault: responds(redirect(302, '/'), isUnknownAddress) },
    line: 'PROBLEM wallet-unknown: GET https://wallet.example/alice-{id}, which is no account, redirects to https://wallet.example/ (302)',
  },
  {
    name: 'Every path is an account',
    plant: {
      app: accounts(async (url) => ({ url, assetCode: 'USD', assetScale: 2 })),
    },
    line: 'PROBLEM wallet-unknown: GET https://wallet.example/alice-{id}, which is no account, responded with status 200',
  },
  {
    name: 'The proxy removes the header for pages of other origins',
    fix: 'Access-Control-Allow-Origin',
    plant: {
      fault: replies(({ headers: { 'access-control-allow-origin': _, ...headers } }) => ({
        headers,
      })),
    },
    line: 'ADVICE wallet-cors: Access-Control-Allow-Origin is null; expected "*"',
  },
  // The machines.
  {
    name: 'The certificate expires soon',
    fix: 'certbot renew',
    plant: { certificateDays: 3 },
    line: 'ADVICE tls-expiry: the certificate of https://wallet.example is valid for 3 more days',
  },
  {
    name: 'The host has IPv6 addresses only',
    plant: { addresses: ['2606:2800:220:1::7'] },
    line: 'ADVICE dns: wallet.example, the host of the wallet address, has IPv6 addresses only',
  },
  {
    name: 'The clock of the server is ten minutes ahead',
    fix: 'timedatectl',
    plant: {
      app: world({ clock: { now: () => Date.now() + ahead, advance() {}, set() {} } }),
      fault: replies(({ headers }) => ({
        headers: { ...headers, date: new Date(Date.now() + ahead).toUTCString() },
      })),
    },
    line: 'PROBLEM clock: the clock of the authorization server is about 10 minutes ahead of the clock of this machine',
  },
  ...['ahead of', 'behind'].map((direction) => ({
    name: `The proxy writes a Date that is ${direction} the time`,
    fix: 'no cache store the responses',
    plant: {
      fault: replies(({ headers }) => {
        const date = Date.now() + (direction === 'behind' ? -ahead : ahead)
        return { headers: { ...headers, date: new Date(date).toUTCString() } }
      }),
    },
    line: `ADVICE clock: the Date header of https://wallet.example/auth is about 10 minutes ${direction} this machine's time, by which the server verifies signatures`,
  })),
  {
    name: 'The authorization server does not respond',
    plant: {
      args: ['--timeout', '3', 'https://wallet.example/alice'],
      fault: (request, forward) => (isGrant(request) ? new Promise(() => {}) : forward(request)),
    },
    line: 'PROBLEM signed-request: wallet.example did not respond to POST https://wallet.example/auth within 3 s',
  },
  // The paths of the servers.
  {
    name: 'The proxy removes the first segment of paths',
    fix: "strippedPrefix: '/op'",
    plant: {
      fault: requests(({ target }) => ({ target: target.replace(/^\/(auth|op)\b/, '') || '/' })),
    },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth does not reach the authorization server (405)',
  },
  {
    name: 'The proxy removes the prefix of the resource server',
    fix: "strippedPrefix: '/op'",
    plant: {
      fault: requests(({ target }) => ({ target: target.replace(/^\/op\b/, '') || '/' })),
    },
    line: 'PROBLEM resource-server: POST https://wallet.example/op/incoming-payments does not reach the resource server (405)',
  },
  {
    name: 'The proxy adds a prefix to the paths of the servers',
    plant: {
      fault: requests((request) => (isApi(request) ? { target: `/api${request.target}` } : {})),
    },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth does not reach the authorization server (405)',
  },
  {
    name: 'The proxy redirects the grant endpoint to a path with a slash at the end',
    plant: { fault: responds(redirect(308, '/auth/'), (request) => request.target === '/auth') },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth redirects to the same path with a slash at the end (308)',
  },
  {
    name: 'A single-page application answers at the grant endpoint',
    plant: { fault: responds(page(200, 'My wallet'), isAt('/auth')) },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth responded with a web page (200, "My wallet")',
  },
  {
    name: 'The proxy writes paths in lower case',
    plant: { fault: requests(({ target }) => ({ target: target.toLowerCase() })) },
    line: 'PROBLEM incoming-get: the proxy writes paths in lower case, as that of GET https://wallet.example/op/incoming-payments/{id}',
  },
  {
    name: 'The resource server is behind an application that failed',
    plant: { fault: responds(page(504, '504 Gateway Time-out'), isAt('/op')) },
    line: 'PROBLEM resource-server: POST https://wallet.example/op/incoming-payments responded with a page of the proxy (504, "504 Gateway Time-out")',
  },
  {
    name: 'The store of the authorization server is down',
    fix: 'onError',
    plant: {
      app: world({ store: unavailableStore() }),
    },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth responded with status 503: the wallet says "Temporarily unavailable"',
  },
  {
    name: 'The authorization server cannot fetch the keys of clients',
    plant: {
      asShop: true,
      app() {
        const offline = livingWorld()
        offline.clientKeys.unavailable = true
        return mounted(offline)
      },
    },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth responded with status 503: the wallet says "Client keys cannot be fetched at the moment"',
  },
  // What proxies and middleware do to requests.
  {
    name: 'express.json() runs before the servers',
    fix: 'rawBody: buffer',
    plant: { app: behind(express.json()) },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth responded with status 500: the application failed before it verified the request',
  },
  {
    name: 'The proxy parses bodies and serializes them again',
    fix: 'before app.use(express.json())',
    plant: { fault: reserialized(JSON.stringify) },
    line: 'PROBLEM body-bytes: POST https://wallet.example/auth refused JSON with white space and escapes, and accepted the same JSON without them',
  },
  {
    name: 'The proxy serializes bodies with spaces',
    plant: { fault: reserialized(spaced) },
    line: 'PROBLEM signed-request: the body does not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy removes Content-Digest',
    plant: { fault: without('content-digest') },
    line: 'PROBLEM signed-request: the header Content-Digest does not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy removes the signature',
    plant: { fault: without('signature', 'signature-input') },
    line: 'PROBLEM signed-request: the headers Signature and Signature-Input do not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy adds a signature of its own',
    plant: { fault: header('signature', (value) => `${value}, proxy=:AAAA:`) },
    line: 'PROBLEM signed-request: the headers Signature and Signature-Input do not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy removes Authorization',
    fix: 'proxy_set_header Authorization',
    plant: { fault: without('authorization') },
    line: 'PROBLEM incoming-create: the header Authorization does not arrive at https://wallet.example',
  },
  {
    name: 'The proxy sends each request twice',
    fix: 'proxy_next_upstream off',
    plant: {
      async fault(request, forward) {
        await forward(request)
        return forward(request)
      },
    },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth is delivered twice: the server refuses it as a repeat of itself',
  },
  {
    name: 'A gateway writes {} where a request has no body',
    fix: 'fixRequestBody',
    plant: {
      fault: requests(({ method, body, headers }) =>
        ['POST', 'DELETE'].includes(method) && body === ''
          ? { body: '{}', headers: [...headers, ['content-type', 'application/json']] }
          : {},
      ),
    },
    line: 'PROBLEM incoming-complete: POST https://wallet.example/op/incoming-payments/{id}/complete is sent without content, and arrives with some (401)',
  },
  {
    name: 'A gateway writes {} and no Content-Type where a request has no body',
    fix: 'fixRequestBody',
    plant: {
      fault: requests(({ method, body }) =>
        ['POST', 'DELETE'].includes(method) && body === '' ? { body: '{}' } : {},
      ),
    },
    line: 'PROBLEM incoming-complete: POST https://wallet.example/op/incoming-payments/{id}/complete is sent without content, and arrives with some (415)',
  },
  {
    name: 'A function passes bodies on in base64',
    plant: {
      fault: requests(({ body }) => ({ body: Buffer.from(body).toString('base64') })),
    },
    line: 'PROBLEM signed-request: the body does not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy adds a charset to Content-Type',
    plant: { fault: header('content-type', (value) => `${value}; charset=utf-8`) },
    line: 'PROBLEM signed-request: the header Content-Type does not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy sends bodies in chunks',
    plant: { fault: requests(({ body }) => (body === '' ? {} : { isChunked: true })) },
    line: 'PROBLEM signed-request: the header Content-Length does not arrive unchanged at https://wallet.example',
  },
  {
    name: 'The proxy decodes the query',
    fix: 'proxy_pass http',
    plant: { fault: requests(({ target }) => ({ target: target.replaceAll('%3A', ':') })) },
    line: `PROBLEM list: the proxy decodes the query of GET ${listUrl}`,
  },
  {
    name: 'The proxy removes the query',
    plant: { fault: requests(({ target }) => ({ target: target.replace(/\?.*/, '') })) },
    line: `PROBLEM list: the proxy removes the query of GET ${listUrl}`,
  },
  {
    name: 'The proxy drops a question mark without a query',
    fix: 'proxy_pass http',
    plant: { fault: requests(({ target }) => ({ target: target.replace(/\?$/, '') })) },
    line: 'ADVICE incoming-get-query: the proxy drops the question mark at the end of GET https://wallet.example/op/incoming-payments/{id}?',
  },
  {
    name: 'The proxy writes the hexadecimal digits of a query in upper case',
    fix: 'nocanon',
    plant: {
      fault: requests(({ target }) => ({
        target: target.replace(/%[\da-f]{2}/g, (escaped) => escaped.toUpperCase()),
      })),
    },
    line: `PROBLEM list-encoded: the proxy writes the query of GET ${encodedListUrl} anew: the hexadecimal digits in upper case`,
  },
  {
    name: 'The proxy decodes what needs no encoding in a query, such as %7E',
    fix: 'normalize-uri',
    plant: {
      fault: requests(({ target }) => ({
        target: target.replace(
          /(?<=\?.*)%(?:2d|2e|5f|7e|3\d|[46][1-9a-f]|[57][\da])/g,
          decodeURIComponent,
        ),
      })),
    },
    line: `PROBLEM list-encoded: the proxy writes the query of GET ${encodedListUrl} anew: unreserved characters decoded`,
  },
  {
    name: 'The proxy decodes paths',
    fix: 'nocanon',
    plant: {
      fault: requests(({ target }) => {
        const [path = '', ...query] = target.split('?')
        return { target: [decodeURIComponent(path), ...query].join('?') }
      }),
    },
    line: 'ADVICE incoming-get-encoded: the proxy decodes an encoded character in the path of GET https://wallet.example/op/incoming-payments/{id}',
  },
  {
    name: 'The proxy refuses bodies of more than 10 kB',
    fix: 'LimitRequestBody',
    plant: {
      fault: responds(
        page(413, '413 Request Entity Too Large'),
        ({ body }) => body.length > 10_000,
      ),
    },
    line: 'PROBLEM body-size: a firewall or proxy refused POST https://wallet.example/auth (413, "413 Request Entity Too Large")',
  },
  {
    name: 'A parser in front of a gateway has read the body, which the gateway waits for',
    fix: 'before app.use(express.json())',
    plant: { fault: responds(page(504, '504 Gateway Time-out'), ({ body }) => body !== '') },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth is answered without a body, and not with one (504)',
  },
  {
    name: 'Requests with a body are never answered',
    fix: 'before app.use(express.json())',
    plant: {
      args: ['--timeout', '3', 'https://wallet.example/alice'],
      fault: (request, forward) =>
        request.body === '' ? forward(request) : new Promise<never>(() => undefined),
    },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth is answered without a body, and not with one (no response)',
  },
  {
    name: 'The proxy limits bodies to a few bytes',
    fix: 'client_max_body_size',
    plant: {
      fault: responds(page(413, '413 Request Entity Too Large'), ({ body }) => body.length > 100),
    },
    line: 'PROBLEM signed-request: a firewall or proxy refused POST https://wallet.example/auth (413, "413 Request Entity Too Large")',
  },
  {
    name: 'A firewall refuses bodies with URLs',
    plant: {
      fault: responds(page(403, 'Request blocked'), ({ body }) => body.includes('https://')),
    },
    line: 'PROBLEM signed-request: a firewall or proxy refused POST https://wallet.example/auth (403, "Request blocked")',
  },
  {
    name: 'A firewall limits the rate of the servers',
    plant: { fault: responds(page(429, 'Slow down', { 'retry-after': '3600' }), isApi) },
    line: 'PROBLEM signed-request: POST https://wallet.example/auth is limited: status 429 and Retry-After 3600',
  },
  {
    name: 'A gateway asks for an API key',
    plant: {
      fault: responds(
        {
          status: 401,
          headers: { 'content-type': 'application/json' },
          body: '{"message":"No API key found in request"}',
        },
        isApi,
      ),
    },
    line: 'PROBLEM signed-request: a firewall or proxy refused POST https://wallet.example/auth (401, "No API key found in request")',
  },
  {
    name: 'The proxy blocks DELETE',
    plant: {
      fault: responds(page(405, '405 Not Allowed'), ({ method }) => method === 'DELETE'),
    },
    line: 'PROBLEM token-revoke: the proxy does not pass on DELETE https://wallet.example/auth/token/{id} (405)',
  },
  {
    name: 'The proxy forbids DELETE',
    fix: 'limit_except',
    plant: { fault: responds(page(403, '403 Forbidden'), ({ method }) => method === 'DELETE') },
    line: 'PROBLEM token-revoke: the proxy does not pass on DELETE https://wallet.example/auth/token/{id} (403)',
  },
  {
    name: 'A guard against forged forms stands before the wallet',
    fix: 'the first line',
    plant: {
      fault: responds(
        { status: 403, headers: { 'content-type': 'text/plain' }, body: 'Forbidden' },
        ({ method, body }) => body.length === 0 && ['POST', 'DELETE'].includes(method),
      ),
    },
    line: 'PROBLEM incoming-complete: JSON passes, but POST https://wallet.example/op/incoming-payments/{id}/complete without content is refused (403): a guard against forged forms',
  },
  {
    name: 'The proxy blocks OPTIONS',
    plant: {
      fault: responds(page(405, '405 Not Allowed'), ({ method }) => method === 'OPTIONS'),
    },
    line: 'ADVICE discovery: the proxy does not pass on OPTIONS https://wallet.example/auth (405)',
  },
  {
    name: 'cors() answers OPTIONS',
    fix: 'before app.use(cors())',
    plant: { app: behind(cors()) },
    line: 'ADVICE discovery: cors() or a proxy answers OPTIONS https://wallet.example/auth with status 204',
  },
  {
    name: 'The proxy answers OPTIONS as a preflight',
    fix: 'no return 204',
    plant: {
      fault: responds(
        { status: 204, headers: { 'access-control-allow-methods': 'GET, POST' }, body: '' },
        ({ method }) => method === 'OPTIONS',
      ),
    },
    line: 'ADVICE discovery: cors() or a proxy answers OPTIONS https://wallet.example/auth with status 204',
  },
  // What proxies do to responses.
  {
    name: 'The proxy caches GET requests',
    fix: 'proxy_cache off',
    plant: { fault: caching() },
    line: 'PROBLEM incoming-complete: a cache answers GET https://wallet.example/op/incoming-payments/{id} with the payment as it was earlier, and gives the list of a client to a request without a signature',
  },
  {
    name: 'The proxy lets caches store responses',
    fix: 'Cache-Control',
    plant: {
      fault: replies(({ headers }) => ({
        headers: { ...headers, 'cache-control': 'public, max-age=60' },
      })),
    },
    line: 'PROBLEM grant-no-store: POST https://wallet.example/auth responded with Cache-Control "public, max-age=60"; expected no-store',
  },
  {
    name: 'The proxy removes WWW-Authenticate',
    fix: 'proxy_hide_header WWW-Authenticate',
    plant: {
      fault: replies(({ headers: { 'www-authenticate': _, ...headers } }) => ({ headers })),
    },
    line: 'PROBLEM grant-401-challenge: POST https://wallet.example/auth responded with status 401 and the error {"code":"invalid_client","description":"Invalid signature","details":{"problem":"Signature-Input is missing"}} without WWW-Authenticate',
  },
  {
    name: 'The proxy replaces errors by pages of its own',
    fix: 'proxy_intercept_errors',
    plant: {
      fault: replies((reply) =>
        reply.status < 400 ? {} : page(reply.status, 'Error', reply.headers),
      ),
    },
    line: 'PROBLEM grant-unsigned: POST https://wallet.example/auth responded with a page instead of the JSON of the error (401, "Error")',
  },
  // Several processes.
  {
    name: 'Two processes have a store in memory each',
    plant: { app: twoStores },
    line: 'PROBLEM incoming-create: the resource server does not know each token that the authorization server has issued: 2 of 4 requests were refused',
  },
  {
    name: 'The database hides the grants, as policies of its rows do',
    fix: 'checkTables',
    plant: { app: world({ store: hidingGrants() }) },
    line: 'PROBLEM incoming-create: the resource server does not know the tokens that the authorization server has issued',
  },
  {
    name: 'The resource server introspects tokens with an unknown key',
    fix: 'resourceServers',
    plant: { app: withUnknownKey },
    line: 'PROBLEM incoming-create: POST https://wallet.example/op/incoming-payments responded with status 503: the wallet says "Token cannot be checked at the moment"',
  },
  {
    name: 'The wallet signs for another URL than clients',
    fix: 'X-Forwarded-Proto',
    plant: {
      fault: async (request, forward) => {
        const target = request.target.replace(/^\/payments/, '')
        const reply = await forward({ ...request, target })
        return { ...reply, body: reply.body.replace('.example/auth', '.example/payments/auth') }
      },
    },
    line: 'PROBLEM signed-request: the authorization server accepts signatures of https://wallet.example/auth, but clients sign https://wallet.example/payments/auth',
  },
  // The consent page.
  {
    name: 'The consent page does not exist',
    plant: { asShop: true },
    line: 'PROBLEM consent-page: the consent page https://wallet.example/consent/{id} responded with status 404',
  },
  {
    name: 'The consent page fails',
    plant: consent((_request, response) => void response.status(500).send('Oops')),
    line: 'PROBLEM consent-page: the consent page https://wallet.example/consent/{id} responded with status 500',
  },
  {
    name: 'helmet() stops the redirect to the client after consent',
    fix: 'formAction',
    plant: consent((request, response, next) =>
      helmet()(request, response, () => form(request, response, next)),
    ),
    line: 'PROBLEM consent-page: the Content-Security-Policy of the consent page does not let its form lead to https://shop.example',
  },
  {
    name: 'consentUrl names the machine of a developer',
    plant: consent(form, 'http://localhost:65000/consent'),
    line: 'PROBLEM consent-page: the consent page http://localhost:65000/consent/{id} cannot be opened: localhost:65000 refuses connections',
  },
  {
    name: 'The consent page redirects in a circle',
    plant: consent(({ path }, response) => response.redirect(path)),
    line: 'PROBLEM consent-page: the consent page https://wallet.example/consent/{id} redirects too often',
  },
  {
    name: 'The consent page is behind basic authentication',
    plant: consent(
      (_request, response) =>
        void response.status(401).set('www-authenticate', 'Basic realm="staging"').send(''),
    ),
    line: 'PROBLEM consent-page: the consent page https://wallet.example/consent/{id} asks for a password (401, Basic)',
  },
]
