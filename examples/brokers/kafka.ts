import type { Producer } from 'kafkajs'
import type { EventHandler } from 'open-payments-server'

// #region kafka
/** Sends with `kafka.producer({ idempotent: true })`: the key selects the partition. */
export function toKafka(producer: Producer, topic: string): EventHandler {
  return async (event) => {
    const { id, subject } = event
    const message = { key: subject, value: JSON.stringify(event), headers: { id } }
    await producer.send({ topic, acks: -1, messages: [message] })
  }
}
// #endregion kafka
