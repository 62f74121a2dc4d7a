// #region servers
import express from 'express'
import {
  createAuthorizationServer,
  createResourceServer,
  createWalletAddressServer,
  ilpPaymentMethods,
  remoteClientKeys,
} from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
// Your own files: accounts, storage, keys, login and prices.
import { accounts, consentPage, market, paymentDetailsKey, signedInOwner, store } from './host.js'
import { quotesOf } from './payments.js'

const grantEndpoint = 'https://wallet.example/auth'
const resourceServer = 'https://wallet.example/op'

const auth = createAuthorizationServer({
  grantEndpoint, // exactly the authServer of your wallet addresses
  store, // five methods over your database
  consentUrl: 'https://wallet.example/consent',
  clientKeys: remoteClientKeys(), // fetches and caches {client}/jwks.json
})

const resources = createResourceServer({
  baseUrl: resourceServer,
  grantEndpoint,
  store,
  introspect: auth.introspect,
  walletAddresses: accounts, // your accounts, by URL
  paymentMethods: ilpPaymentMethods({
    addressPrefix: 'g.wallet.example',
    secret: paymentDetailsKey,
  }),
  pricing: quotesOf(market), // prices outgoing payments; without it they are not served
})

const wallets = createWalletAddressServer({
  baseUrl: 'https://wallet.example',
  grantEndpoint,
  resourceServer,
  walletAddresses: accounts,
})

export const app = express()
app.use('/auth', toExpress(auth.handle)) // before any body parser: signatures cover bytes
app.use('/op', toExpress(resources.handle))
// #endregion servers

// #region consent
app.get('/consent/:id', async (request, response) => {
  const interaction = await auth.interactions.get(request.params.id)
  if (interaction === undefined) response.status(404).send('This request does not exist.')
  else if (interaction.state !== 'pending') response.status(410).send('It is no longer open.')
  else response.send(consentPage(interaction)) // the client, the access and its limits
})

app.post('/consent/:id', express.urlencoded({ extended: false }), async (request, response) => {
  const owner = signedInOwner(request) // { resourceOwner, walletAddresses }
  const { id } = request.params
  const result =
    request.body.decision === 'approve'
      ? await auth.interactions.approve(id, owner)
      : await auth.interactions.deny(id, { resourceOwner: owner.resourceOwner })
  if (!result.ok) response.status(409).send('You cannot decide this.')
  else if (result.redirect === undefined) response.send('You can return to the app now.')
  else response.redirect(303, result.redirect)
})
// #endregion consent

// #region funds
export async function fundsArrived(ilpAddress: string, transferId: string, value: string) {
  const payment = await resources.incomingPayments.findByIlpAddress(ilpAddress)
  if (payment === undefined) return 'reject'
  const amount = { value, ...payment.asset }
  const result = await resources.incomingPayments.receive(payment.id, {
    transferId, // the same transfer counts once
    amount,
  })
  if (!result.ok) return 'reject'
  // A repeated report changes nothing: the account was credited the first time.
  return result.changed ? 'credit' : 'already credited'
}
// #endregion funds

// #region wallet-addresses
app.use(toExpress(wallets.handle)) // after your own routes: it serves every other path
// #endregion wallet-addresses
