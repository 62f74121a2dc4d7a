import type { JetStreamClient } from '@nats-io/jetstream'
import type { EventHandler } from 'open-payments-server'

// #region nats
/** Publishes to a stream that stores what is published to `payments.>`. */
export function toJetStream(jetstream: JetStreamClient): EventHandler {
  return async (event) => {
    const subject = `payments.${event.subject.replace('/', '.')}`
    await jetstream.publish(subject, JSON.stringify(event), { msgID: event.id })
  }
}
// #endregion nats
