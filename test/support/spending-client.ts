import type { SignOptions } from './sign.js'
import { createSpendingWorld, grantToPay, newQuote, quoteToken, usd } from './spending.js'
import {
  type Answer,
  resourceServer,
  type TestClient,
  type World,
  type WorldOptions,
} from './world.js'

/** Creates a wallet, and a client that may pay 2,500 from it. */
export async function payingClient(options: WorldOptions = {}) {
  const world = createSpendingWorld(options)
  const client = world.client()
  return { world, client, ...(await grantToPay(world, client)) }
}

/** Requests a quote, and returns its URL. */
export async function quoteUrl(client: TestClient, asked: object = { debitAmount: usd(1000) }) {
  const { body } = await newQuote(client, await quoteToken(client), asked)
  return body.id as string
}

/** Options for signing without a nonce: equal requests in one second have equal bytes. */
export function withoutNonce(
  { clock }: World,
  { key }: Pick<TestClient, 'key'>,
): Partial<SignOptions> {
  const created = Math.floor(clock.now() / 1_000)
  return { parameters: [`keyid="${key.kid}"`, `created=${created}`] }
}

/** Reads the spent amounts that the holder of a token receives. */
export async function spentUnder(client: TestClient, token: string) {
  const { body } = await client.getPayment(token, `${resourceServer}/outgoing-payment-grant`)
  return body
}

export const idOfPayment = ({ body }: Answer): string => body.id.slice(body.id.lastIndexOf('/') + 1)

/** Returns the status and code of a refusal. */
export const errorOf = ({ status, body }: Answer) => [status, body.error?.code]
