import { createHash, randomBytes } from 'node:crypto'
import {
  deserializeIlpPrepare,
  type IlpPrepare,
  isReject,
  serializeIlpFulfill,
  serializeIlpPrepare,
} from 'ilp-packet'
import { describe, expect, test } from 'vitest'
import { type ConnectorOptions, createConnector, type Peer } from '../../examples/ilp/connector.js'
import { type IlpHandler, rejectsOf } from '../../examples/ilp/packet.js'
import { startOfTests } from '../support/clock.js'
import { outcomeOf, replyOf } from '../support/ilp.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const eur = { assetCode: 'EUR', assetScale: 2 }
const fulfillment = randomBytes(32)
const executionCondition = createHash('sha256').update(fulfillment).digest()
const fulfilled = serializeIlpFulfill({ fulfillment, data: Buffer.from('reply') })

function packet(more: Partial<IlpPrepare> = {}): Buffer {
  return serializeIlpPrepare({
    amount: '100',
    executionCondition,
    expiresAt: new Date(startOfTests + 20_000),
    destination: 'test.bob.payment',
    data: Buffer.from('data'),
    ...more,
  })
}

/** A connector between Alice, who sends, and Bob and other peers, who fulfill. */
function setUp(
  options: Partial<ConnectorOptions> = {},
  more: Partial<Peer> = {},
  bob: IlpHandler = async () => fulfilled,
) {
  const sent: { readonly to: string; readonly prepare: IlpPrepare }[] = []
  const recording =
    (to: string, send: IlpHandler): IlpHandler =>
    async (bytes) => {
      sent.push({ to, prepare: deserializeIlpPrepare(Buffer.from(bytes)) })
      return send(bytes)
    }
  const peer = (ilpAddress: string, asset = usd, send: IlpHandler = async () => fulfilled) => ({
    ilpAddress,
    asset,
    send: recording(ilpAddress, send),
  })
  const connector = createConnector({
    ilpAddress: 'test.connector',
    peers: [
      { ...peer('test.alice'), ...more },
      peer('test.bob', usd, bob),
      peer('test.bob.savings'),
      peer('test.carol', eur),
    ],
    rateOf: (from, to) =>
      from.assetCode === to.assetCode
        ? { numerator: 1n, denominator: 1n }
        : { numerator: 9n, denominator: 10n },
    now: () => startOfTests,
    ...options,
  })
  const forward = async (prepare: Partial<IlpPrepare> = {}) =>
    connector.from('test.alice')(packet(prepare))
  return { connector, sent, forward }
}

describe('a connector', () => {
  test('forwards a packet with an earlier expiry, and returns the reply', async () => {
    const { sent, forward, connector } = setUp()
    expect(Buffer.from(await forward())).toEqual(fulfilled)
    expect(sent).toEqual([
      {
        to: 'test.bob',
        prepare: {
          amount: '100',
          executionCondition,
          expiresAt: new Date(startOfTests + 19_000),
          destination: 'test.bob.payment',
          data: Buffer.from('data'),
        },
      },
    ])
    expect(connector.balanceOf('test.alice')).toBe(100n)
    expect(connector.balanceOf('test.bob')).toBe(-100n)
  })

  test('holds no packet for longer than 30 s', async () => {
    const { sent, forward } = setUp()
    await forward({ expiresAt: new Date(startOfTests + 3_600_000) })
    expect(sent[0]?.prepare.expiresAt).toEqual(new Date(startOfTests + 30_000))
  })

  test.each([
    ['test.bob', 'test.bob'],
    ['test.bob.payment.below', 'test.bob'],
    ['test.bob.savings', 'test.bob.savings'],
    ['test.bob.savings.payment', 'test.bob.savings'],
    ['test.bob.savings2', 'test.bob'],
    ['test.carol.x', 'test.carol'],
  ])('routes %s by the longest prefix, to %s', async (destination, to) => {
    const { sent, forward } = setUp()
    await forward({ destination })
    expect(sent.map((packet) => packet.to)).toEqual([to])
  })

  test('converts an amount and rounds it down', async () => {
    const { sent, forward, connector } = setUp()
    await forward({ destination: 'test.carol.x', amount: '99' })
    expect(sent[0]?.prepare.amount).toBe('89')
    expect(connector.balanceOf('test.alice')).toBe(99n)
    expect(connector.balanceOf('test.carol')).toBe(-89n)
  })

  test.each<[string, string, Partial<IlpPrepare>, Partial<ConnectorOptions>?]>([
    ['has expired', 'R00', { expiresAt: new Date(startOfTests) }],
    ['would expire before a reply', 'R02', { expiresAt: new Date(startOfTests + 1_000) }],
    ['has no route', 'F02', { destination: 'test.bobby.payment' }],
    ['would return to its sender', 'F02', { destination: 'test.alice.x' }],
    ['is in an asset that is not exchanged', 'F02', {}, { rateOf: () => undefined }],
    ['would be worth nothing', 'R01', { destination: 'test.carol', amount: '1' }],
    [
      'would exceed 64 bits',
      'F08',
      { amount: (2n ** 63n).toString() },
      { rateOf: () => ({ numerator: 2n, denominator: 1n }) },
    ],
  ])('rejects a packet that %s', async (_, code, prepare, options) => {
    const { sent, forward, connector } = setUp(options)
    const reply = replyOf(await forward(prepare))
    expect(reply).toMatchObject({ code, triggeredBy: 'test.connector' })
    expect(sent).toEqual([])
    expect(connector.balanceOf('test.alice')).toBe(0n)
  })

  test('reports the maximum amount of a packet', async () => {
    const { sent, forward } = setUp({}, { packetAmountMax: 99n })
    const reply = replyOf(await forward())
    if (!isReject(reply)) throw new Error('expected a reject')
    expect(reply.code).toBe('F08')
    expect(reply.data.readBigUInt64BE(0)).toBe(100n)
    expect(reply.data.readBigUInt64BE(8)).toBe(99n)
    expect(sent).toEqual([])
  })

  test('limits what a peer owes, including packets in flight, to its credit', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const { forward, connector } = setUp({}, { creditMax: 250n }, async () => {
      await held
      return fulfilled
    })
    const pending = [forward(), forward()]
    expect(outcomeOf(await forward())).toBe('T04')
    release()
    expect((await Promise.all(pending)).map(outcomeOf)).toEqual(['fulfill', 'fulfill'])
    expect(outcomeOf(await forward())).toBe('T04')
    expect(connector.balanceOf('test.alice')).toBe(200n)
  })

  test('forwards packets of a peer again after it has settled what it owed', async () => {
    const { forward, connector } = setUp({}, { creditMax: 250n })
    for (const expected of ['fulfill', 'fulfill', 'T04']) {
      expect(outcomeOf(await forward())).toBe(expected)
    }
    const settlement = { id: 'transfer-1', amount: 150n }
    connector.settle('test.alice', settlement)
    connector.settle('test.alice', settlement)
    expect(connector.balanceOf('test.alice')).toBe(50n)
    for (const expected of ['fulfill', 'fulfill', 'T04']) {
      expect(outcomeOf(await forward())).toBe(expected)
    }
    expect(() => connector.settle('test.nobody', settlement)).toThrow('no peer')
  })

  test.each<[string, string, IlpHandler]>([
    ['a reject', 'F06', async () => rejectsOf('test.bob')('F06', 'unexpected')],
    [
      'a fulfillment that does not match the condition',
      'F05',
      async () => serializeIlpFulfill({ fulfillment: randomBytes(32), data: Buffer.alloc(0) }),
    ],
    ['bytes that are not an ILP packet', 'T00', async () => Buffer.from('hello')],
  ])('does not change the balance for %s', async (_, code, bob) => {
    const { forward, connector } = setUp({}, {}, bob)
    expect(outcomeOf(await forward())).toBe(code)
    expect(connector.balanceOf('test.alice')).toBe(0n)
    expect(connector.balanceOf('test.bob')).toBe(0n)
  })

  test('does not change the balance for a packet that is fulfilled after its expiry', async () => {
    let now = startOfTests
    const { forward, connector } = setUp({ now: () => now }, {}, async () => {
      now += 20_000
      return fulfilled
    })
    expect(outcomeOf(await forward())).toBe('R00')
    expect(connector.balanceOf('test.bob')).toBe(0n)
  })

  test('rejects a packet if the next node does not reply in time', async () => {
    const { forward, connector } = setUp({}, {}, () => new Promise(() => {}))
    expect(outcomeOf(await forward({ expiresAt: new Date(startOfTests + 1_050) }))).toBe('R00')
    expect(connector.balanceOf('test.alice')).toBe(0n)
  })

  test('rejects bytes that are not a packet', async () => {
    const { connector } = setUp()
    expect(outcomeOf(await connector.from('test.alice')(Buffer.from('hello')))).toBe('F01')
  })

  test('has no handler for an unknown peer', () => {
    const { connector } = setUp()
    expect(() => connector.from('test.mallory')).toThrow('no peer has the address test.mallory')
  })
})
