import { createServer } from 'node:http'
import express from 'express'
import { payOverIlp, sendOverHttp } from 'open-payments-ilp'
import { expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { receiveOverIlp } from '../../examples/ilp/set-up.js'
import { ilpPaymentMethods } from '../../src/index.js'
import { listening, stopped } from '../support/hosts.js'
import { createReceivingWallet, ilpAddress } from '../support/ilp.js'

const usd = { assetCode: 'USD', assetScale: 2 }

test('a payment over ILP completes the incoming payment that it pays', async () => {
  const secret = new Uint8Array(32).fill(3)
  const paymentMethods = ilpPaymentMethods({ addressPrefix: ilpAddress, secret })
  const wallet = createReceivingWallet({ resources: { paymentMethods } })
  const details = await wallet.createPayment({ incomingAmount: { value: '900', ...usd } })
  const app = express()
  app.use('/ilp', toExpress(receiveOverIlp(wallet.resources, paymentMethods, 'secret')))
  const server = createServer(app)
  const url = `http://localhost:${await listening(server)}/ilp`
  try {
    const paid = await payOverIlp({
      send: sendOverHttp({ url, token: 'secret' }),
      receiver: { ...details, asset: usd },
      amount: { deliver: 900n },
      maxSourceAmount: 905n,
    })
    expect(paid).toMatchObject({ ok: true, sent: 900n, delivered: 900n, unknown: 0n })
    expect(await wallet.payment(details)).toMatchObject({ received: '900', completed: true })
  } finally {
    await stopped(server)
  }
})
