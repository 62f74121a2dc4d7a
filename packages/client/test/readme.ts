// #region receiver
import { createClient } from 'open-payments-client'

const client = createClient({
  walletAddress: 'https://wallet.example/operator', // publishes the key
  keyId: 'operator-1',
  privateKey: JSON.parse(process.env['CLIENT_KEY'] ?? ''),
})

/** Creates an incoming payment at the wallet of a supplier, and returns its URL. */
export async function askSupplier(invoice: string): Promise<string> {
  const created = await client.createReceiver({
    walletAddress: '$bank.example/supplier',
    incomingAmount: { value: '2500', assetCode: 'EUR', assetScale: 2 },
    expiresAt: Date.now() + 3_600_000,
    metadata: { invoice },
  })
  if (created.ok) return created.url
  // After `outcome_unknown`, an empty incoming payment may exist.
  throw new Error(`${created.refusal}: ${created.reason}`)
}
// #endregion receiver
