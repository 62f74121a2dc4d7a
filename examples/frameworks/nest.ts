// #region nest
import 'reflect-metadata'
import { Body, Controller, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { toExpress } from 'open-payments-server/express'
import { createWallet } from './wallet.js'

const port = Number(process.env['PORT'] ?? 3000)
const { handle } = createWallet(`http://localhost:${port}`)

@Controller('accounts')
class AccountsController {
  @Post()
  create(@Body() body: { readonly name: string }) {
    return { name: body.name }
  }
}

@Module({ controllers: [AccountsController] })
class AppModule {}

const app = await NestFactory.create(AppModule)
// Before `listen`, so that the handlers run before the body parsers that Nest adds.
// With pricing, add the paths of quotes and outgoing payments.
app.use(['/auth', '/incoming-payments', '/alice'], toExpress(handle))
await app.listen(port)
// #endregion nest
