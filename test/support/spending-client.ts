import type { SignOptions } from './sign.js'
import { createSpendingWorld, grantToPay, newQuote, quoteToken, usd } from './spending.js'
import {
  type Answer,
  resourceServer,
  type TestClient,
  type World,
  type WorldOptions,
} from './world.js'

/** A wallet, and a client instance that may pay 2,500 from it. */
export async function payingClient(options: WorldOptions = {}) {
  const world = createSpendingWorld(options)
  const client = world.client()
  return { world, client, ...(await grantToPay(world, client)) }
}

/** The URL of a quote that the client instance asked for. */
export async function quoteUrl(client: TestClient, asked: object = { debitAmount: usd(1000) }) {
  const { body } = await newQuote(client, await quoteToken(client), asked)
  return body.id as string
}

/** How a client signs that sends no nonce: the same request is the same bytes in the same second. */
export function withoutNonce(
  { clock }: World,
  { key }: Pick<TestClient, 'key'>,
): Partial<SignOptions> {
  const created = Math.floor(clock.now() / 1_000)
  return { parameters: [`keyid="${key.kid}"`, `created=${created}`] }
}

/** What the holder of a token is told of its grant's budgets. */
export async function spentUnder(client: TestClient, token: string) {
  const { body } = await client.getPayment(token, `${resourceServer}/outgoing-payment-grant`)
  return body
}

export const idOfPayment = ({ body }: Answer): string => body.id.slice(body.id.lastIndexOf('/') + 1)

/** Status and code of a refusal. */
export const errorOf = ({ status, body }: Answer) => [status, body.error?.code]
