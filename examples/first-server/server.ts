// #region first-server
import express from 'express'
import { createWallet, ilpPaymentMethods, memoryStore } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'

const port = Number(process.env['PORT'] ?? 3000)
const baseUrl = `http://localhost:${port}`
const accounts = [{ url: `${baseUrl}/alice`, assetCode: 'USD', assetScale: 2 }]

const wallet = createWallet({
  baseUrl, // grants at /auth, payments at /incoming-payments, accounts at their URLs
  consentUrl: `${baseUrl}/consent`,
  store: memoryStore(), // for a first try; PostgreSQL or your own database later
  // Your table of accounts.
  walletAddresses: { find: async (url) => accounts.find((each) => each.url === url) },
  paymentMethods: ilpPaymentMethods({
    addressPrefix: 'test.wallet',
    secret: crypto.getRandomValues(new Uint8Array(32)), // later: a key that you keep
  }),
  onRefusal: ({ refusal, reason }) => console.warn(refusal, reason), // for you only
})

const app = express() // your own routes come first, such as the consent page
app.use(toExpress(wallet.handle))
app.listen(port, () => console.log(`Serving ${accounts[0]?.url}`))
// #endregion first-server
