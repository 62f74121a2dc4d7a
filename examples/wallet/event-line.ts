import type { Amount, DeliveredEvent } from 'open-payments-server'
import { money } from '../demo/money.js'

/** Formats an event on one line, for the operator. */
export function eventLine(event: DeliveredEvent): string {
  return [new Date(event.at).toISOString(), event.type, ...details(event)].join('  ')
}

function details(event: DeliveredEvent): string[] {
  if ('outgoingPaymentId' in event) {
    const { outgoingPaymentId, sentAmount, debitAmount, walletAddress, receiver } = event
    const sent = `${money(sentAmount)}${outOf(debitAmount)}`
    return [outgoingPaymentId, `${sent} from ${walletAddress} to ${receiver}`]
  }
  if ('quoteId' in event) {
    const { quoteId, debitAmount, receiveAmount, walletAddress, receiver } = event
    const price = `${money(receiveAmount)} for ${money(debitAmount)}`
    return [quoteId, `${price} from ${walletAddress} to ${receiver}`]
  }
  if ('incomingPaymentId' in event) {
    const { incomingPaymentId, walletAddress, receivedAmount, incomingAmount } = event
    const received = `${money(receivedAmount)}${outOf(incomingAmount)}`
    return [incomingPaymentId, `${received} for ${walletAddress}`]
  }
  const { grantId, client, resourceOwner } = event
  return [
    grantId,
    resourceOwner === undefined ? `to ${client}` : `to ${client} by ${resourceOwner}`,
  ]
}

function outOf(amount: Amount | undefined): string {
  return amount === undefined ? '' : ` of ${money(amount)}`
}
