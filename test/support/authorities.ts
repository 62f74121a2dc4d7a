import {
  type AccessItem,
  InvalidInputError,
  type OutgoingPaymentCreation,
} from 'open-payments-server'
import { type Refusal, resourceErrors } from '../../src/http/public-errors.js'
import { publicError } from '../../src/http/refusals.js'
import { failedDependency } from '../../src/service/failed-dependency.js'
import { ContentionError } from '../../src/service/store-errors.js'
import {
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from './spending.js'
import { type Answer, alice, type TestClient, type World } from './world.js'

/** What can allow a payment. A property of a payment holds for both. */
export const authorities = ['a client under a grant', 'the owner of the account'] as const

export type Authority = (typeof authorities)[number]

/** Whoever pays from Alice's account. The owner's calls are answered as the requests of a client are. */
export interface Payer {
  /** The members of views, events and questions that name the client and its grant. The owner has none. */
  readonly named: { readonly client?: string; readonly grantId?: string }
  /** The client with its grant. Absent for the owner. */
  readonly granted?: { readonly client: TestClient } & Awaited<ReturnType<typeof grantToPay>>
  /** Pays without a quote, to the shop by default. `key` is the idempotency key. Default: a new one. */
  pay(value: bigint | number, more?: object, key?: string): Promise<Answer>
  /** Requests a quote, for 1,000 by default. */
  quote(asked?: object): Promise<Answer>
  /** @param quoteId the `id` in the answer to the request of the quote. */
  payByQuote(quoteId: string, more?: object): Promise<Answer>
}

interface PayerOptions {
  /** The limit of the client's grant, or `null` for none. Default: 2,500. */
  readonly limit?: number | null
  /** The account of that grant. Default: Alice's. */
  readonly walletAddress?: string
  /** Members of every order of the owner. */
  readonly order?: object
  /** Default: a client that has sent no request. */
  readonly client?: TestClient
}

/** Returns who pays in a wallet: a client under a new grant, or the owner. */
export async function payerOf(
  world: World,
  authority: Authority,
  { limit = 2_500, walletAddress = alice, order = {}, client = world.client() }: PayerOptions = {},
): Promise<Payer> {
  return authority === 'the owner of the account'
    ? ownerIn(world, order)
    : clientIn(
        world,
        client,
        outgoingItem(limit === null ? undefined : { debitAmount: usd(limit) }, walletAddress),
      )
}

const newKey = () => crypto.randomUUID()

async function clientIn(world: World, client: TestClient, item: AccessItem): Promise<Payer> {
  const granted = await grantToPay(world, client, [item])
  const { token, grantId } = granted
  return {
    named: { client: String(client.client), grantId },
    granted: { client, ...granted },
    pay: (value, more, key = newKey()) => pay(client, token, value, more, withKey(key)),
    quote: async (asked = { debitAmount: usd(1_000) }) =>
      newQuote(client, await quoteToken(client), asked),
    payByQuote: (quoteId, more) => payByQuote(client, token, quoteId, more),
  }
}

/** @param order members of every order. */
function ownerIn({ resources, errors }: World, order: object): Payer {
  const { outgoingPayments, quotes } = resources

  /** Answers a call for the owner as the resource server answers the request of a client. */
  async function answered(work: () => Promise<RefusedCall | Done>): Promise<Answer> {
    const result = await work().catch((error: unknown) => thrown(error))
    if (result.ok) return { status: 201, headers: {}, body: result.body }
    const { refusal, details } = result
    const context = { errors: resourceErrors, operation: 'createOutgoingPayment' } as const
    const { status, ...error } = publicError(refusal as Refusal, context)
    return { status, headers: {}, body: { error: { ...error, ...(details && { details }) } } }
  }

  function thrown(error: unknown): RefusedCall {
    if (error instanceof InvalidInputError) return { ok: false, refusal: 'body_invalid' }
    if (error instanceof ContentionError) return { ok: false, refusal: 'busy' }
    errors.push(error)
    return { ok: false, refusal: failedDependency(error) ? 'busy' : 'internal' }
  }

  const ordered = (members: object) =>
    answered(async () => {
      const creation = { walletAddress: alice, ...order, ...members } as OutgoingPaymentCreation
      const result = await outgoingPayments.create(creation)
      return result.ok ? { ok: true, body: outgoingPayments.toResource(result.payment) } : result
    })

  return {
    named: {},
    pay(value, { incomingPayment: receiver = shopReceiver, ...more }: Asked = {}, key = newKey()) {
      return ordered({ receiver, debitAmount: usd(value), ...more, idempotencyKey: key })
    },
    quote: (asked = { debitAmount: usd(1_000) }) =>
      answered(async () => {
        const creation = { walletAddress: alice, receiver: shopReceiver, ...asked }
        const result = await quotes.create(creation)
        return result.ok
          ? { ok: true, body: { ...result.quote, id: result.quote.quoteId } }
          : result
      }),
    payByQuote: (quoteId, more) => ordered({ quoteId, ...more }),
  }
}

interface Done {
  readonly ok: true
  readonly body: object
}

interface RefusedCall {
  readonly ok: false
  readonly refusal: string
  readonly details?: object
}

interface Asked {
  readonly incomingPayment?: string
}
