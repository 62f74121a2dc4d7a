import { deserializeIlpPrepare, serializeIlpFulfill } from 'ilp-packet'
import { createConnection } from 'ilp-protocol-stream'
import type { MayReceive } from 'open-payments-server'
import { createNetwork } from 'open-payments-test-support/ilp'
import { afterAll, expect, test } from 'vitest'
import type { IlpHandler } from '../src/packet.js'
import { receivingWallet } from './claimed-receiver.js'

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

/** Lets the first packets of each payment wait for a review. */
function reviewing(packets: number): MayReceive {
  const seen = new Map<string, number>()
  return ({ type, incomingPaymentId: id }) => {
    if (type === 'creation') return { ok: true }
    const count = (seen.get(id) ?? 0) + 1
    seen.set(id, count)
    const retryAt = Date.now() + 60_000
    return count > packets ? { ok: true } : { ok: false, refusal: 'review_required', retryAt }
  }
}

test.each<readonly [what: string, policy: { readonly mayReceive?: MayReceive }]>([
  ['arrives', {}],
  ['arrives once the host has ended its review', { mayReceive: reviewing(3) }],
])('a payment from another STREAM client also %s', async (_, policy) => {
  const wallet = receivingWallet({ resources: { policy } })
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
