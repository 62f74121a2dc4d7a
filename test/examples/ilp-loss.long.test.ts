import fc from 'fast-check'
import { deserializeIlpPrepare, isFulfill } from 'ilp-packet'
import { expect, test } from 'vitest'
import { createConnector, memoryBalance } from '../../examples/ilp/connector.js'
import { type IlpHandler, rejectsOf } from '../../packages/ilp/src/packet.js'
import { payOverIlp } from '../../packages/ilp/src/sender.js'
import {
  createReceivingWallet,
  type Details,
  ilpAddress,
  replyOf,
  streamRequest,
} from '../support/ilp.js'
import { runs } from '../support/runs.js'

const usd = { assetCode: 'USD', assetScale: 2 }

/** What happens to a packet between the connector and the receiver. */
type Fate = 'arrives' | 'arrives-twice' | 'arrives-late-too' | 'is-lost' | 'reply-is-lost'

const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>('arrives') },
  {
    weight: 4,
    arbitrary: fc.constantFrom<Fate>(
      'arrives-twice',
      'arrives-late-too',
      'is-lost',
      'reply-is-lost',
    ),
  },
)

/** A connection that treats packets with money as listed, and reliably afterwards. */
function unreliable(receive: IlpHandler, fates: readonly Fate[], details: Details) {
  const remaining = [...fates]
  const late: Uint8Array[] = []
  // Like a sender over HTTP that could not connect, and one that connected but got no reply.
  const reject = rejectsOf('')
  const line: IlpHandler = async (packet) => {
    const carriesMoney = (await streamRequest(details, packet)).prepareAmount.greaterThan(0)
    switch ((carriesMoney ? remaining.shift() : undefined) ?? 'arrives') {
      case 'arrives':
        return receive(packet)
      case 'arrives-twice': {
        const [, reply] = await Promise.all([receive(packet), receive(packet)])
        return reply
      }
      case 'arrives-late-too':
        late.push(packet)
        return receive(packet)
      case 'is-lost':
        return reject('T01', 'lost')
      case 'reply-is-lost':
        await receive(packet)
        return reject('R00', 'no reply')
    }
  }
  return { line, late }
}

/** A receiver that records the amounts of the packets that it fulfilled, each once. */
function noting(receive: IlpHandler) {
  const fulfilled = new Map<string, bigint>()
  const handle: IlpHandler = async (packet) => {
    const reply = await receive(packet)
    const { executionCondition, amount } = deserializeIlpPrepare(Buffer.from(packet))
    if (isFulfill(replyOf(reply))) fulfilled.set(executionCondition.toString('hex'), BigInt(amount))
    return reply
  }
  return { handle, sum: () => [...fulfilled.values()].reduce((sum, amount) => sum + amount, 0n) }
}

test('credits exactly what was fulfilled, and the sender reports no more, for all losses and repeats', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { maxLength: 30 }),
      fc.bigInt({ min: 1n, max: 2_000n }),
      fc.boolean(),
      async (fates, amount, exact) => {
        const wallet = createReceivingWallet()
        const incomingAmount = { value: amount.toString(), ...usd }
        const details = await wallet.createPayment(exact ? { incomingAmount } : {})
        const receiver = noting((packet) => wallet.receiver()(packet))
        const { line, late } = unreliable(receiver.handle, fates, details)
        const balance = memoryBalance()
        const connector = createConnector({
          ilpAddress: 'test.connector',
          peers: [
            {
              ilpAddress: 'test.sender',
              asset: usd,
              balance,
              send: line,
              packetAmountMax: 300n,
            },
            { ilpAddress, asset: usd, send: line },
          ],
          rateOf: () => ({ numerator: 1n, denominator: 1n }),
        })
        const result = await payOverIlp({
          send: connector.from('test.sender'),
          receiver: { ...details, asset: usd },
          amount: exact ? { deliver: amount } : { debit: amount },
          maxSourceAmount: amount,
        })
        const credited = await wallet.received(details)
        expect(credited).toBe(receiver.sum())
        expect(result.delivered).toBeLessThanOrEqual(credited)
        expect(result.sent).toBe(result.delivered)
        // What the receiver may have counts as sent.
        expect(credited).toBeLessThanOrEqual(result.sent + result.unknown)
        expect(result.sent + result.unknown).toBeLessThanOrEqual(amount)
        expect(await balance.value()).toBe(result.sent + result.unknown)
        if (result.ok) expect(result.delivered).toBe(amount)
        if (!fates.includes('reply-is-lost')) {
          expect(result.delivered).toBe(credited)
        }

        for (const packet of late) await receiver.handle(packet)
        expect(await wallet.received(details)).toBe(credited)
        expect(receiver.sum()).toBe(credited)
      },
    ),
    {
      numRuns: runs(60),
      examples: [
        [['arrives-twice', 'arrives-late-too', 'is-lost', 'arrives'], 1_000n, true],
        [['arrives', 'arrives', 'reply-is-lost'], 1_500n, false],
      ],
    },
  )
})
