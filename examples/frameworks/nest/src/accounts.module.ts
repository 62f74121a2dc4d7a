import { Module } from '@nestjs/common'
import { AccountsService } from './accounts.service.js'
import { DatabaseModule } from './database.module.js'
import { PaymentsService } from './payments.service.js'

@Module({
  imports: [DatabaseModule],
  providers: [AccountsService, PaymentsService],
  exports: [AccountsService, PaymentsService, DatabaseModule],
})
export class AccountsModule {}
