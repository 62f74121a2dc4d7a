import {
  type AuthorizationServer,
  type ConsumeOptions,
  consumeEvents,
  type ResourceServer,
  runSweeps,
} from 'open-payments-server'
import { serve } from './serve.js'
import { custodianSettlements, type SettlementOptions } from './settlements.js'
import { webhooks } from './webhooks.js'

/** Where the custodian calls, with which secret, and how events are consumed. */
export interface StartOptions extends Pick<ConsumeOptions, 'leaseMs'> {
  readonly port: number
  readonly secret: string
}

/** What a process of the wallet does besides its requests: any number of processes may. */
export async function startSettlements(
  servers: { readonly auth: AuthorizationServer; readonly resources: ResourceServer },
  options: Omit<SettlementOptions, 'resources'>,
  { port, secret, ...consuming }: StartOptions,
) {
  const { auth, resources } = servers
  const settlements = custodianSettlements({ ...options, resources })
  const { holds, credits, payouts } = settlements.drivers
  await serve(port, webhooks(settlements, secret))
  const consumer = consumeEvents([auth.events, resources.events], settlements.handle, consuming)
  const sweeps = runSweeps([auth, resources, holds, credits, payouts], { everyMs: 60_000 })
  return {
    ...settlements,
    async stop() {
      await Promise.all([consumer.stop(), sweeps.stop()])
    },
  }
}
