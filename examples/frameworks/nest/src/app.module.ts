import { type DynamicModule, Module, ValidationPipe } from '@nestjs/common'
import { APP_PIPE } from '@nestjs/core'
import { Pool } from 'pg'
import { AccountsModule } from './accounts.module.js'
import { AccountsService } from './accounts.service.js'
import { DatabaseModule } from './database.module.js'
import { InvoicesController } from './invoices.controller.js'
import { OpenPaymentsModule } from './open-payments.module.js'
import { PaymentsService } from './payments.service.js'
import { ReadyController } from './ready.controller.js'
import { SessionsController } from './sessions.controller.js'
import { walletAt } from './wallet.js'

// #region nest-import
const openPaymentsAt = (baseUrl: string) =>
  OpenPaymentsModule.forRootAsync({
    imports: [AccountsModule],
    inject: [Pool, AccountsService, PaymentsService],
    useFactory: (pool: Pool, accounts: AccountsService, payments: PaymentsService) =>
      walletAt(baseUrl, pool, accounts, payments),
  })
// #endregion nest-import

const validation = new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true })

@Module({
  imports: [DatabaseModule],
  controllers: [InvoicesController, ReadyController, SessionsController],
  providers: [{ provide: APP_PIPE, useValue: validation }],
})
class AppModule {}

/** The application of one brand. */
export function appAt(baseUrl: string): DynamicModule {
  return { module: AppModule, imports: [AccountsModule, openPaymentsAt(baseUrl)] }
}
