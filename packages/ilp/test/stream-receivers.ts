import { StreamServer as CurrentServer } from '@interledger/stream-receiver'
import {
  deserializeIlpPrepare,
  type IlpPrepare,
  type IlpReply,
  serializeIlpReply,
} from 'ilp-packet'
import type { IlpPaymentMethod } from 'open-payments-server'
import type { StreamReceivers } from 'open-payments-test-support/ilp'
import { StreamServer as FormerServer } from 'stream-receiver-0.2.2'
import { ours } from './claimed-receiver.js'

/** What the published receivers have in common. */
interface Published {
  generateCredentials(options: {
    readonly paymentTag: string
    readonly asset?: { readonly code: string; readonly scale: number }
  }): { readonly ilpAddress: string; readonly sharedSecret: Buffer }
  // biome-ignore lint/suspicious/noConfusingVoidType: as published
  decodePaymentTag(ilpAddress: string): string | void
  createReply(prepare: IlpPrepare): IlpReply | { accept(): IlpReply; finalDecline(): IlpReply }
}

type Create = (options: { serverSecret: Buffer; serverAddress: string }) => Published

/** A published receiver with a wallet's incoming payments. It tells its asset or not. */
function published(create: Create, tellsAsset: boolean): StreamReceivers {
  const servers = new Map<string, Published>()
  return {
    paymentMethods({ addressPrefix, secret }) {
      const serverSecret = Buffer.from(secret as Uint8Array)
      const server = create({ serverSecret, serverAddress: addressPrefix })
      servers.set(addressPrefix, server)
      // Its credentials are random, and a payment shows the same ones each time.
      const details = new Map<string, IlpPaymentMethod>()
      return {
        async detailsOf({ paymentId, asset: { assetCode: code, assetScale: scale } }) {
          const told = tellsAsset ? { asset: { code, scale } } : {}
          const made = server.generateCredentials({ paymentTag: paymentId, ...told })
          const { ilpAddress } = made
          const sharedSecret = made.sharedSecret.toString('base64url')
          const method = details.get(paymentId) ?? { type: 'ilp', ilpAddress, sharedSecret }
          details.set(paymentId, method)
          return [method]
        },
        paymentIdOf: (ilpAddress) => server.decodePaymentTag(ilpAddress) ?? undefined,
        credentialsOf: () => Promise.reject(new Error('the receiver has its own')),
      }
    },
    receiver({ ilpAddress, incomingPayments }) {
      return async (packet) => {
        const prepare = deserializeIlpPrepare(Buffer.from(packet))
        const server = servers.get(ilpAddress)
        if (server === undefined) throw new Error(`no receiver has the address ${ilpAddress}`)
        const reply = server.createReply(prepare)
        if (!('accept' in reply)) return serializeIlpReply(reply)
        const id = server.decodePaymentTag(prepare.destination) ?? ''
        const payment = await incomingPayments.get(id)
        if (payment === undefined) return serializeIlpReply(reply.finalDecline())
        const received = await incomingPayments.receive(id, {
          transferId: prepare.executionCondition.toString('base64url'),
          amount: { ...payment.receivedAmount, value: prepare.amount },
        })
        return serializeIlpReply(received.ok ? reply.accept() : reply.finalDecline())
      }
    },
  }
}

const former: Create = (options) => new FormerServer(options)
const current: Create = (options) => new CurrentServer(options)

/** Every kind of receiver that pays out to a wallet: ours, and what the reference server runs and ran. */
export const kindsOfReceivers: readonly (readonly [string, StreamReceivers])[] = [
  ['ours', ours],
  ['stream-receiver 0.2.2, which answers F99', published(former, true)],
  ['stream-receiver 0.2.2, which does not tell its asset', published(former, false)],
  ['stream-receiver 0.3.3-alpha.4, which answers F05 and F04', published(current, true)],
  ['stream-receiver 0.3.3-alpha.4, which does not tell its asset', published(current, false)],
]
