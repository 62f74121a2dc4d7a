import { SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs'
import type { EventHandler } from 'open-payments-server'

// #region sqs
/** Sends to a FIFO queue. */
export function toSqs(sqs: SQSClient, QueueUrl: string): EventHandler {
  return async (event) => {
    const MessageBody = JSON.stringify(event)
    const once = { MessageGroupId: event.subject, MessageDeduplicationId: event.id }
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody, ...once }))
  }
}
// #endregion sqs
