import type { Amount, Handler, ResourceServices } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import type { Rail } from '../ilp/rail.js'
import { failure, isJson, json } from './json.js'
import { applyReport, type RailReport } from './rail-reports.js'

/**
 * Represents the rail on which funds arrive and leave. A real wallet calls these services where it moves the
 * money, in the same transaction, and does not expose them.
 */
export function ledger(
  services: ResourceServices,
  rail?: Pick<Rail, 'balances' | 'settle'>,
): Handler {
  return async (request) => {
    const { method, url, body } = request
    const path = url.split('?', 1)[0] ?? ''
    if (path === '/ledger/peers' && rail !== undefined) {
      return method === 'GET'
        ? json(200, await rail.balances())
        : failure(405, 'method_not_allowed', { allow: 'GET' })
    }
    const [, paymentId, type] = outgoing.exec(path) ?? []
    const isSettlement = path === '/ledger/settlements' && rail !== undefined
    if (path !== '/ledger/transfers' && !isSettlement && paymentId === undefined) {
      return failure(404, 'not_found')
    }
    if (method !== 'POST') return failure(405, 'method_not_allowed', { allow: 'POST' })
    // Without it, a page that somebody on this machine opens could move money, also with an empty body.
    if (!isJson(request)) return failure(415, 'unsupported_media_type')
    if (isSettlement) return settle(rail, body)
    return paymentId === undefined
      ? arrive(services, body)
      : leave(services, paymentId, type === 'fail' ? type : 'report-sent', body)
  }
}

const outgoing = /^\/ledger\/outgoing-payments\/([\w-]+)\/(settle|fail)$/

/** Records a transfer between this wallet and a peer, in the asset of the balance. Repeats count nothing. */
async function settle(
  rail: Pick<Rail, 'balances' | 'settle'>,
  body: Uint8Array,
): Promise<HttpResponse> {
  const { transferId: id, peer, value, ...rest } = readObject(body) ?? {}
  const isValid =
    typeof id === 'string' &&
    id !== '' &&
    id.length <= 255 &&
    typeof peer === 'string' &&
    typeof value === 'string' &&
    /^-?\d{1,19}$/.test(value) &&
    Object.keys(rest).length === 0
  if (!isValid) return failure(400, 'invalid_request')
  const outcome = await rail.settle(peer, { id, amount: BigInt(value) })
  if (outcome === 'settled') return json(200, await rail.balances())
  return failure(outcome === 'peer_unknown' ? 404 : 409, outcome)
}

async function arrive(
  { incomingPayments }: ResourceServices,
  body: Uint8Array,
): Promise<HttpResponse> {
  const transfer = readTransfer(body)
  if (transfer === undefined) return failure(400, 'invalid_request')
  const paymentId = incomingPayments.idOf(transfer.incomingPayment)
  if (paymentId === undefined) return failure(404, 'payment_unknown')

  const { transferId, amount } = transfer
  const result = await incomingPayments.receive(paymentId, { transferId, amount })
  if (result.ok) return json(200, incomingPayments.toResource(result.payment))
  return failure(result.refusal === 'payment_unknown' ? 404 : 409, result.refusal)
}

async function leave(
  services: ResourceServices,
  paymentId: string,
  type: RailReport['type'],
  body: Uint8Array,
): Promise<HttpResponse> {
  const said = body.length === 0 ? undefined : readReport(type, body)
  if (body.length > 0 && said === undefined) return failure(400, 'invalid_request')
  const silent = type === 'fail' ? { type } : undefined
  const result = await applyReport(services, paymentId, said ?? silent)
  if (result === undefined) return failure(404, 'payment_unknown')
  return result.ok
    ? json(200, services.outgoingPayments.toResource(result.payment))
    : failure(409, result.refusal)
}

interface ArrivingTransfer {
  readonly transferId: string
  readonly incomingPayment: string
  readonly amount: Amount
}

function readTransfer(body: Uint8Array): ArrivingTransfer | undefined {
  const { transferId, incomingPayment, amount } = readObject(body) ?? {}
  const complete =
    typeof transferId === 'string' &&
    transferId !== '' &&
    typeof incomingPayment === 'string' &&
    isAmount(amount)
  return complete ? { transferId, incomingPayment, amount } : undefined
}

/** Rejects unknown and misplaced members, so that a misspelled member is not ignored. */
function readReport(type: RailReport['type'], body: Uint8Array): RailReport | undefined {
  const value = readObject(body)
  if (value === undefined) return undefined
  const { sentAmount, deliveredAmount, final, reason, ...rest } = value
  if (Object.keys(rest).length > 0) return undefined
  if (sentAmount !== undefined && !isAmount(sentAmount)) return undefined
  if (deliveredAmount !== undefined && !isAmount(deliveredAmount)) return undefined
  const totals = { ...(sentAmount && { sentAmount }), ...(deliveredAmount && { deliveredAmount }) }
  if (type === 'report-sent' && reason === undefined) {
    if (final === undefined) return { type, ...totals }
    return typeof final === 'boolean' ? { type, ...totals, final } : undefined
  }
  if (type === 'fail' && final === undefined) {
    if (reason === undefined) return { type, ...totals }
    return typeof reason === 'string' ? { type, ...totals, reason } : undefined
  }
  return undefined
}

function readObject(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(new TextDecoder().decode(body))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isAmount(value: unknown): value is Amount {
  if (typeof value !== 'object' || value === null) return false
  const { value: digits, assetCode, assetScale } = value as Partial<Amount>
  return (
    typeof digits === 'string' && typeof assetCode === 'string' && typeof assetScale === 'number'
  )
}
