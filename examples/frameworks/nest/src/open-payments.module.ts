// #region nest-module
import {
  type BeforeApplicationShutdown,
  ConfigurableModuleBuilder,
  Inject,
  Logger,
  Module,
  type OnModuleInit,
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { EventHandler, Handler, Wallet } from 'open-payments-server'
import { consumeEvents, runSweeps } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { observeBacklog } from 'open-payments-server/opentelemetry'

/** Injects the wallet into your own services: `@Inject(WALLET) wallet: Wallet`. */
export const WALLET = Symbol('WALLET')

export interface OpenPaymentsOptions {
  readonly wallet: Wallet
  /** The pages for owners, by their paths. */
  readonly pages: Readonly<Record<string, Handler>>
  readonly onEvent: EventHandler
}

const builder = new ConfigurableModuleBuilder<OpenPaymentsOptions>()
const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = builder
  .setClassMethodName('forRoot')
  .build()

const wallet = {
  provide: WALLET,
  inject: [MODULE_OPTIONS_TOKEN],
  useFactory: (options: OpenPaymentsOptions) => options.wallet,
}

@Module({ providers: [wallet], exports: [WALLET] })
export class OpenPaymentsModule
  extends ConfigurableModuleClass
  implements OnModuleInit, BeforeApplicationShutdown
{
  private jobs: readonly { stop(): Promise<unknown> }[] = []

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(MODULE_OPTIONS_TOKEN) private readonly options: OpenPaymentsOptions,
  ) {
    super()
  }

  /** Nest has added the controllers, and adds its own 404 afterwards. */
  onModuleInit() {
    const { pages, wallet, onEvent } = this.options
    const { httpAdapter } = this.host
    for (const path in pages) httpAdapter.use(path, toExpress(pages[path]))
    httpAdapter.use(toExpress(wallet.handle, { fallthrough: true }))
    const { auth, resources } = wallet
    // Gauges of events that wait, once you register an SDK of OpenTelemetry.
    observeBacklog(
      { authorizationServer: auth.events, resourceServer: resources.events },
      { attributes: { brand: auth.grantEndpoint } },
    )
    const logger = new Logger(OpenPaymentsModule.name)
    const onError = (error: unknown) => logger.error(error)
    this.jobs = [
      consumeEvents([auth.events, resources.events], onEvent, { onError }),
      runSweeps([auth, resources], { onError }),
    ]
  }

  /** The pool of the database ends later, in `onApplicationShutdown`. */
  async beforeApplicationShutdown() {
    await Promise.all(this.jobs.map((job) => job.stop()))
  }
}
// #endregion nest-module
