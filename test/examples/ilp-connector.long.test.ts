import { createHash, randomBytes } from 'node:crypto'
import {
  deserializeIlpPrepare,
  type IlpPrepare,
  isReject,
  serializeIlpFulfill,
  serializeIlpPrepare,
} from 'ilp-packet'
import { describe, expect, test } from 'vitest'
import {
  type ConnectorOptions,
  createConnector,
  memoryBalance,
  type Peer,
} from '../../examples/ilp/connector.js'
import { type IlpHandler, rejectsOf } from '../../packages/ilp/src/packet.js'
import { startOfTests } from '../support/clock.js'
import { outcomeOf, replyOf } from '../support/ilp.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const eur = { assetCode: 'EUR', assetScale: 2 }
const fulfillment = randomBytes(32)
const executionCondition = createHash('sha256').update(fulfillment).digest()
const fulfilled = serializeIlpFulfill({ fulfillment, data: Buffer.from('reply') })

/** Fulfills packets whose conditions `another` made. */
const fulfilling: IlpHandler = async (bytes) => {
  const { data } = deserializeIlpPrepare(Buffer.from(bytes))
  return serializeIlpFulfill({ fulfillment: data, data: Buffer.alloc(0) })
}

/** A packet with a condition of its own. */
function another(): Partial<IlpPrepare> {
  const data = randomBytes(32)
  return { data, executionCondition: createHash('sha256').update(data).digest() }
}

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
    balance: memoryBalance(),
    countsRepeats: true,
    send: recording(ilpAddress, send),
  })
  const peers: readonly Peer[] = [
    { ...peer('test.alice'), ...more },
    peer('test.bob', usd, bob),
    peer('test.bob.savings'),
    peer('test.carol', eur),
  ]
  const balanceOf = async (address: string) =>
    peers.find(({ ilpAddress }) => ilpAddress === address)?.balance?.value()
  const connector = createConnector({
    ilpAddress: 'test.connector',
    peers,
    rateOf: (from, to) =>
      from.assetCode === to.assetCode
        ? { numerator: 1n, denominator: 1n }
        : { numerator: 9n, denominator: 10n },
    now: () => startOfTests,
    ...options,
  })
  const forward = async (prepare: Partial<IlpPrepare> = {}) =>
    connector.from('test.alice')(packet(prepare))
  return { connector, sent, forward, balanceOf, alice: peers[0]?.balance }
}

describe('a connector', () => {
  test('forwards a packet with an earlier expiry, and returns the reply', async () => {
    const { sent, forward, balanceOf } = setUp()
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
    expect(await balanceOf('test.alice')).toBe(100n)
    expect(await balanceOf('test.bob')).toBe(-100n)
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
    const { sent, forward, balanceOf } = setUp()
    await forward({ destination: 'test.carol.x', amount: '99' })
    expect(sent[0]?.prepare.amount).toBe('89')
    expect(await balanceOf('test.alice')).toBe(99n)
    expect(await balanceOf('test.carol')).toBe(-89n)
  })

  test.each<[string, string, Partial<IlpPrepare>, Partial<ConnectorOptions>?]>([
    ['has expired', 'R02', { expiresAt: new Date(startOfTests) }],
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
    const { sent, forward, balanceOf } = setUp(options)
    const reply = replyOf(await forward(prepare))
    expect(reply).toMatchObject({ code, triggeredBy: 'test.connector' })
    expect(sent).toEqual([])
    expect(await balanceOf('test.alice')).toBe(0n)
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
    const { forward, balanceOf } = setUp({}, { creditMax: 250n }, async (bytes) => {
      await held
      return fulfilling(bytes)
    })
    const pending = [forward(another()), forward(another())]
    expect(outcomeOf(await forward(another()))).toBe('T04')
    release()
    expect((await Promise.all(pending)).map(outcomeOf)).toEqual(['fulfill', 'fulfill'])
    expect(outcomeOf(await forward(another()))).toBe('T04')
    expect(await balanceOf('test.alice')).toBe(200n)
  })

  test('counts a packet that a peer repeats once, in both balances', async () => {
    const { forward, balanceOf, sent } = setUp()
    for (const _ of [1, 2]) expect(Buffer.from(await forward())).toEqual(fulfilled)
    expect(sent).toHaveLength(2)
    expect([await balanceOf('test.alice'), await balanceOf('test.bob')]).toEqual([100n, -100n])
    // At another peer, it is another packet: two peers cannot share one payment of the connector.
    await forward({ destination: 'test.carol.x' })
    expect([await balanceOf('test.alice'), await balanceOf('test.carol')]).toEqual([200n, -90n])
  })

  test('rejects a packet with R00 if it cannot be counted, and counts its repetition', async () => {
    let isDown = true
    const errors: unknown[] = []
    const { add, ...others } = memoryBalance()
    const balance = {
      ...others,
      add: async (...entry: Parameters<typeof add>) => {
        if (isDown) throw new Error('the database is down')
        return add(...entry)
      },
    }
    const onError = (error: unknown) => void errors.push(error)
    const { forward, balanceOf } = setUp({ onError }, { balance })
    expect(outcomeOf(await forward())).toBe('R00')
    expect(errors).toEqual([new Error('the database is down')])
    isDown = false
    expect(outcomeOf(await forward())).toBe('fulfill')
    expect([await balanceOf('test.alice'), await balanceOf('test.bob')]).toEqual([100n, -100n])
  })

  test('forwards packets of a peer again after it has settled what it owed', async () => {
    const { forward, balanceOf, alice } = setUp({}, { creditMax: 250n }, fulfilling)
    for (const expected of ['fulfill', 'fulfill', 'T04']) {
      expect(outcomeOf(await forward(another()))).toBe(expected)
    }
    expect(await alice?.add('settlement 1', -150n)).toEqual({ amount: -150n, isNew: true })
    expect(await alice?.add('settlement 1', -150n)).toEqual({ amount: -150n, isNew: false })
    expect(await alice?.add('settlement 1', -160n)).toEqual({ amount: -150n, isNew: false })
    expect(await balanceOf('test.alice')).toBe(50n)
    for (const expected of ['fulfill', 'fulfill', 'T04']) {
      expect(outcomeOf(await forward(another()))).toBe(expected)
    }
  })

  test.each<[string, string, IlpHandler]>([
    ['a reject', 'F06', async () => rejectsOf('test.bob')('F06', 'unexpected')],
    [
      'a fulfillment that does not match the condition',
      'F05',
      async () => serializeIlpFulfill({ fulfillment: randomBytes(32), data: Buffer.alloc(0) }),
    ],
  ])('does not change the balance for %s', async (_, code, bob) => {
    const { forward, balanceOf } = setUp({}, {}, bob)
    expect(outcomeOf(await forward())).toBe(code)
    expect(await balanceOf('test.alice')).toBe(0n)
    expect(await balanceOf('test.bob')).toBe(0n)
  })

  test.each<[string, string, IlpHandler]>([
    ['never replies', 'R00', () => new Promise(() => {})],
    ['did not get a reply itself', 'R00', async () => rejectsOf('test.bob')('R00', '')],
    ['fails', 'T00', async () => rejectsOf('test.bob')('T00', '')],
    ['replies with other bytes', 'T00', async () => Buffer.from('hello')],
    ['cannot be asked', 'R00', () => Promise.reject(new Error('no connection'))],
  ])('counts a packet whose outcome is unknown because the next node %s', async (_, code, bob) => {
    const { forward, balanceOf } = setUp({}, {}, bob)
    expect(outcomeOf(await forward({ expiresAt: new Date(startOfTests + 1_050) }))).toBe(code)
    expect([await balanceOf('test.alice'), await balanceOf('test.bob')]).toEqual([100n, -100n])
  })

  test.each<[string, Uint8Array, bigint]>([
    [
      'a reject, which takes it out of the balances',
      rejectsOf('test.bob')('F06', 'unexpected'),
      0n,
    ],
    ['a Fulfill', fulfilled, 100n],
  ])('hears a reply after a packet has expired: %s', async (_, late, owed) => {
    let reply = (_: Uint8Array) => {}
    const { forward, balanceOf } = setUp({}, {}, () => new Promise((resolve) => (reply = resolve)))
    expect(outcomeOf(await forward({ expiresAt: new Date(startOfTests + 1_050) }))).toBe('R00')
    expect(await balanceOf('test.alice')).toBe(100n)
    reply(late)
    await expect.poll(() => balanceOf('test.alice')).toBe(owed)
    expect(await balanceOf('test.bob')).toBe(-owed)
  })

  test('keeps the entry of a packet that was sent again, although one of both is rejected', async () => {
    const replies = [rejectsOf('test.bob')('R00', 'no reply'), rejectsOf('test.bob')('F06', 'no')]
    const { forward, balanceOf } = setUp({}, {}, async () => replies.shift() ?? fulfilled)
    for (const code of ['R00', 'F06', 'fulfill']) expect(outcomeOf(await forward())).toBe(code)
    expect([await balanceOf('test.alice'), await balanceOf('test.bob')]).toEqual([100n, -100n])
  })

  test('sends a packet again with the amount that it had, although the rate has changed', async () => {
    let numerator = 9n
    const rateOf = () => ({ numerator, denominator: 10n })
    const { forward, balanceOf, sent } = setUp({ rateOf })
    await forward()
    numerator = 8n
    expect(outcomeOf(await forward())).toBe('fulfill')
    expect(sent.map(({ prepare }) => prepare.amount)).toEqual(['90', '90'])
    expect([await balanceOf('test.alice'), await balanceOf('test.bob')]).toEqual([100n, -90n])
  })

  test('does not count a packet that the receiver cannot fulfill, nor one that its sender calls a probe', async () => {
    const isOpen = new Promise<Uint8Array>(() => {})
    const bob = { ilpAddress: 'test.bob', asset: usd, balance: memoryBalance() }
    const alice = { ilpAddress: 'test.alice', asset: usd, balance: memoryBalance() }
    const connector = createConnector({
      ilpAddress: 'test.connector',
      peers: [
        { ...alice, send: fulfilling },
        { ...bob, send: () => isOpen, canFulfill: async ({ data }) => data.length > 4 },
      ],
      rateOf: () => ({ numerator: 1n, denominator: 1n }),
      now: () => startOfTests,
    })
    const soon = { expiresAt: new Date(startOfTests + 1_050) }
    expect(outcomeOf(await connector.from('test.alice')(packet(soon)))).toBe('R00')
    const longer = { ...soon, data: Buffer.from('longer') }
    expect(outcomeOf(await connector.probesFrom('test.alice')(packet(longer)))).toBe('R00')
    expect([await alice.balance.value(), await bob.balance.value()]).toEqual([0n, 0n])
    expect(outcomeOf(await connector.from('test.alice')(packet(longer)))).toBe('R00')
    expect([await alice.balance.value(), await bob.balance.value()]).toEqual([100n, -100n])
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
