import type { Request } from 'express'
import { type InteractionView, memoryStore, type WalletAddresses } from '../../src/index.js'

/** Stands for the payment backend that the library is imported into. */
export const store = memoryStore()

export const accounts: WalletAddresses = {
  find: async (url) =>
    url === 'https://wallet.example/alice'
      ? { url, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }
      : undefined,
}

export const paymentDetailsKey = new Uint8Array(32)

/** Whoever is signed in, and which wallet addresses are theirs. */
export function signedInOwner(_request: Request) {
  return { resourceOwner: 'alice', walletAddresses: ['https://wallet.example/alice'] }
}

export function consentPage({ client, access }: InteractionView): string {
  return `<h1>${client} asks for</h1><pre>${JSON.stringify(access)}</pre>
    <form method="post"><button name="decision" value="approve">Approve</button></form>`
}
