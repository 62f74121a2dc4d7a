import { Body, Controller, HttpCode, Post, Res } from '@nestjs/common'
import { Matches } from 'class-validator'
import type { Response } from 'express'
import { sessions } from './sessions.js'

class SessionDto {
  @Matches(/^\w{1,32}$/)
  owner: string
}

/** Stands for your login: signs in without a password. */
@Controller('session')
export class SessionsController {
  @Post()
  @HttpCode(204)
  create(@Body() { owner }: SessionDto, @Res({ passthrough: true }) response: Response) {
    response.setHeader('set-cookie', sessions.cookieFor(owner))
  }
}
