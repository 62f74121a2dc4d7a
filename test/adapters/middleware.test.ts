import { createServer, type Server } from 'node:http'
import express, { type Express } from 'express'
import helmet from 'helmet'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import {
  allowReturn,
  byHost,
  corsBeforeServers,
  jsonBeforeServers,
  leadBack,
} from '../../examples/integration/middleware.js'
import type { InteractionView } from '../../src/index.js'
import { listening, stopped } from '../support/hosts.js'
import {
  alice,
  createWorld,
  finishUri,
  grantEndpoint,
  interactionId,
  outgoingAccess,
  withFinish,
} from '../support/world.js'

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(stopped))
})

/** Starts an application, and returns its origin. */
async function started(app: Express): Promise<string> {
  const server = createServer(app.set('env', 'test'))
  servers.push(server)
  return `http://localhost:${await listening(server)}`
}

/** The sources of a directive of a content security policy. */
function sourcesOf(response: Response, directive: string): readonly string[] {
  const policy = response.headers.get('content-security-policy') ?? ''
  const found = policy.split(';').find((each) => each.startsWith(`${directive} `))
  return found?.split(' ').slice(1) ?? []
}

/** Whether `form-action` allows a form of the page, or the redirect after it, to lead to the URL. */
function mayLeadTo(response: Response, url: string): boolean {
  const { origin, protocol } = new URL(url)
  return sourcesOf(response, 'form-action').some((source) => [origin, protocol].includes(source))
}

describe('helmet', () => {
  /** A wallet with a consent page, and a client that asks for consent. */
  async function consentAt(withReturn: boolean) {
    const { auth, client } = createWorld()
    const app = express().use(helmet())
    app.get('/consent/:id', async (request, response) => {
      const view = (await auth.interactions.get(request.params.id)) as InteractionView
      const show = () => response.send('<form method="post"></form>')
      if (withReturn && view !== undefined) allowReturn(request, response, show)
      else show()
    })
    app.post('/consent/:id', async (request, response) => {
      const owner = { resourceOwner: 'alice', walletAddresses: [alice] }
      const result = await auth.interactions.approve(request.params.id, owner)
      response.redirect(303, (result.ok && result.redirect) || '/')
    })
    const { body } = await client().request([outgoingAccess], withFinish)
    const page = `${await started(app)}/consent/${interactionId(body.interact.redirect)}`
    const shown = await fetch(page)
    const posted = await fetch(page, { method: 'POST', redirect: 'manual' })
    return { shown, location: posted.headers.get('location') ?? '' }
  }

  test('stops the redirect to the client after consent by default', async () => {
    const { shown, location } = await consentAt(false)
    expect(location).toContain(new URL(finishUri).origin)
    expect(sourcesOf(shown, 'form-action')).toEqual(["'self'"])
    expect(mayLeadTo(shown, location)).toBe(false)
  })

  test('allows it on the consent page with the documented lines, and the redirects of the client', async () => {
    const { shown, location } = await consentAt(true)
    expect(mayLeadTo(shown, location)).toBe(true)
    expect(mayLeadTo(shown, 'https://site-of-the-client.example/')).toBe(true)
    expect(mayLeadTo(shown, 'http://site-of-the-client.example/')).toBe(false)
    expect(sourcesOf(shown, 'default-src')).toEqual(["'self'"])
  })

  test.each([
    ['https://shop.example/back?a=1', 303],
    ['http://localhost:4000/back', 303],
    ['http://[::1]:4000/back', 200],
    ['com.example.shop:/back?a=1&b="', 200],
  ])('leads the browser to %s with the documented lines', async (uri, expected) => {
    const app = express().get('/', (_request, response) => leadBack(response, uri))
    const response = await fetch(await started(app), { redirect: 'manual' })
    expect(response.status).toBe(expected)
    const href = uri.replaceAll('&', '&#38;').replaceAll('"', '&#34;')
    const shown = expected === 303 ? response.headers.get('location') : await response.text()
    expect(shown).toContain(expected === 303 ? uri : `<a href="${href}">`)
  })
})

describe('several middlewares together', () => {
  test('serve a signed request, with the lines that keep the bytes', async () => {
    const { auth, client } = createWorld()
    const app = express().use(helmet(), corsBeforeServers, jsonBeforeServers)
    app.use('/auth', toExpress(auth.handle))
    const shop = client()
    const grant = { client: shop.client, access_token: { access: [outgoingAccess] } }
    const body = JSON.stringify({ ...grant, interact: withFinish }, null, 2)
    const { method, url, headers } = shop.sign({ method: 'POST', url: grantEndpoint, body })
    const sent = { method, body, headers: headers.map(([name, value]) => [name, value]) }
    const response = await fetch((await started(app)) + url, sent as RequestInit)
    expect(response.status).toBe(200)
    expect(await response.json()).toHaveProperty('interact.redirect')
  })

  test.each([
    ['its own host', 'alpha.example', 'beta.example'],
    ['its own port', 'localhost:3000', 'localhost:3001'],
    ['its own host, though the proxy names a port', 'alpha.example', 'beta.example', ':443'],
  ])('serve several brands of one process, each at %s', async (_, alpha, beta, port = '') => {
    const hosts = [alpha, beta]
    const scheme = alpha.startsWith('localhost') ? 'http' : 'https'
    const brands = new Map(
      hosts.map((host) => {
        const { auth } = createWorld({ auth: { grantEndpoint: `${scheme}://${host}/auth` } })
        return [host, toExpress(auth.handle)]
      }),
    )
    const app = express().set('trust proxy', 'loopback')
    app.use('/auth', byHost(brands))
    const base = await started(app)
    for (const host of hosts) {
      const headers = { 'x-forwarded-host': host + port }
      const response = await fetch(`${base}/auth`, { method: 'OPTIONS', headers })
      expect(await response.json()).toMatchObject({
        grant_request_endpoint: `${scheme}://${host}/auth`,
      })
    }
    expect((await fetch(`${base}/auth`, { method: 'OPTIONS' })).status).toBe(404)
  })
})
