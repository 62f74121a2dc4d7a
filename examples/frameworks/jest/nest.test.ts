import 'reflect-metadata'
import { type INestApplication, type MiddlewareConsumer, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createAuthorizationServer, memoryStore } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'

const auth = createAuthorizationServer({
  grantEndpoint: 'http://localhost/auth',
  consentUrl: 'http://localhost/consent',
  store: memoryStore(),
  clientKeys: { find: async () => undefined },
})

/** Runs the handler after the body parsers of Nest, as every middleware of a module. */
@Module({})
class AppModule {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(toExpress(auth.handle)).forRoutes('auth')
  }
}

// A busy machine takes longer than Jest's 5 s to start the application for the first time.
jest.setTimeout(60_000)

let app: INestApplication
afterEach(() => app.close())

async function postGrant(options: { readonly rawBody: boolean }) {
  app = await NestFactory.create(AppModule, { ...options, logger: false })
  await app.listen(0, '127.0.0.1')
  return fetch(`${await app.getUrl()}/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"access_token":{"access":[]}}',
  })
}

test('with rawBody, the servers answer after the body parsers of Nest', async () => {
  const response = await postGrant({ rawBody: true })
  expect([response.status, await response.json()]).toMatchObject([401, { error: {} }])
})

test('without rawBody, they cannot read the body', async () => {
  const { status } = await postGrant({ rawBody: false })
  expect(status).toBe(500)
})
