// #region nest-ready
import {
  Controller,
  Get,
  Header,
  Logger,
  type OnModuleDestroy,
  ServiceUnavailableException,
} from '@nestjs/common'
import { checkTables } from 'open-payments-server/postgres'
import { Pool } from 'pg'

/** Answers a load balancer at `/ready`. The problem is for the log, and not sent. */
@Controller('ready')
export class ReadyController implements OnModuleDestroy {
  private readonly logger = new Logger(ReadyController.name)
  private isStopping = false

  constructor(private readonly pool: Pool) {}

  @Get()
  @Header('cache-control', 'no-store')
  async ready() {
    const problem = await this.problem()
    if (problem === undefined) return 'ready'
    this.logger.warn(problem)
    throw new ServiceUnavailableException('not ready')
  }

  /** At a signal, before the server closes. */
  onModuleDestroy() {
    this.isStopping = true
  }

  private async problem() {
    if (this.isStopping) return 'the application stops'
    const check = await checkTables(this.pool)
    return check.ok ? undefined : check.problem
  }
}
// #endregion nest-ready
