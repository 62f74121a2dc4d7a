import type { DeliveredEvent } from '../../src/index.js'
import { money } from './plain-language.js'

/** An event in one line, for the operator. */
export function eventLine(event: DeliveredEvent): string {
  return [new Date(event.at).toISOString(), event.type, ...details(event)].join('  ')
}

function details(event: DeliveredEvent): string[] {
  const { client } = event
  if ('grantId' in event) {
    const { grantId, resourceOwner } = event
    return [
      grantId,
      resourceOwner === undefined ? `to ${client}` : `to ${client} by ${resourceOwner}`,
    ]
  }
  const { incomingPaymentId, walletAddress, receivedAmount, incomingAmount } = event
  const asked = incomingAmount === undefined ? '' : ` of ${money(incomingAmount)}`
  return [incomingPaymentId, `${money(receivedAmount)}${asked} for ${walletAddress}`]
}
