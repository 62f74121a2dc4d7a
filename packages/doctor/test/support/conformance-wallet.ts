import { decide, openShop } from 'open-payments-test-support/examples/demo'
import type { Consent, ServerConformanceOptions } from '../../src/index.js'

/** Approves or denies on the consent page of a created wallet. */
const consent: Consent = async (url, decision) => {
  const { location } = await decide(url, decision)
  return location ?? ''
}

/** Opens a shop that acts as the client of the suite. */
export async function conformanceShop() {
  const shop = await openShop()
  const { walletAddress, keyId, privateKey, finishUri } = shop
  const client = { walletAddress, keyId, privateKey }
  return {
    ...shop,
    /** All options but the wallet addresses. */
    settings: {
      client,
      finishUri,
      consent,
    } satisfies Partial<ServerConformanceOptions>,
  }
}
