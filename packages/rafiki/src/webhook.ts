import type {
  Amount,
  DeliveredEvent,
  IncomingPaymentServices,
  OutgoingPaymentServices,
  OutgoingPaymentView,
} from 'open-payments-server'
import { uuidOf } from './signature.js'

/** A webhook of Rafiki. */
export interface RafikiWebhook {
  /** A UUID, the same for every delivery. */
  readonly id: string
  readonly type: RafikiWebhookType
  readonly data: IncomingPaymentData | OutgoingPaymentData
}

/** The types of webhooks that are sent. */
export type RafikiWebhookType =
  | 'incoming_payment.created'
  | 'incoming_payment.completed'
  | 'incoming_payment.expired'
  | 'outgoing_payment.created'
  | 'outgoing_payment.completed'
  | 'outgoing_payment.failed'
  | 'outgoing_payment.funded'
  | 'outgoing_payment.cancelled'

/** The data of an incoming payment; times are in ISO 8601. */
export interface IncomingPaymentData {
  readonly id: string
  readonly walletAddressId: string
  readonly client?: string
  readonly completed: boolean
  /** What it has received so far, in the asset of the wallet address. */
  readonly receivedAmount: Amount
  /** The amount to receive, in the asset of the wallet address; absent if any amount is accepted. */
  readonly incomingAmount?: Amount
  readonly metadata?: object
  readonly createdAt: string
  readonly updatedAt: string
  readonly expiresAt: string
}

/** The data of an outgoing payment; times are in ISO 8601. */
export interface OutgoingPaymentData {
  readonly id: string
  readonly walletAddressId: string
  readonly client?: string
  /** The id of the grant in the library. */
  readonly grantId?: string
  readonly state: 'FUNDING' | 'SENDING' | 'COMPLETED' | 'FAILED' | 'CANCELLED'
  readonly receiver: string
  /** What the payment may debit in all, your fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What is to arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** What the payment has debited so far, in the asset of the account. */
  readonly sentAmount: Amount
  /** Always 0: the library does not send the money, and so does not try again. */
  readonly stateAttempts: number
  /** Always 0: there is no liquidity to withdraw, because the money is on your accounts. */
  readonly balance: string
  readonly error?: string
  readonly metadata?: object
  readonly cardDetails?: Pick<CardPayment, 'requestId' | 'data' | 'initiatedAt'>
  readonly createdAt: string
  readonly updatedAt: string
}

/** A payment with a card, as the card service of Rafiki asked for it. */
export interface CardPayment {
  /** The request of the card service that waits for `outgoing_payment.funded` or `outgoing_payment.cancelled`. */
  readonly requestId: string
  readonly data: object
  /** In ISO 8601. */
  readonly initiatedAt: string
  /** Why you cancelled it, for the card service. Default: `invalid_request`. */
  readonly failureReason?: 'invalid_signature' | 'invalid_request'
}

/** What a webhook says beyond its event. */
export interface WebhookSources {
  /** The services of the resource server, which know the payments of the events. */
  readonly payments: {
    readonly incomingPayments: Pick<IncomingPaymentServices, 'get'>
    readonly outgoingPayments: Pick<OutgoingPaymentServices, 'get'>
  }
  /** Resolves to the id that the wallet address has in Rafiki. Default: to its URL. */
  readonly walletAddressId?: (url: string) => Promise<string>
  /** Resolves to the card data of a payment, or to `undefined` for a payment without a card. */
  readonly cardOf?: (payment: OutgoingPaymentView) => Promise<CardPayment | undefined>
}

/** Who receives a webhook: the account servicing entity, or the card service. */
export type Recipient = 'account servicing entity' | 'card service'

type EventType = DeliveredEvent['type']
type IncomingEvent = Extract<DeliveredEvent, { readonly incomingPaymentId: string }>
type OutgoingEvent = Extract<DeliveredEvent, { readonly outgoingPaymentId: string }>

/** The types for the account servicing entity, by those of the library. */
const entityTypes: { readonly [Type in EventType]?: RafikiWebhookType } = {
  'incoming-payment.created': 'incoming_payment.created',
  'incoming-payment.completed': 'incoming_payment.completed',
  'incoming-payment.expired': 'incoming_payment.expired',
  'outgoing-payment.created': 'outgoing_payment.created',
  'outgoing-payment.completed': 'outgoing_payment.completed',
  'outgoing-payment.failed': 'outgoing_payment.failed',
}

const states: { readonly [Type in RafikiWebhookType]?: OutgoingPaymentData['state'] } = {
  'outgoing_payment.created': 'FUNDING',
  'outgoing_payment.completed': 'COMPLETED',
  'outgoing_payment.failed': 'FAILED',
  'outgoing_payment.funded': 'SENDING',
  'outgoing_payment.cancelled': 'CANCELLED',
}

/**
 * Returns what Rafiki sends to a recipient for an event of the library, or `undefined` if it sends nothing. Of each
 * payment, the account servicing entity gets at most one webhook that ends it. The card service gets one webhook of
 * each payment with a card, `outgoing_payment.funded` or `outgoing_payment.cancelled`.
 *
 * @example
 * ```ts
 * import { consumeEvents } from 'open-payments-server'
 * import { webhookOf } from 'open-payments-rafiki'
 *
 * const { resources } = wallet
 * consumeEvents([resources.events], async (event) => {
 *   const webhook = await webhookOf(event, 'account servicing entity', { payments: resources })
 *   if (webhook !== undefined) console.log(webhook.type, webhook.data.id)
 * })
 * ```
 */
export async function webhookOf(
  event: DeliveredEvent,
  recipient: Recipient,
  sources: WebhookSources,
): Promise<RafikiWebhook | undefined> {
  const isForEntity = recipient === 'account servicing entity'
  const type = isForEntity ? entityTypes[event.type] : cardType(event)
  if (type === undefined) return undefined
  const data =
    'incomingPaymentId' in event
      ? await incomingData(event, sources)
      : await outgoingData(event as OutgoingEvent, type, sources)
  if (data === undefined) return undefined
  if (!isForEntity && !('cardDetails' in data)) return undefined
  return { id: uuidOf(isForEntity ? event.id : `${event.id} ${recipient}`), type, data }
}

function cardType(event: DeliveredEvent): RafikiWebhookType | undefined {
  if (event.type === 'outgoing-payment.begun') return 'outgoing_payment.funded'
  return event.type === 'outgoing-payment.failed' && event.begun === false
    ? 'outgoing_payment.cancelled'
    : undefined
}

/** Rafiki reports the end of an incoming payment only if it received funds, which are then to be withdrawn. */
async function incomingData(
  event: IncomingEvent,
  sources: WebhookSources,
): Promise<IncomingPaymentData | undefined> {
  const { type, walletAddress, receivedAmount, incomingAmount } = event
  if (type !== 'incoming-payment.created' && receivedAmount.value === '0') return undefined
  const payment = await sources.payments.incomingPayments.get(event.incomingPaymentId)
  if (payment === undefined) return undefined
  return {
    id: payment.paymentId,
    walletAddressId: await walletAddressIdOf(walletAddress, sources),
    ...(event.client !== undefined && { client: event.client }),
    completed: type === 'incoming-payment.completed',
    receivedAmount,
    ...(incomingAmount !== undefined && { incomingAmount }),
    ...(payment.metadata !== undefined && { metadata: payment.metadata }),
    createdAt: iso(payment.createdAt),
    updatedAt: iso(event.at),
    expiresAt: iso(payment.expiresAt),
  }
}

async function outgoingData(
  event: OutgoingEvent,
  type: RafikiWebhookType,
  sources: WebhookSources,
): Promise<OutgoingPaymentData | undefined> {
  const { client, grantId, receiver, debitAmount, receiveAmount, sentAmount } = event
  const payment = await sources.payments.outgoingPayments.get(event.outgoingPaymentId)
  if (payment === undefined) return undefined
  const card = await sources.cardOf?.(payment)
  const metadata = metadataOf(payment, type, card)
  return {
    id: payment.paymentId,
    walletAddressId: await walletAddressIdOf(event.walletAddress, sources),
    ...(client !== undefined && { client }),
    ...(grantId !== undefined && { grantId }),
    state: states[type] ?? 'FUNDING',
    receiver,
    debitAmount,
    receiveAmount,
    sentAmount,
    stateAttempts: 0,
    balance: '0',
    ...(metadata !== undefined && { metadata }),
    ...(event.type === 'outgoing-payment.failed' &&
      payment.failure !== undefined && { error: payment.failure }),
    ...(card !== undefined && { cardDetails: cardDetailsOf(card) }),
    createdAt: iso(payment.createdAt),
    updatedAt: iso(event.at),
  }
}

/** Rafiki adds the reasons of a cancellation to the metadata of the client. */
function metadataOf(
  { metadata, publicReason }: OutgoingPaymentView,
  type: RafikiWebhookType,
  card: CardPayment | undefined,
): object | undefined {
  if (type !== 'outgoing_payment.cancelled' && type !== 'outgoing_payment.failed') return metadata
  const reasons = {
    ...(publicReason !== undefined && { cancellationReason: publicReason }),
    ...(type === 'outgoing_payment.cancelled' && {
      cardPaymentFailureReason: card?.failureReason ?? 'invalid_request',
    }),
  }
  return Object.keys(reasons).length === 0 ? metadata : { ...metadata, ...reasons }
}

function cardDetailsOf({ requestId, data, initiatedAt }: CardPayment) {
  return { requestId, data, initiatedAt }
}

async function walletAddressIdOf(url: string, { walletAddressId }: WebhookSources) {
  return (await walletAddressId?.(url)) ?? url
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
