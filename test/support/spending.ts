import type {
  AccessItem,
  Amount,
  Limits,
  PriceAnswer,
  PriceRequest,
  Pricing,
} from 'open-payments-server'
import { parseValue } from 'open-payments-server/core'
import type { SignOptions } from './sign.js'
import {
  alice,
  createWorld,
  interactionId,
  resourceServer,
  type TestClient,
  type World,
  type WorldOptions,
} from './world.js'

export const usd = (value: bigint | number | string): Amount => ({
  value: String(value),
  assetCode: 'USD',
  assetScale: 2,
})

export const eur = (value: bigint | number | string): Amount => ({
  ...usd(value),
  assetCode: 'EUR',
})

/** Incoming payments in another wallet: two in dollars, one in euros, and one that was removed. */
export const shopReceiver = 'https://bank.example/incoming-payments/usd-1'
export const otherReceiver = 'https://bank.example/incoming-payments/usd-2'
export const euroReceiver = 'https://bank.example/incoming-payments/eur-1'
export const goneReceiver = 'https://bank.example/incoming-payments/gone'

/** A dollar arrives as a dollar, or as half a euro. A request without an amount costs 10 dollars. */
export function listPrice({
  receiver,
  debitAmount,
  receiveAmount,
}: Omit<PriceRequest, 'account' | 'client' | 'method'>): PriceAnswer {
  if (receiver === goneReceiver) return { ok: false, refusal: 'receiver_invalid' }
  const [per, received] = receiver === euroReceiver ? [2n, eur] : [1n, usd]
  if (receiveAmount !== undefined) {
    return {
      ok: true,
      receiveAmount,
      debitAmount: usd((parseValue(receiveAmount.value) ?? 0n) * per),
    }
  }
  const debit = debitAmount ?? usd(1000)
  const arriving = (parseValue(debit.value) ?? 0n) / per
  return arriving === 0n
    ? { ok: false, refusal: 'amount_too_small', minDebitAmount: usd(per) }
    : { ok: true, debitAmount: debit, receiveAmount: received(arriving) }
}

export const priceList: Pricing = { price: async (request) => listPrice(request) }

/** Creates a wallet whose accounts can pay. */
export function createSpendingWorld(options: WorldOptions = {}) {
  return createWorld({ ...options, resources: { pricing: priceList, ...options.resources } })
}

export function outgoingItem(limits?: Limits, identifier = alice): AccessItem {
  const actions = ['create', 'read', 'list'] as const
  return { type: 'outgoing-payment', actions, identifier, ...(limits && { limits }) }
}

/** Requests a grant to pay, to which the owner of all accounts consents. Returns its id and token. */
export async function grantToPay(
  world: World,
  client: TestClient,
  access: readonly AccessItem[] = [outgoingItem({ debitAmount: usd(2500) })],
  narrowed?: readonly AccessItem[],
) {
  const requested = await client.request(access, { start: ['redirect'] })
  const identifiers = access.flatMap(({ identifier }) => identifier ?? [])
  const approval = {
    resourceOwner: 'alice',
    walletAddresses: [...new Set([alice, ...identifiers])],
    ...(narrowed && { access: narrowed }),
  }
  const id = interactionId(requested.body.interact.redirect)
  const approved = await world.auth.interactions.approve(id, approval)
  if (!approved.ok) throw new Error(approved.reason)
  world.clock.advance(5_000)
  const { body } = await client.continue(requested.body.continue)
  const [grantId = ''] = id.split('.')
  const { access_token: accessToken, continue: continuation } = body
  return { grantId, token: accessToken.value as string, accessToken, continuation }
}

/** Requests a token for quotes, which needs no consent. */
export async function quoteToken(client: TestClient): Promise<string> {
  const { body } = await client.request([{ type: 'quote', actions: ['create', 'read'] }])
  return body.access_token.value
}

export async function newQuote(client: TestClient, token: string, asked: object = {}) {
  const request = { walletAddress: alice, receiver: shopReceiver, method: 'ilp', ...asked }
  return client.post(`${resourceServer}/quotes`, request, token)
}

/** Pays to an incoming payment without a quote. */
export function pay(
  client: TestClient,
  token: string,
  value: bigint | number | string,
  more: object = {},
  sign: Partial<SignOptions> = {},
) {
  const body = {
    walletAddress: alice,
    incomingPayment: shopReceiver,
    debitAmount: usd(value),
    ...more,
  }
  return client.post(`${resourceServer}/outgoing-payments`, body, token, sign)
}

/** Pays with a quote. */
export function payByQuote(
  client: TestClient,
  token: string,
  quoteId: string,
  more: object = {},
  sign: Partial<SignOptions> = {},
) {
  const body = { walletAddress: alice, quoteId, ...more }
  return client.post(`${resourceServer}/outgoing-payments`, body, token, sign)
}

/** Options for a request with an idempotency key. */
export const withKey = (key: string): Partial<SignOptions> => ({
  headers: [['Idempotency-Key', key]],
})
