import {
  Body,
  ConflictException,
  Controller,
  ForbiddenException,
  Inject,
  Post,
  Req,
} from '@nestjs/common'
import { IsString, Matches } from 'class-validator'
import type { Request } from 'express'
import type { Wallet } from 'open-payments-server'
import { AccountsService } from './accounts.service.js'
import { WALLET } from './open-payments.module.js'
import { sessions } from './sessions.js'

class InvoiceDto {
  @IsString()
  account: string

  @Matches(/^[1-9]\d{0,14}$/)
  amount: string

  @IsString()
  number: string
}

/** The host's own API: an owner requests money. */
@Controller('invoices')
export class InvoicesController {
  constructor(
    @Inject(WALLET) private readonly wallet: Wallet,
    private readonly accounts: AccountsService,
  ) {}

  @Post()
  async create(@Req() request: Request, @Body() { account, amount, number }: InvoiceDto) {
    const found = await this.accounts.find(account)
    if (found === undefined || found.owner !== sessions.ownerOf(request)?.id) {
      throw new ForbiddenException()
    }
    const { assetCode, assetScale } = found
    const created = await this.wallet.resources.incomingPayments.create({
      walletAddress: account,
      incomingAmount: { value: amount, assetCode, assetScale },
      idempotencyKey: number,
      metadata: { number },
    })
    if (!created.ok) throw new ConflictException(created.reason)
    return { url: created.url }
  }
}
