import type { ConfirmChannel } from 'amqplib'
import type { EventHandler } from 'open-payments-server'

// #region rabbitmq
/** Publishes to an exchange, and waits until a queue has the message. */
export function toRabbitMq(channel: ConfirmChannel, exchange: string): EventHandler {
  const returned = new Set<string>() // no queue takes them
  channel.on('return', ({ properties }) => returned.add(properties.messageId))
  return (event) =>
    new Promise((resolve, reject) => {
      const content = Buffer.from(JSON.stringify(event))
      const options = { persistent: true, mandatory: true, messageId: event.id }
      channel.publish(exchange, event.subject, content, options, (error) => {
        if (returned.delete(event.id)) reject(new Error('no queue is bound'))
        else if (error) reject(error)
        else resolve()
      })
    })
}
// #endregion rabbitmq
