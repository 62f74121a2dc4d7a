import express, { type RequestHandler } from 'express'
import helmet from 'helmet'
import { describe, expect, test } from 'vitest'
import {
  allowReturn,
  corsBeforeServers,
  jsonBeforeServers,
} from '../../../examples/integration/middleware.js'
import type { InteractionView } from '../../../src/index.js'
import type { World } from '../../../test/support/world.js'
import { reportText } from '../src/report.js'
import {
  type Examination,
  examined,
  findingOf,
  found,
  livingWorld,
  mounted,
} from './support/doctor.js'
import type { ProxyFault, Reply } from './support/faulty-proxy.js'

/** Serves a consent page behind middleware. */
function withConsentPage(world: World, before: RequestHandler, returns: boolean) {
  const app = express().use(before)
  app.get('/consent/:id', async (request, response) => {
    const view = (await world.auth.interactions.get(request.params['id'] ?? '')) as InteractionView
    const show = () => void response.send('<form method="post"></form>')
    if (returns) allowReturn(view)(request, response, show)
    else show()
  })
  return mounted(world, app)
}

describe('the doctor finds nothing wrong with', () => {
  test('the documented lines for helmet, cors and body parsers, with a client instance', async () => {
    const world = livingWorld()
    const app = express().use(helmet(), corsBeforeServers, jsonBeforeServers)
    const all = withConsentPage(world, app, true)
    const { code, report } = await examined(all, { asShop: true })
    expect(found(report)).toEqual([])
    expect([code, report.skipped]).toEqual([0, []])
  })

  test('a payment pointer', async () => {
    const { code, report } = await examined(mounted(livingWorld()), {
      args: ['$wallet.example/alice'],
    })
    expect([code, report.walletAddress]).toEqual([0, 'https://wallet.example/alice'])
  })
})

/** Serves a login page, to which the consent page redirects. */
function withLoginPage(world: World, login: string, policy: string) {
  const app = express()
  app.get('/consent/:id', ({ path }, response) => response.redirect(`${login}?next=${path}`))
  app.get('/login', (_, response) => {
    response.set('content-security-policy', policy).send('<form method="post"></form>')
  })
  return mounted(world, app)
}

describe('the doctor says that it checked only the login page in front of the consent page', () => {
  test.each([
    ['that leads to the same origin', '/login', "form-action 'self'"],
    [
      'of another origin, whose form may lead back',
      'https://login.example/login',
      "form-action 'self' https://wallet.example",
    ],
  ])('%s', async (_, login, policy) => {
    const { report } = await examined(withLoginPage(livingWorld(), login, policy), { asShop: true })
    expect([report.ok, found(report)]).toEqual([true, ['note consent-page']])
    expect(report.passed).not.toContain('consent-page')
    expect(findingOf(report, 'consent-page').fix).toContain('form-action')
    expect(reportText(report)).toMatch(
      /^NOTE {4}consent-page\n[\s\S]*, 1 note, \d+ checks passed\.\n$/m,
    )
  })
})

describe('the doctor finds in an application', () => {
  test('a login page of another origin, whose form may not lead back to the consent page', async () => {
    const app = withLoginPage(livingWorld(), 'https://login.example/login', "form-action 'self'")
    const { report } = await examined(app, { asShop: true })
    expect(found(report)).toEqual(['problem consent-page'])
    const { what } = findingOf(report, 'consent-page')
    expect(what).toMatch(/login page does not let its form lead to https:\/\/wallet.example/)
  })

  test('helmet, which stops the redirect to the client after consent', async () => {
    const app = withConsentPage(livingWorld(), helmet(), false)
    const { code, report } = await examined(app, { asShop: true })
    expect([code, found(report)]).toEqual([1, ['problem consent-page']])
    const { what, fix } = findingOf(report, 'consent-page')
    expect(what).toContain('https://shop.example')
    expect(fix).toContain('formAction')
  })

  test('a consent page that does not exist', async () => {
    const { report } = await examined(mounted(livingWorld()), { asShop: true })
    expect(found(report)).toEqual(['problem consent-page'])
    expect(findingOf(report, 'consent-page').what).toContain('has status 404')
  })

  test('a body parser, which loses the bytes that clients sign', async () => {
    const app = express().use(express.json())
    const { code, report } = await examined(mounted(livingWorld(), app))
    expect(code).toBe(1)
    expect(found(report)).toEqual(['problem signed-request', 'problem resource-server'])
    const before = 'before app.use(express.json())'
    for (const [check, line] of [
      ['signed-request', "app.use('/auth', toExpress(auth.handle))"],
      ['resource-server', "app.use('/op', toExpress(resources.handle))"],
    ] as const) {
      expect(findingOf(report, check).fix).toContain(`${line} // ${before}`)
    }
  })

  test('an authorization server that verifies signatures of another URL', async () => {
    // The proxy publishes /payments/auth, and the server knows only what is behind it.
    const fault: ProxyFault = async (request, forward) => {
      const target = request.target.replace(/^\/payments/, '')
      const reply = await forward({ ...request, target })
      return { ...reply, body: reply.body.replace('.example/auth', '.example/payments/auth') }
    }
    const { code, report } = await examined(mounted(livingWorld()), { fault })
    expect(code).toBe(1)
    expect(findingOf(report, 'signed-request')).toMatchObject({
      what: expect.stringMatching(/of https:\/\/wallet.example\/auth, but clients sign .*payments/),
      fix: expect.stringContaining('X-Forwarded-Proto'),
    })
  })

  test('another grant endpoint than the one that the wallet address names', async () => {
    const auth = livingWorld({ auth: { grantEndpoint: 'https://wallet.example/auth/' } }).auth
    const { report } = await examined(mounted({ ...livingWorld(), auth }))
    expect(findingOf(report, 'discovery')).toMatchObject({
      severity: 'problem',
      what: expect.stringContaining('https://wallet.example/auth/,'),
      fix: expect.stringContaining("grantEndpoint: 'https://wallet.example/auth'"),
    })
  })
})

/** A proxy that changes responses. */
function replies(change: (reply: Reply) => Partial<Reply>): ProxyFault {
  return async (request, forward) => {
    const reply = await forward(request)
    return { ...reply, ...change(reply) }
  }
}

const caching = (): ProxyFault => {
  const kept = new Map<string, Reply>()
  return async (request, forward) => {
    const reply = (request.method === 'GET' && kept.get(request.target)) || (await forward(request))
    if (request.method === 'GET') kept.set(request.target, reply)
    return reply
  }
}

const rows: readonly (readonly [string, Examination, string, string])[] = [
  [
    'removes the path prefix',
    {
      fault: (request, forward) =>
        forward({ ...request, target: request.target.replace(/^\/(auth|op)\b/, '') || '/' }),
    },
    'signed-request',
    "strippedPrefix: '/auth'",
  ],
  [
    'parses bodies and serializes them again',
    {
      fault: (request, forward) => {
        const body = request.body === '' ? '' : JSON.stringify(JSON.parse(request.body))
        return forward({ ...request, body })
      },
    },
    'body-bytes',
    'rawBody',
  ],
  [
    'changes the query',
    {
      fault: (request, forward) =>
        forward({ ...request, target: request.target.replaceAll('%3A', ':') }),
    },
    'list',
    'proxy_pass',
  ],
  ['caches', { fault: caching() }, 'incoming-complete', 'proxy_cache off'],
  [
    'lets browsers and caches store tokens',
    { fault: replies(({ headers }) => ({ headers: { ...headers, 'cache-control': 'public' } })) },
    'grant-no-store',
    'Cache-Control',
  ],
  [
    'removes WWW-Authenticate',
    {
      fault: replies(({ headers: { 'www-authenticate': _, ...headers } }) => ({ headers })),
    },
    'resource-401-challenge',
    'proxy_hide_header WWW-Authenticate',
  ],
  [
    'replaces errors by pages of its own',
    {
      fault: replies((reply) =>
        reply.status < 400
          ? reply
          : { headers: { ...reply.headers, 'content-type': 'text/html' }, body: '<h1>Error</h1>' },
      ),
    },
    'grant-error-body',
    'proxy_intercept_errors',
  ],
  [
    'removes the signature',
    {
      fault: (request, forward) => {
        const headers = request.headers.filter(([name]) => name.toLowerCase() !== 'signature')
        return forward({ ...request, headers })
      },
    },
    'signed-request',
    'onRefusal',
  ],
  [
    'redirects the wallet address',
    {
      fault: replies((reply) => ({
        status: 301,
        headers: { ...reply.headers, location: 'https://www.wallet.example/alice' },
      })),
    },
    'wallet-address',
    'Redirect browsers only',
  ],
  [
    'has a clock that is ten minutes ahead',
    {
      fault: replies(({ headers }) => ({
        headers: { ...headers, date: new Date(Date.now() + 600_000).toUTCString() },
      })),
    },
    'clock',
    'timedatectl',
  ],
  [
    'removes the header for pages of other origins',
    {
      fault: replies(({ headers: { 'access-control-allow-origin': _, ...headers } }) => ({
        headers,
      })),
    },
    'wallet-cors',
    'Access-Control-Allow-Origin',
  ],
  ['has a certificate that expires', { certificateDays: 3 }, 'tls-expiry', 'certbot renew'],
]

describe('the doctor finds a proxy that', () => {
  test.each(rows)('%s', async (_, examination, check, line) => {
    const { code, report } = await examined(mounted(livingWorld()), examination)
    const one = findingOf(report, check)
    expect(one.fix).toContain(line)
    expect(one.why).not.toBe('')
    expect(code).toBe(report.findings.some(({ severity }) => severity === 'problem') ? 1 : 0)
  })

  test('redirects the wallet address, and then checks nothing else', async () => {
    const [, examination = {}] =
      rows.find(([name]) => name === 'redirects the wallet address') ?? []
    const { report } = await examined(mounted(livingWorld()), examination)
    expect(found(report)).toEqual(['problem wallet-address'])
    expect(report.passed).toEqual([])
    const reasons = new Set(report.skipped.map(({ reason }) => reason))
    expect([...reasons].sort()).toEqual(['--client is not given', 'wallet-address did not pass'])
  })

  test('has another clock, and dates its signatures by that clock', async () => {
    const now = () => Date.now() + 600_000
    const world = livingWorld({ clock: { now, advance: () => {}, set: () => {} } })
    const [, examination = {}] = rows.find(([name]) => name.startsWith('has a clock')) ?? []
    const { report } = await examined(mounted(world), examination)
    expect(found(report)).toEqual(['problem clock'])
  })
})
