import type { DeliveredEvent } from 'open-payments-server'

/** The request that carries an event. */
export interface Webhook {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Writes an event as a webhook that is sent now, or resolves to `undefined` to send none. */
export type WebhookFormat = (event: DeliveredEvent, now: Date) => Promise<Webhook | undefined>
