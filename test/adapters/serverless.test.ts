import express from 'express'
import fastify from 'fastify'
import serverless from 'serverless-http'
import { describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import type { HttpRequest } from '../../src/entry-adapter.js'
import type { Handler } from '../../src/index.js'
import { headerOf, withHeader } from '../support/sign.js'
import { createWorld, grantEndpoint, incomingAccess } from '../support/world.js'

/** Applications that serverless-http passes requests to. */
const applications: Readonly<Record<string, (handle: Handler) => object>> = {
  'a bare handler': toExpress,
  Express: (handle) => express().use(toExpress(handle)),
  Fastify: (handle) => fastify().register(toFastify(handle)),
}

/** How the gateways of AWS pass requests on. */
const events: Readonly<Record<string, (request: HttpRequest) => object>> = {
  'an HTTP API': ({ method, url, headers, body }) => ({
    version: '2.0',
    rawPath: url,
    headers: Object.fromEntries(headers),
    requestContext: { http: { method, sourceIp: '192.0.2.1' } },
    ...(body.length > 0 && { body: Buffer.from(body).toString('base64'), isBase64Encoded: true }),
  }),
  'a REST API': ({ method, url, headers, body }) => ({
    httpMethod: method,
    path: url,
    headers: Object.fromEntries(headers),
    multiValueHeaders: valuesOf(headers),
    body: Buffer.from(body).toString(),
  }),
  'a load balancer': ({ method, url, headers, body }) => ({
    httpMethod: method,
    path: url,
    multiValueHeaders: valuesOf(headers),
    body: Buffer.from(body).toString(),
    requestContext: { elb: {} },
  }),
}

function valuesOf(headers: HttpRequest['headers']) {
  const values: Record<string, string[]> = {}
  for (const [name, value] of headers) values[name] = [...(values[name] ?? []), value]
  return values
}

async function answerTo(application: object, event: object) {
  const answer = await serverless(application)(event, {})
  const { statusCode, body } = answer as { readonly statusCode: number; readonly body: string }
  return { status: statusCode, body: body === '' ? undefined : JSON.parse(body) }
}

describe.each(Object.keys(applications))('serverless-http, with %s', (name) => {
  const setUp = (gateway: string) => {
    const { auth, client, refusals } = createWorld()
    const shop = client()
    const application = applications[name]?.(auth.handle) ?? {}
    const send = (request: HttpRequest) => answerTo(application, events[gateway]?.(request) ?? {})
    const grant = { client: shop.client, access_token: { access: [incomingAccess] } }
    const body = JSON.stringify(grant, null, '\t')
    return { shop, send, refusals, request: { method: 'POST', url: grantEndpoint, body } }
  }

  test.each(Object.keys(events))(
    'serves signed requests with and without a body of %s',
    async (gateway) => {
      const { shop, send, request } = setUp(gateway)
      const granted = await send(shop.sign(request))
      expect(granted).toMatchObject({ status: 200, body: { access_token: {} } })
      const { manage, value } = granted.body.access_token
      const revoked = await send(shop.sign({ method: 'DELETE', url: manage, token: value }))
      expect(revoked).toEqual({ status: 204, body: undefined })
    },
  )

  test.each(Object.keys(events))('refuses a body of %s that was changed', async (gateway) => {
    const { shop, send, request } = setUp(gateway)
    const signed = shop.sign(request)
    const changed = { ...signed, body: Buffer.concat([signed.body, Buffer.from(' ')]) }
    expect((await send(changed)).status).toBe(401)
  })

  test('refuses a header that was joined from several lines', async () => {
    const { shop, send, refusals } = setUp('a load balancer')
    const url = `${grantEndpoint}/continue/unknown`
    const signed = shop.sign({ method: 'POST', url, token: 'one' })
    const token = headerOf(signed, 'authorization') ?? ''
    const { status } = await send(withHeader(signed, 'Authorization', token, 'GNAP two'))
    expect([400, 401]).toContain(status)
    // Fastify gets the joined line as one that was received.
    expect(refusals.at(-1)?.reason).toMatch(/repeats authorization|must have .* one token/)
  })
})
