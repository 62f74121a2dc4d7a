import type { Amount, Handler, HttpResponse, IncomingPaymentServices } from '../../src/index.js'

/**
 * Stands for the rail on which funds arrive. A real wallet calls `receive` where it credits its account,
 * in the same transaction; nobody outside can reach that.
 */
export function ledger(payments: IncomingPaymentServices): Handler {
  return async ({ method, url, body }) => {
    if (url.split('?', 1)[0] !== '/ledger/transfers') return failure(404, 'not_found')
    if (method !== 'POST') return failure(405, 'method_not_allowed', { allow: 'POST' })
    const transfer = readTransfer(body)
    if (transfer === undefined) return failure(400, 'invalid_request')
    const paymentId = payments.idOf(transfer.incomingPayment)
    if (paymentId === undefined) return failure(404, 'payment_unknown')

    const { transferId, amount } = transfer
    const result = await payments.receive({ paymentId, transferId, amount })
    if (result.ok) return json(200, payments.toJSON(result.payment))
    return failure(result.refusal === 'payment_unknown' ? 404 : 409, result.refusal)
  }
}

interface ArrivingTransfer {
  readonly transferId: string
  readonly incomingPayment: string
  readonly amount: Amount
}

function readTransfer(body: Uint8Array): ArrivingTransfer | undefined {
  let value: Partial<ArrivingTransfer> | null
  try {
    value = JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
  const { transferId, incomingPayment, amount } = value ?? {}
  const complete =
    typeof transferId === 'string' &&
    transferId !== '' &&
    typeof incomingPayment === 'string' &&
    typeof amount?.value === 'string' &&
    typeof amount.assetCode === 'string' &&
    typeof amount.assetScale === 'number'
  return complete ? { transferId, incomingPayment, amount } : undefined
}

function failure(status: number, code: string, headers: Record<string, string> = {}): HttpResponse {
  const response = json(status, { error: { code } })
  return { ...response, headers: { ...response.headers, ...headers } }
}

function json(status: number, value: object): HttpResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(value) }
}
