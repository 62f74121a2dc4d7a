// #region pay
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAuthenticatedClient } from '@interledger/open-payments'

const sandbox = process.env['SANDBOX'] ?? 'http://localhost:4100/sandbox'
const { accounts } = await (await fetch(sandbox)).json()
const client = await createAuthenticatedClient({
  walletAddressUrl: accounts.app.walletAddress,
  keyId: accounts.app.keyId,
  privateKey: Buffer.from(accounts.app.privateKeyPem),
})
const sender = await client.walletAddress.get({ url: accounts.alice.walletAddress })
const receiver = await client.walletAddress.get({ url: accounts.dana.walletAddress })

function grantFor({ authServer: url }, item, more = {}) {
  return client.grant.request({ url }, { access_token: { access: [item] }, ...more })
}

// Dana asks for 25 dollars.
const actions = ['create', 'read']
const receiving = await grantFor(receiver, { type: 'incoming-payment', actions })
const invoice = await client.incomingPayment.create(
  { url: receiver.resourceServer, accessToken: receiving.access_token.value },
  {
    walletAddress: receiver.id,
    incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
  },
)

// Alice's wallet names the price.
const quoting = await grantFor(sender, { type: 'quote', actions })
const quote = await client.quote.create(
  { url: sender.resourceServer, accessToken: quoting.access_token.value },
  { walletAddress: sender.id, receiver: invoice.id, method: 'ilp' },
)

// Alice consents: with --approve, her page redirects to the client at once.
const [method, uri, nonce] = ['redirect', 'http://localhost:3000/', randomUUID()]
const pending = await grantFor(
  sender,
  { type: 'outgoing-payment', actions, identifier: sender.id },
  { interact: { start: ['redirect'], finish: { method, uri, nonce } } },
)
const page = await fetch(pending.interact.redirect, { redirect: 'manual' })
const finish = new URL(page.headers.get('location'))
// The hash proves that the answer is to this request. authServer is as published.
const reference = finish.searchParams.get('interact_ref')
const hashed = [nonce, pending.interact.finish, reference, sender.authServer].join('\n')
const hash = createHash('sha256').update(hashed).digest('base64')
if (finish.searchParams.get('hash') !== hash) throw new Error('the hash is wrong')
const paying = await client.grant.continue(
  { url: pending.continue.uri, accessToken: pending.continue.access_token.value },
  { interact_ref: reference },
)
await client.outgoingPayment.create(
  { url: sender.resourceServer, accessToken: paying.access_token.value },
  { walletAddress: sender.id, quoteId: quote.id },
)

let paid = invoice
while (!paid.completed) {
  await sleep(100)
  const where = { url: invoice.id, accessToken: receiving.access_token.value }
  paid = await client.incomingPayment.get(where)
}
console.log('Dana has received', paid.receivedAmount.value)
// #endregion pay
