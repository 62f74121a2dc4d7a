import fc from 'fast-check'
import {
  createAuthorizationServer,
  createResourceServer,
  type MayPay,
  memoryStore,
  type Pricing,
} from 'open-payments-server'
import {
  type SpendingPorts,
  type SpendingScene,
  spendingProperty,
} from 'open-payments-server-testing'

const usd = { assetCode: 'USD', assetScale: 2 }
const eur = { assetCode: 'EUR', assetScale: 2 }
const alice = { url: 'https://wallet.example/alice', ...usd }
const invoice = 'https://bank.example/incoming-payments/1'

// #region own-servers
/** An account, an incoming payment that it can pay, and its price. */
const scene: SpendingScene = {
  walletAddress: alice.url,
  asset: usd,
  receivers: [{ url: invoice, asset: eur, unitPrice: 2n }],
}

/** Searches for ways to pay more than a grant allows on a wallet's own servers. */
export function serversProperty(say: HostsSay = { pricing, mayPay }) {
  return spendingProperty(fc, { servers: (ports) => createServers(ports, say), scene })
}

/** Creates the servers as in production, except for the clock and the keys. */
function createServers({ clock, clientKeys, failing }: SpendingPorts, say: HostsSay) {
  const store = failing(memoryStore())
  const onError = () => undefined // the store fails as the history says
  const grantEndpoint = 'https://wallet.example/auth'
  const baseUrl = 'https://wallet.example'
  const authorizationServer = createAuthorizationServer({
    store,
    clock,
    onError,
    clientKeys,
    grantEndpoint,
    consentUrl: 'https://wallet.example/consent',
  })
  const resourceServer = createResourceServer({
    store,
    clock,
    onError,
    baseUrl,
    grants: authorizationServer,
    walletAddresses: { find: async (url) => (url === alice.url ? alice : undefined) },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: say.pricing,
    policy: { mayPay: say.mayPay },
  })
  return { authorizationServer, resourceServer, grantEndpoint, baseUrl }
}
// #endregion own-servers

/** The ports of the wallet that have a say in payments. */
export interface HostsSay {
  readonly pricing: Pricing
  readonly mayPay: MayPay
}

/** A euro costs two dollars. */
export const pricing: Pricing = {
  async price({ debitAmount }) {
    if (debitAmount === undefined) return { ok: false, refusal: 'amount_missing' }
    const received = BigInt(debitAmount.value) / 2n
    if (received === 0n) return { ok: false, refusal: 'amount_too_small' }
    return { ok: true, debitAmount, receiveAmount: { value: `${received}`, ...eur } }
  },
}

/** Stands for the hold on the account, which has enough for every payment of the search. */
export const mayPay: MayPay = () => ({ ok: true })
