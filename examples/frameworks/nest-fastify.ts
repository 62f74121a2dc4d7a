import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { toFastify } from 'open-payments-server/fastify'
import { createWallet } from './wallet.js'

@Controller()
class HealthController {
  @Get('health')
  health() {
    return 'ok'
  }
}

@Module({ controllers: [HealthController] })
class AppModule {}

const port = Number(process.env['PORT'] ?? 3000)
const { handle } = createWallet(`http://localhost:${port}`)

// #region nest-fastify
const adapter = new FastifyAdapter()
const app = await NestFactory.create<NestFastifyApplication>(AppModule, adapter)
app.setGlobalPrefix('api')
app.enableCors({ origin: 'https://app.wallet.example' })
await app.register(toFastify(handle, { fallthrough: true }))
await app.listen(port)
// #endregion nest-fastify
