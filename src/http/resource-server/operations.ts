import type { Serve } from '../exchange.js'
import type { receivingRoutes, spendingRoutes } from '../routes.js'
import {
  completeIncomingPayment,
  createIncomingPayment,
  getIncomingPayment,
  type IncomingPaymentDependencies,
  listIncomingPayments,
} from './incoming-payment.js'
import {
  createOutgoingPayment,
  getOutgoingPayment,
  getOutgoingPaymentGrant,
  listOutgoingPayments,
  type OutgoingPaymentDependencies,
} from './outgoing-payment.js'
import { createQuote, getQuote, type QuoteDependencies } from './quote.js'

/** The operations of `receivingRoutes`: what the pipeline calls once it has matched the route. */
export function incomingPaymentOperations(deps: IncomingPaymentDependencies) {
  return {
    createIncomingPayment: createIncomingPayment(deps),
    listIncomingPayments: listIncomingPayments(deps),
    getIncomingPayment: getIncomingPayment(deps),
    completeIncomingPayment: completeIncomingPayment(deps),
  } satisfies Record<(typeof receivingRoutes)[number]['operation'], Serve>
}

export function spendingOperations(deps: OutgoingPaymentDependencies & QuoteDependencies) {
  return {
    createQuote: createQuote(deps),
    getQuote: getQuote(deps),
    createOutgoingPayment: createOutgoingPayment(deps),
    listOutgoingPayments: listOutgoingPayments(deps),
    getOutgoingPayment: getOutgoingPayment(deps),
    getOutgoingPaymentGrant: getOutgoingPaymentGrant(deps),
  } satisfies Record<(typeof spendingRoutes)[number]['operation'], Serve>
}
