import { createHash, createHmac } from 'node:crypto'
import type {
  DeliveredEvent,
  IncomingPaymentServices,
  OutgoingPaymentServices,
} from 'open-payments-server'
import type { WebhookFormat } from './format.js'

export interface RafikiOptions {
  /** The services of the resource server, which know the payments of the events. */
  readonly payments: {
    readonly incomingPayments: Pick<IncomingPaymentServices, 'get'>
    readonly outgoingPayments: Pick<OutgoingPaymentServices, 'get'>
  }
  /** Resolves to the id that the wallet address has in Rafiki. Default: to its URL. */
  readonly walletAddressId?: (url: string) => Promise<string>
}

type EventType = DeliveredEvent['type']
type IncomingEvent = Extract<DeliveredEvent, { readonly incomingPaymentId: string }>
type OutgoingEvent = Extract<DeliveredEvent, { readonly outgoingPaymentId: string }>

/** The event types of Rafiki, by those of the library that mean the same. */
const rafikiTypes: { readonly [Type in EventType]?: string } = {
  'incoming-payment.created': 'incoming_payment.created',
  'incoming-payment.completed': 'incoming_payment.completed',
  'incoming-payment.expired': 'incoming_payment.expired',
  'outgoing-payment.created': 'outgoing_payment.created',
  'outgoing-payment.completed': 'outgoing_payment.completed',
  'outgoing-payment.failed': 'outgoing_payment.failed',
}

/** The state of an outgoing payment in Rafiki after an event. */
const rafikiStates: { readonly [Type in EventType]?: string } = {
  'outgoing-payment.created': 'FUNDING',
  'outgoing-payment.completed': 'COMPLETED',
  'outgoing-payment.failed': 'FAILED',
}

/**
 * Writes events as Rafiki does: `{ id, type, data }`, and a signature in `Rafiki-Signature`. The body is sent in the
 * canonical form that is signed, so that a receiver may verify the received bytes or the parsed body.
 */
export function rafikiWebhooks(secret: string, options: RafikiOptions): WebhookFormat {
  if (secret === '') throw new TypeError('secret: must not be empty')
  return async (event, now) => {
    const type = rafikiTypes[event.type]
    const data = type === undefined ? undefined : await dataOf(event, options)
    if (data === undefined) return undefined
    const body = canonicalize({ id: uuidOf(event.id), type, data })
    return { headers: { 'rafiki-signature': rafikiSignature(body, secret, now) }, body }
  }
}

/** Returns the value of `Rafiki-Signature` for a canonical body. */
export function rafikiSignature(canonicalBody: string, secret: string, now: Date): string {
  const timestamp = Math.floor(now.getTime() / 1000)
  const digest = createHmac('sha256', secret).update(`${timestamp}.${canonicalBody}`).digest('hex')
  return `t=${timestamp}, v1=${digest}`
}

/**
 * Returns the canonical form of JSON: no white space, and members in the order of their UTF-16 code units (RFC 8785).
 */
export function canonicalize(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  const written = members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalize(member)}`)
  return `{${written.join(',')}}`
}

function dataOf(event: DeliveredEvent, options: RafikiOptions) {
  if ('incomingPaymentId' in event) return incomingData(event, options)
  return 'outgoingPaymentId' in event ? outgoingData(event, options) : undefined
}

/** Rafiki reports the end of an incoming payment only if it received funds, which are then to be withdrawn. */
async function incomingData(event: IncomingEvent, options: RafikiOptions) {
  const { type, walletAddress, receivedAmount, incomingAmount } = event
  if (type !== 'incoming-payment.created' && receivedAmount.value === '0') return undefined
  const payment = await options.payments.incomingPayments.get(event.incomingPaymentId)
  if (payment === undefined) return undefined
  return {
    id: payment.paymentId,
    ...(await walletAddressOf(walletAddress, options)),
    ...(event.client !== undefined && { client: event.client }),
    completed: type === 'incoming-payment.completed',
    receivedAmount,
    ...(incomingAmount && { incomingAmount }),
    ...(payment.metadata && { metadata: payment.metadata }),
    createdAt: iso(payment.createdAt),
    updatedAt: iso(event.at),
    expiresAt: iso(payment.expiresAt),
  }
}

async function outgoingData(event: OutgoingEvent, options: RafikiOptions) {
  const { debitAmount, receiveAmount, sentAmount } = event
  const payment = await options.payments.outgoingPayments.get(event.outgoingPaymentId)
  if (payment === undefined) return undefined
  return {
    id: payment.paymentId,
    ...(await walletAddressOf(event.walletAddress, options)),
    client: event.client,
    grantId: event.grantId,
    state: rafikiStates[event.type],
    receiver: event.receiver,
    debitAmount,
    receiveAmount,
    sentAmount,
    stateAttempts: 0,
    balance: '0', // there is no liquidity to withdraw: the money is on your accounts
    ...(payment.metadata && { metadata: payment.metadata }),
    ...(payment.failure !== undefined && { error: payment.failure }),
    createdAt: iso(payment.createdAt),
    updatedAt: iso(event.at),
  }
}

async function walletAddressOf(url: string, { walletAddressId }: RafikiOptions) {
  return { walletAddressId: (await walletAddressId?.(url)) ?? url }
}

function iso(at: number): string {
  return new Date(at).toISOString()
}

/** Returns a UUID that is the same for every delivery of an event (RFC 9562 section 5.8). */
function uuidOf(eventId: string): string {
  const hash = createHash('sha256').update(eventId).digest('hex')
  const variant = '89ab'[Number.parseInt(hash.slice(16, 17), 16) % 4]
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`]
  return [...parts, `${variant}${hash.slice(17, 20)}`, hash.slice(20, 32)].join('-')
}
