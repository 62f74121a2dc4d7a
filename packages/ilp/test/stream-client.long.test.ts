import { deserializeIlpPrepare, serializeIlpFulfill } from 'ilp-packet'
import { createConnection } from 'ilp-protocol-stream'
import { createNetwork, createReceivingWallet } from 'open-payments-test-support/ilp'
import { afterAll, expect, test } from 'vitest'
import type { IlpHandler } from '../src/packet.js'

const network = createNetwork()
afterAll(network.close)

/** A plugin for `ilp-protocol-stream`, which asks its connector for its own address and asset. */
function pluginOf(send: IlpHandler) {
  const address = Buffer.from('test.sender')
  const code = Buffer.from('USD')
  const data = Buffer.from([address.length, ...address, 2, code.length, ...code])
  const fulfillment = Buffer.alloc(32)
  return {
    connect: async () => {},
    disconnect: async () => {},
    isConnected: () => true,
    async sendData(packet: Buffer): Promise<Buffer> {
      const { destination } = deserializeIlpPrepare(packet)
      return destination === 'peer.config'
        ? serializeIlpFulfill({ fulfillment, data })
        : Buffer.from(await send(packet))
    },
    registerDataHandler: () => {},
    deregisterDataHandler: () => {},
  }
}

test('a payment from another STREAM client also arrives', async () => {
  const wallet = createReceivingWallet()
  const incomingAmount = { value: '900', assetCode: 'USD', assetScale: 2 }
  const details = await wallet.createPayment({ incomingAmount })
  const send = await network.serve(wallet.receiver())
  const connection = await createConnection({
    plugin: pluginOf(send),
    destinationAccount: details.ilpAddress,
    sharedSecret: Buffer.from(details.sharedSecret, 'base64url'),
    slippage: 0,
  })
  expect(connection.destinationAssetCode).toBe('USD')
  expect(connection.destinationAssetScale).toBe(2)
  const stream = connection.createStream()
  await stream.sendTotal(900)
  expect(await wallet.payment(details)).toMatchObject({ received: '900', completed: true })
  await connection.destroy()
})
