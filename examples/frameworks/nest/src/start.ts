// #region nest-start
import 'reflect-metadata'
import type { IncomingMessage } from 'node:http'
import { NestFactory } from '@nestjs/core'
import { appAt } from './app.module.js'

/** Answers preflights for your front end. Other OPTIONS requests are for the wallet. */
function crossOrigin({ headers }: IncomingMessage, answer: Answer) {
  const preflightContinue = headers['access-control-request-method'] === undefined
  answer(null, { origin: 'https://app.wallet.example', preflightContinue })
}

type Answer = (error: null, options: object) => void

/** Starts the wallet of a brand, at the port of its URL. */
export async function start(baseUrl: string) {
  // Nest's body parsers run first: `rawBody` keeps the bytes that clients signed.
  const app = await NestFactory.create(appAt(baseUrl), { rawBody: true })
  app.setGlobalPrefix('api', { exclude: ['ready'] }) // of your own controllers
  app.enableCors(crossOrigin)
  app.enableShutdownHooks()
  app.getHttpServer().keepAliveTimeout = 65_000 // proxies keep connections for 60 s
  await app.listen(new URL(baseUrl).port)
  return app
}
// #endregion nest-start
