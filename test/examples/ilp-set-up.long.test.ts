import { createServer, type Server } from 'node:http'
import express from 'express'
import { isFulfill } from 'ilp-packet'
import { afterEach, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { type Receiver, receiveOverIlp, sendOverIlp } from '../../examples/ilp/set-up.js'
import { sendOverHttp } from '../../packages/ilp/src/over-http.js'
import {
  type IlpHandler,
  readPrepare,
  readReply,
  rejectsOf,
} from '../../packages/ilp/src/packet.js'
import type { OutgoingPaymentEvent } from '../../src/entry-core.js'
import { type IlpPaymentMethod, ilpPaymentMethods } from '../../src/index.js'
import { listening, stopped } from '../support/hosts.js'
import { createReceivingWallet, ilpAddress } from '../support/ilp.js'

const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const servers: Server[] = []
afterEach(() => Promise.all(servers.splice(0).map(stopped)))

async function setUp() {
  const secret = new Uint8Array(32).fill(3)
  const paymentMethods = ilpPaymentMethods({ addressPrefix: ilpAddress, secret })
  const wallet = createReceivingWallet({ resources: { paymentMethods } })
  const details = await wallet.createPayment({ incomingAmount: usd('900') })
  const app = express()
  app.use('/ilp', toExpress(receiveOverIlp(wallet.resources, paymentMethods, 'secret')))
  const server = createServer(app)
  servers.push(server)
  const url = `http://localhost:${await listening(server)}/ilp`
  const method: IlpPaymentMethod = { type: 'ilp', ...details }
  const receiver: Receiver = { methods: [method], receivedAmount: usd('0') }
  return { wallet, details, receiver, send: sendOverHttp({ url, token: 'secret' }) }
}

function outgoing(more: Partial<OutgoingPaymentEvent> = {}): OutgoingPaymentEvent {
  return {
    type: 'outgoing-payment.created',
    at: 0,
    outgoingPaymentId: 'payment',
    walletAddress: 'https://wallet.example/alice',
    client: 'https://shop.example',
    grantId: 'grant',
    receiver: 'https://wallet.example/incoming-payments/1',
    debitAmount: usd('905'),
    receiveAmount: usd('900'),
    sentAmount: usd('0'),
    deliveredAmount: usd('0'),
    ...more,
  }
}

test('an outgoing payment completes the incoming payment that it pays', async () => {
  const { wallet, details, receiver, send } = await setUp()
  expect(await sendOverIlp(outgoing(), receiver, send)).toEqual({
    arrived: true,
    sentAmount: usd('900'),
    deliveredAmount: usd('900'),
  })
  expect(await wallet.payment(details)).toMatchObject({ received: '900', completed: true })
})

test('amounts that were already sent are not sent again', async () => {
  const { wallet, details, receiver, send } = await setUp()
  const before = { sentAmount: usd('401'), deliveredAmount: usd('400') }
  expect(await sendOverIlp(outgoing(before), receiver, send)).toEqual({
    arrived: true,
    sentAmount: usd('901'),
    deliveredAmount: usd('900'),
  })
  expect(await wallet.received(details)).toBe(500n)
})

test('a payment that does not arrive leaves the totals unchanged', async () => {
  const { wallet, details, receiver, send } = await setUp()
  await wallet.incomingPayments.complete(details.id)
  const before = { sentAmount: usd('401'), deliveredAmount: usd('400') }
  const result = await sendOverIlp(outgoing(before), receiver, send)
  expect(result).toEqual({ arrived: false, ...before })
})

test('a packet without a reply counts as sent, because the receiver may have it', async () => {
  const { wallet, details, receiver, send } = await setUp()
  const losing: IlpHandler = async (packet) => {
    const reply = await send(packet)
    const isMoney = readPrepare(packet)?.amount !== '0' && isFulfill(readReply(reply))
    return isMoney ? rejectsOf('')('R00', 'its reply is lost') : reply
  }
  const unknown = { arrived: false, sentAmount: usd('900'), deliveredAmount: usd('0') }
  expect(await sendOverIlp(outgoing(), receiver, losing)).toEqual(unknown)
  expect(await wallet.received(details)).toBe(900n)
})

test('an incoming payment without details cannot be paid', async () => {
  const { receiver, send } = await setUp()
  const closed = { ...receiver, methods: [] }
  await expect(sendOverIlp(outgoing(), closed, send)).rejects.toThrow('accepts no more funds')
})
