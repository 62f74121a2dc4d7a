// #region servers
import express from 'express'
import { createWallet, ilpPaymentMethods } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
// Your own files.
import {
  accounts, // by wallet address
  consentPage,
  market, // prices
  paymentDetailsKey,
  signedInOwner,
  store,
} from './host.js'
import { leadBack } from './middleware.js'
import { quotesOf } from './payments.js'

const wallet = createWallet({
  baseUrl: 'https://wallet.example', // the origin of your wallet addresses
  consentUrl: 'https://wallet.example/consent',
  store, // five methods over your database
  walletAddresses: accounts, // your accounts, by URL
  paymentMethods: ilpPaymentMethods({
    addressPrefix: 'g.wallet.example',
    secret: paymentDetailsKey,
  }),
  pricing: quotesOf(market), // prices outgoing payments; without it they are not served
})

export const app = express()
// #endregion servers

// #region consent
app.get('/consent/:id', async (request, response) => {
  const interaction = await wallet.auth.interactions.get(request.params.id)
  if (interaction === undefined) response.status(404).send('Unknown request.')
  else if (interaction.status !== 'pending') response.status(410).send('Not open.')
  else response.send(consentPage(interaction)) // the client, the access and its limits
})

const form = express.urlencoded({ extended: false })
app.post('/consent/:id', form, async (request, response) => {
  const owner = signedInOwner(request) // { resourceOwner, walletAddresses }
  const { id } = request.params
  const result =
    request.body.decision === 'approve'
      ? await wallet.auth.interactions.approve(id, owner)
      : await wallet.auth.interactions.deny(id, { resourceOwner: owner.resourceOwner })
  if (!result.ok) response.status(409).send('You cannot decide this.')
  else if (result.redirect === undefined) response.send('Return to the app.')
  else leadBack(response, result.redirect) // 303, or a link
})
// #endregion consent

// #region mount
app.use(toExpress(wallet.handle)) // after your own routes: it serves every other path
// #endregion mount
