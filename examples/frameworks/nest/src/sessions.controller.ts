import {
  Body,
  Controller,
  HttpCode,
  Post,
  Req,
  Res,
  UnsupportedMediaTypeException,
} from '@nestjs/common'
import { Matches } from 'class-validator'
import type { Request, Response } from 'express'
import { sessions } from './sessions.js'

class SessionDto {
  @Matches(/^\w{1,32}$/)
  owner: string
}

/**
 * Stands for your login: signs in without a password. It takes JSON only. A form of another site cannot send JSON, and
 * a script of another site only after a preflight, which `crossOrigin` answers for your own front end alone: so the
 * login needs no token, and no site can sign a browser in as an owner of its choice.
 */
@Controller('session')
export class SessionsController {
  @Post()
  @HttpCode(204)
  create(
    @Req() request: Request,
    @Body() { owner }: SessionDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    if (request.is('application/json') === false) throw new UnsupportedMediaTypeException()
    response.setHeader('set-cookie', sessions.cookieFor(owner))
  }
}
