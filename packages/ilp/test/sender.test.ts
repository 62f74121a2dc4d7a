import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type IlpHandler, isFulfillable, pair, readPrepare, rejectsOf } from '../src/packet.js'
import { payOverIlp } from '../src/sender.js'
import { receivingWallet } from './claimed-receiver.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const usd = { assetCode: 'USD', assetScale: 2 }

test('a packet whose Fulfill comes after its expiry counts as unknown, because it has arrived', async () => {
  const wallet = receivingWallet()
  const details = await wallet.createPayment()
  const receive = wallet.receiver()
  const secret = Buffer.from(details.sharedSecret, 'base64url')
  let packets = 0
  /** The reply to the second packet is late, while that to the third is awaited. */
  const send: IlpHandler = async (bytes) => {
    const packet = readPrepare(bytes)
    if (packet === undefined) throw new Error('it is not a packet')
    const amount = BigInt(packet.amount)
    if (amount > 250n) return rejectsOf('')('F08', 'it is too large', pair(amount, 250n))
    const reply = await receive(bytes)
    if (!isFulfillable(packet, secret)) return reply
    const lateMs = [undefined, 10, 1_000][packets]
    packets += 1
    const waitMs = lateMs === undefined ? 0 : packet.expiresAt.getTime() - Date.now() + lateMs
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    return reply
  }
  let isOver = false
  const paying = payOverIlp({
    send,
    receiver: { ...details, asset: usd },
    amount: { deliver: 750n },
    maxSourceAmount: 750n,
  }).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await setImmediate()
    vi.advanceTimersByTime(5)
  }
  expect(packets).toBe(3)
  expect(await wallet.received(details)).toBe(750n)
  expect(await paying).toMatchObject({ ok: false, sent: 250n, unknown: 500n })
})
