import { totalsOf } from 'open-payments-server/attempts'
import { isLong } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import {
  memorySendingBook,
  type PaymentSender,
  type PaymentSenderOptions,
  type SendingInDoubt,
} from '../src/index.js'
import { readReply } from '../src/packet.js'
import { createLink, type Fate, type Setting, useSkippingClock } from './paying-wallet.js'
import { booksIn, cent, usd } from './receiving-wallet.js'

useSkippingClock()

const open = (more: Partial<Setting> = {}) =>
  createLink({
    here: booksIn(),
    there: booksIn(),
    receiver: 'USD',
    isOurs: true,
    amount: 1_000n,
    ...more,
  })

async function listOf(sender: PaymentSender): Promise<readonly SendingInDoubt[]> {
  const listed: SendingInDoubt[] = []
  for await (const each of sender.inDoubt()) listed.push(each)
  return listed
}

/** Lets the payment end, in new processes, while the link works again. */
async function finish(
  link: Awaited<ReturnType<typeof open>>,
  waits = [1_000, 5_000, 45_000, 45_000],
) {
  for (const wait of [...waits, ...Array.from({ length: 12 }, () => 3_600_000)]) {
    if (await link.isOver()) break
    await link.process([]).run()
    await link.advance(wait)
  }
  return link.state()
}

describe('a payment to another wallet', () => {
  test('is sent in packets, and leaves nothing in doubt', async () => {
    const link = await open()
    await link.process([]).run()
    expect(await link.state()).toMatchObject({
      state: 'completed',
      debited: 1_000n,
      delivered: 1_000n,
      arrived: 1_000n,
      owing: 1_000n * cent,
      owed: 1_000n * cent,
      difference: 0n,
    })
  })

  test('is not complete before all of it has arrived, although a part has the whole price', async () => {
    // 250 of 251 cents cost 232 euro cents, rounded up to 233, as all of them do.
    const link = await open({ payer: 'EUR', amount: 251n })
    const killed: Fate = { how: 'its sender is killed before it leaves' }
    await link.process([{ how: 'arrives' }, killed]).run()
    expect(await link.state()).toMatchObject({ state: 'begun', arrived: 250n })
    expect(await finish(link)).toMatchObject({ state: 'completed', debited: 233n, arrived: 251n })
  })

  test.each([
    ['USD', 'USD'],
    ['USD', 'EUR'],
    ['EUR', 'EUR'],
    ['EUR', 'USD'],
  ] as const)(
    'from %s to %s brings exactly what was quoted, to an open receiver and to an invoice',
    async (payer, receiver) => {
      for (const amount of isLong ? [1n, 99n, 345n, 926n, 1_234n, 2_777n] : [926n]) {
        for (const isInvoice of isLong ? [false, true] : [payer === 'USD']) {
          let most = 0n
          const mistake = ({ sendings }: PaymentSenderOptions): Partial<PaymentSenderOptions> => ({
            sendings: {
              ...sendings,
              write(id, writer, sending, isListed) {
                const { proven, byWord, inDoubt, free } = totalsOf(sending.settlement)
                const may = proven + byWord + inDoubt + free
                if (may > most) most = may
                return sendings.write(id, writer, sending, isListed)
              },
            },
          })
          const link = await open({ payer, receiver, amount, isInvoice, mistake })
          await link.process([]).run()
          const end = { state: 'completed', arrived: amount }
          expect(await link.state(), `${amount}`).toMatchObject(end)
          expect(most, 'no more may arrive than was quoted').toBe(amount)
        }
      }
    },
  )
})

test.each([
  [926n, 5n],
  [1_852n, 1n],
])('%i arrive also at a peer whose rate is %i ten-thousandths less', async (amount, worse) => {
  const link = await open({ isOurs: false, receiver: 'EUR', amount, worse })
  await link.process([]).run()
  expect(await link.state()).toMatchObject({ state: 'completed', arrived: amount, inDoubt: 0n })
})

test.each([40n, 500n])(
  'packets to a peer whose rate is %i ten-thousandths less cost at most a hundredth more than the quote',
  async (worse) => {
    const link = await open({ isOurs: false, receiver: 'EUR', amount: 926n, worse })
    const end = await finish(link)
    // 1,001 cents are quoted. Only what arrived is debited.
    expect(end.owing).toBeLessThanOrEqual((1_001n * cent * 101n) / 100n)
    expect(end.debited).toBe((end.arrived * 1_001n + 925n) / 926n)
    expect(end.arrived).toBeLessThanOrEqual(926n)
  },
)

/** The cases of `npm test`: a payment takes half a second, because the STREAM sender paces its packets. */
const first = /^(?:one|the sender killed before its|forwarded and answered with 503)/

const ok: Fate = { how: 'arrives' }
const statuses = [503, 429, 408, 404, 502]
const faults: Readonly<Record<string, readonly Fate[]>> = {
  'one request lost': [ok, { how: 'is lost' }],
  'three requests lost': [ok, { how: 'is lost' }, { how: 'is lost' }, { how: 'is lost' }],
  'one reply lost': [ok, { how: 'its reply is lost' }],
  'the sender killed before its packet leaves': [
    ok,
    { how: 'its sender is killed before it leaves' },
  ],
  'the sender killed before the reply': [ok, { how: 'its sender is killed before its reply' }],
  ...Object.fromEntries(
    statuses.flatMap((status) => [
      [
        `forwarded and answered with ${status}`,
        [ok, { how: 'is answered by a proxy', status, forwards: true } as const],
      ],
      [
        `not forwarded and answered with ${status}`,
        [ok, { how: 'is answered by a proxy', status, forwards: false } as const],
      ],
    ]),
  ),
}

describe.each([
  ['ours', true],
  ['another one, which closes no packets', false],
])('a payment to a wallet that is %s', (_, isOurs) => {
  test.each(
    Object.entries(faults)
      .flatMap(([name, fates]) =>
        [false, true].map((isInvoice) => [name, isInvoice, fates] as const),
      )
      .filter(([name, isInvoice]) => isLong || (!isInvoice && first.test(name))),
  )('with %s (invoice: %s) arrives once, and is debited once', async (_, isInvoice, fates) => {
    const link = await open({ isOurs, isInvoice })
    await link.process([...fates]).run()
    await link.advance(1_000)
    const end = await finish(link)
    expect(end).toMatchObject({ state: 'completed', debited: 1_000n, arrived: 1_000n, inDoubt: 0n })
    expect(end.owing).toBe(end.owed)
    // What a peer of ours has closed is listed until its statement agrees.
    if (isOurs) expect(end.difference).toBe(end.denied * cent)
  })

  test('is listed if its receiver can never be read', async () => {
    const link = await open({ isOurs })
    const onFate = (how: string) => void (how === 'is lost' && link.beUnreadable(1_000))
    await link.process([ok, { how: 'is lost' }], onFate).run()
    const end = await finish(link)
    expect(end.state).toBe('failed')
    expect(end.inDoubt).toBeGreaterThan(0n)
    expect(end.debited - end.arrived).toBe(end.inDoubt)
    expect(end.recordedDoubt).toBe(end.inDoubt)
    expect(end.owing - end.owed).toBe(end.difference)
    // An operator compares the books, and decides.
    const { sender } = link.process([])
    const decision = { what: 'never', who: 'ada' } as const
    expect(await sender.decide(link.id, decision)).toMatchObject({ ok: true, changed: true })
    const decided = await link.state()
    expect([decided.inDoubt, decided.owing - decided.owed]).toEqual([0n, 0n])
  })
})

describe('a packet that is late', () => {
  test.each([
    [15_000, 0],
    [31_000, 4_000],
  ])('by %i ms, at a receiver that is %i ms behind, is not sent again', async (lateMs, skewMs) => {
    const link = await open({ isOurs: false, skewMs })
    await link.process([ok, { how: 'is late', lateMs }]).run()
    const end = await finish(link, [5_000, 5_000, 20_500, 45_000, 45_000])
    expect(end).toMatchObject({ state: 'completed', debited: 1_000n, arrived: 1_000n })
    expect(end.owing).toBe(end.owed)
  })

  test('is refused by a wallet that has closed it', async () => {
    const link = await open()
    await link.process([ok, { how: 'is late', lateMs: 15_000 }]).run()
    const end = await finish(link, [5_000, 20_500])
    expect(end).toMatchObject({ state: 'completed', debited: 1_000n, arrived: 1_000n })
    expect([end.owing, end.denied]).toEqual([end.owed, 250n])
  })
})

describe('a receiver', () => {
  test('that another payer pays meanwhile costs the payer at most what is listed', async () => {
    const link = await open({ isOurs: false })
    await link.process([ok, { how: 'is lost' }]).run()
    await link.payByOther(250n)
    const end = await finish(link)
    expect(end.debited - end.arrived).toBe(250n)
    expect([end.byWord, end.inDoubt]).toEqual([250n, 0n])
    expect(end.owing - end.owed).toBe(end.difference)
  })

  test('that withholds its replies and denies what it has gets at most what is trusted, and a window', async () => {
    const link = await open({ isOurs: false, trustMax: 250n })
    link.lie()
    const fates = (): Fate[] => Array.from({ length: 60 }, () => ({ how: 'its reply is lost' }))
    for (let attempt = 0; attempt < 20 && !(await link.isOver()); attempt++) {
      await link.process(fates()).run()
      await link.advance(45_000)
    }
    const end = await link.state()
    expect(end.state).toBe('failed')
    expect(end.arrived).toBeGreaterThan(250n)
    expect(end.arrived).toBeLessThanOrEqual(250n + 1_000n)
    expect(end.arrived - end.debited).toBe(end.denied)
    expect(end.owed - end.owing).toBe(end.difference)
  })
})

describe('a request that is repeated on its way', () => {
  const twice: Fate = { how: 'arrives twice' }

  test('to a wallet that counts each is listed by what the receiver has in the end', async () => {
    const link = await open({ isOurs: false })
    await link.process([ok, twice]).run()
    const end = await link.state()
    expect(end).toMatchObject({ state: 'completed', debited: 1_000n, arrived: 1_250n })
    expect(end.owed - end.owing).toBe(250n * cent)
    expect(end.difference).toBe(250n * cent)
    const { sender } = link.process([])
    const [listed] = await listOf(sender)
    expect(listed).toMatchObject({ denied: 0n, repeated: 250n * cent })
    await sender.decide(link.id, { what: 'corrected', who: 'ada' })
    expect(await listOf(sender)).toEqual([])
  })

  test('is not listed if the receiver cannot be read in the end, and the payment ends', async () => {
    let reads = 0
    const mistake = ({ receivers }: PaymentSenderOptions): Partial<PaymentSenderOptions> => ({
      receivers: async (url) => {
        reads += 1
        // The first two are of its details, and of what it wants.
        if (reads > 2) throw new Error('its wallet is away')
        return receivers(url)
      },
    })
    const link = await open({ isOurs: false, mistake })
    await link.process([ok, twice]).run()
    expect(await link.state()).toMatchObject({ state: 'completed', arrived: 1_250n })
    expect([reads, await listOf(link.process([]).sender)]).toEqual([3, []])
  })

  test('to one of ours counts once', async () => {
    const link = await open()
    await link.process([ok, twice]).run()
    expect(await link.state()).toMatchObject({ arrived: 1_000n, difference: 0n })
    expect(await listOf(link.process([]).sender)).toEqual([])
  })
})

describe('a receiver that acknowledges more than it got', () => {
  test.each([
    ['what is missing', 750n],
    ['more than was ordered', 2n ** 63n],
  ])('loses what it claims to have, which is listed: %s', async (_, by) => {
    const link = await open({ isOurs: false })
    await link.process([{ how: 'is overstated', by }]).run()
    const end = await finish(link)
    expect(end).toMatchObject({ state: 'completed', debited: 1_000n, arrived: 250n })
    expect(end).toMatchObject({ byWord: 750n, difference: 0n, denied: 0n })
    // Its packet has a proof, so the books do not differ.
    expect(end.owing).toBe(end.owed)
  })

  test.each(['arrived', 'never'] as const)('is listed until an operator says: %s', async (what) => {
    const link = await open({ isOurs: false })
    await link.process([{ how: 'is overstated', by: 750n }]).run()
    const { sender } = link.process([])
    const decision = { what, who: 'ada' } as const
    expect(await sender.decide(link.id, decision)).toMatchObject({ ok: true, changed: true })
    const end = await link.state()
    expect(end).toMatchObject({ byWord: 0n, difference: 0n, owing: end.arrived * cent })
    // The payer was debited what the receiver claimed.
    expect(end.undebited).toBe(what === 'never' ? end.arrived - end.debited : 0n)
  })

  test('cannot hide a packet that may still arrive', async () => {
    const link = await open({ isOurs: false })
    await link.process([{ how: 'is overstated', by: 100n }, { how: 'its reply is lost' }]).run()
    const end = await finish(link)
    expect(end).toMatchObject({ state: 'completed', debited: 1_000n })
    expect(end.debited - end.arrived).toBeLessThanOrEqual(end.byWord)
    expect(end.arrived).toBeLessThanOrEqual(end.debited)
    expect(end.owing).toBe(end.owed)
  })

  test('of less than a hundredth in another currency has the better rate of its peer, which is not listed', async () => {
    const link = await open({ isOurs: false, receiver: 'EUR', amount: 926n })
    await link.process([{ how: 'is overstated', by: 2n }]).run()
    expect(await finish(link)).toMatchObject({ state: 'completed', arrived: 924n, byWord: 0n })
    const other = await open({ isOurs: false, receiver: 'EUR', amount: 926n })
    await other.process([{ how: 'is overstated', by: 5n }]).run()
    expect(await finish(other)).toMatchObject({ state: 'completed', arrived: 921n, byWord: 5n })
  })
})

test('a peer gets nothing once receivers behind it have denied too much, until an operator has compared the books', async () => {
  const sendings = memorySendingBook()
  const to = (link: { readonly peerFor: PaymentSenderOptions['rail']['peerFor'] }) => ({
    peerFor(address: string) {
      const peer = link.peerFor(address)
      return peer && { ...peer, deniedMax: 249n * cent }
    },
  })
  const mistake: Setting['mistake'] = ({ rail }) => ({ sendings, rail: to(rail) })
  const openLink = () => open({ isOurs: false, mistake })
  const first = await openLink()
  await first.process([ok, { how: 'is lost' }]).run()
  const denied = await finish(first)
  expect(denied).toMatchObject({ state: 'failed', arrived: 750n, debited: 750n, denied: 250n })

  expect(await finish(await openLink())).toMatchObject({
    state: 'failed',
    debited: 0n,
    arrived: 0n,
  })

  const { sender } = first.process([])
  const decision = { what: 'never', who: 'ada' } as const
  expect(await sender.decide(first.id, decision)).toMatchObject({ ok: true, changed: true })
  expect(await finish(await openLink())).toMatchObject({ state: 'completed', arrived: 1_000n })
})

describe('a peer that closes what its receiver has got, and withholds the replies', () => {
  const lying =
    (deniedMax: bigint): NonNullable<Setting['mistake']> =>
    ({ rail }) => ({
      rail: {
        peerFor(address) {
          const peer = rail.peerFor(address)
          const close = async () => ({ outcome: 'never' as const })
          return peer && { ...peer, close, deniedMax }
        },
      },
    })
  const fates = () => Array.from({ length: 200 }, (): Fate => ({ how: 'its reply is lost' }))

  async function rob(deniedMax: bigint) {
    const link = await open({ isOurs: false, mistake: lying(deniedMax) })
    let next = await link.process(fates()).deliver()
    while (next !== undefined) {
      const { retryAt } = next as { readonly retryAt: number }
      await link.advance(Math.max(0, retryAt - link.clock.now()))
      next = await link.process(fates()).deliver()
    }
    return link
  }

  test('is listed with all that it denies, and may not deny more than `deniedMax` and a window', async () => {
    const link = await rob(500n * cent)
    const end = await link.state()
    expect(end).toMatchObject({ state: 'failed', debited: 0n, owing: 0n })
    expect(end.arrived).toBeGreaterThan(500n)
    expect(end.arrived).toBeLessThanOrEqual(1_500n)
    expect([end.denied, end.difference]).toEqual([end.arrived, end.owed])
  })

  test('is listed until an operator, who knows what it has, has decided', async () => {
    const link = await rob(250n * cent)
    const { sender } = link.process([])
    const [listed] = await listOf(sender)
    const all = listed?.doubts.map(({ reference }) => reference) ?? []
    for (const reference of all) {
      const decision = { what: 'arrived', who: 'ada', reference } as const
      expect(await sender.decide(link.id, decision)).toMatchObject({ ok: true, changed: true })
    }
    const end = await link.state()
    expect([end.denied, end.owing]).toEqual([0n, end.owed])
    // Nothing was debited for it. That is listed until somebody corrects the account, or bears it.
    expect([end.excess, end.difference]).toEqual([end.arrived - end.debited, 0n])
    const corrected = await sender.decide(link.id, { what: 'corrected', who: 'ada' })
    expect(corrected).toEqual({ ok: true, changed: true })
    expect(await listOf(sender)).toEqual([])
  })
})

describe('a payment that must wait', () => {
  test('says when to go on, until the packet without a reply can be decided, and counts no failure', async () => {
    const link = await open({ isOurs: false })
    const sent = await link.process([ok, { how: 'is lost' }]).deliver()
    expect(sent).toEqual({ retryAt: expect.any(Number) })
    let waits = 0
    for (let next = sent; next !== undefined; waits++) {
      const { retryAt } = next as { readonly retryAt: number }
      expect(retryAt).toBeGreaterThan(link.clock.now())
      await link.advance(retryAt - link.clock.now())
      next = await link.process([]).deliver()
    }
    expect(waits).toBeLessThan(10)
    expect(await link.state()).toMatchObject({ state: 'completed', debited: 1_000n, inDoubt: 0n })
  })

  test('arrives if its receiver can be read again within two minutes', async () => {
    const link = await open()
    link.beUnreadable(1_000)
    await link.process([]).deliver()
    await link.advance(110_000)
    link.beUnreadable(0)
    await link.process([]).deliver()
    expect(await link.state()).toMatchObject({ state: 'completed', arrived: 1_000n })
  })

  test('fails if its receiver can never be read, after two minutes and several tries', async () => {
    const link = await open()
    link.beUnreadable(1_000)
    const begun = link.clock.now()
    // Its event is late.
    await link.process([]).deliver()
    await link.advance(600_000)
    for (let next = await link.process([]).deliver(); next !== undefined; ) {
      const { retryAt } = next as { readonly retryAt: number }
      expect(retryAt).toBeGreaterThan(link.clock.now())
      await link.advance(retryAt - link.clock.now())
      next = await link.process([]).deliver()
    }
    expect(link.clock.now() - begun).toBeGreaterThanOrEqual(600_000)
    expect(await link.state()).toMatchObject({ state: 'failed', debited: 0n, arrived: 0n })
  })

  test('sends no packet after the other to a peer that closes each, and arrives once the link works', async () => {
    const link = await open()
    const begun = link.clock.now()
    let packets = 0
    const fates = Array.from({ length: 200 }, (): Fate => ({ how: 'is lost' }))
    const onFate = () => {
      packets += 1
    }
    while (link.clock.now() - begun < 100_000) {
      const next = await link.process(fates, onFate).deliver()
      const { retryAt } = next as { readonly retryAt: number }
      await link.advance(Math.max(0, retryAt - link.clock.now()))
    }
    expect(packets).toBeLessThan(50)
    const end = await finish(link)
    expect(end).toMatchObject({ state: 'completed', arrived: 1_000n, inDoubt: 0n })
    expect(end.owing).toBe(end.owed)
  })

  test('fails after two minutes in which its peer has closed each packet', async () => {
    const link = await open()
    const fates = Array.from({ length: 400 }, (): Fate => ({ how: 'is lost' }))
    let next = await link.process(fates).deliver()
    while (next !== undefined) {
      const { retryAt } = next as { readonly retryAt: number }
      await link.advance(Math.max(0, retryAt - link.clock.now()))
      next = await link.process(fates).deliver()
    }
    const end = { state: 'failed', debited: 0n, arrived: 0n, inDoubt: 0n, owing: 0n }
    expect(await link.state()).toMatchObject(end)
  })

  test('asks again after its event was late, before it ends with a doubt', async () => {
    const link = await open({ isOurs: false })
    await link.process([{ how: 'its reply is lost' }], () => link.beUnreadable(1)).deliver()
    await link.advance(3_600_000)
    link.beUnreadable(1)
    await link.process([]).deliver()
    expect(await link.isOver()).toBe(false)
    await link.advance(300_000)
    await link.process([]).deliver()
    expect(await link.state()).toMatchObject({ state: 'completed', arrived: 1_000n, inDoubt: 0n })
  })
})

describe('an operator', () => {
  /** Of a payment of 10.00, 2.50 was lost, which somebody else has paid. */
  async function byWord() {
    const link = await open({ isOurs: false })
    await link.process([ok, { how: 'is lost' }]).run()
    await link.payByOther(250n)
    const end = await finish(link)
    expect([end.byWord, end.owing - end.owed]).toEqual([250n, 250n * cent])
    return link
  }
  const never = { what: 'never', who: 'ada' } as const
  const doubts = ({ inDoubt, byWord, denied }: Awaited<ReturnType<typeof finish>>) =>
    inDoubt + byWord + denied

  test('who decides that a packet never arrived corrects the book of the peer too', async () => {
    const link = await byWord()
    const { sender } = link.process([])
    expect(await sender.decide(link.id, never)).toMatchObject({ ok: true, changed: true })
    const end = await link.state()
    expect([doubts(end), end.owing - end.owed]).toEqual([0n, 0n])
    expect(await sender.decide(link.id, never)).toMatchObject({ refusal: 'nothing_in_doubt' })
  })

  test('is told what is due to the payer for what never arrived, until that is corrected', async () => {
    const link = await byWord()
    const { sender } = link.process([])
    const due = { value: '750', ...usd }
    const left = { doubts: [], amount: 0n, mismatch: { debited: { value: '1000', ...usd }, due } }
    expect(await sender.decide(link.id, never)).toMatchObject({ ok: true, left })
    // The event of the payment is delivered once more.
    await link.process([]).deliver()
    expect(await listOf(sender)).toMatchObject([left])
    const corrected = { what: 'corrected', who: 'ada' } as const
    expect(await sender.decide(link.id, corrected)).toEqual({ ok: true, changed: true })
    expect(await sender.decide(link.id, never)).toMatchObject({ refusal: 'payment_unknown' })
  })

  test('who decides what was in doubt is told how to decide the payment, until that is done', async () => {
    const link = await open({ isOurs: false })
    await link.process([ok, { how: 'is lost' }], () => link.beUnreadable(1_000)).run()
    const { debited, recordedDoubt } = await finish(link)
    expect(recordedDoubt).toBeGreaterThan(0n)
    const { sender } = link.process([])
    const corrected = { what: 'corrected', who: 'ada' } as const
    expect(await sender.decide(link.id, corrected)).toMatchObject({ refusal: 'nothing_in_doubt' })
    expect(await sender.decide(link.id, never)).toMatchObject({ ok: true })
    expect(await sender.decide(link.id, corrected)).toMatchObject({ refusal: 'payment_in_doubt' })
    const [{ decideDoubt } = { decideDoubt: undefined }] = await listOf(sender)
    if (decideDoubt === undefined) throw new Error('it is not listed')
    const { outgoingPayments } = link
    expect(await outgoingPayments.decideDoubt(link.id, decideDoubt)).toMatchObject({ ok: true })
    const end = await link.state()
    expect(end.debited).toBe(debited - recordedDoubt)
    expect(await sender.decide(link.id, corrected)).toEqual({ ok: true, changed: true })
    expect([end.debited, await listOf(sender)]).toEqual([end.arrived, []])
  })

  test('who has decided the payment before its packets is told what that has left', async () => {
    const link = await open({ isOurs: false })
    await link.process([ok, { how: 'its reply is lost' }], () => link.beUnreadable(1_000)).run()
    const { recordedDoubt, arrived } = await finish(link)
    const refunded = { ...usd, value: `${recordedDoubt}` }
    const decided = { refunded, decidedBy: 'attempts' } as const
    expect(await link.outgoingPayments.decideDoubt(link.id, decided)).toMatchObject({ ok: true })
    const { sender } = link.process([])
    await sender.decide(link.id, { what: 'arrived', who: 'ada' })
    const { debited } = await link.state()
    expect(await listOf(sender)).toMatchObject([
      { mismatch: { debited: { value: `${debited}` }, due: { value: `${arrived}` } } },
    ])
  })

  test('who confirms that it arrived leaves the book as it is', async () => {
    const link = await byWord()
    const decided = await link.process([]).sender.decide(link.id, { what: 'arrived', who: 'ada' })
    expect(decided).toEqual({ ok: true, changed: true })
    const end = await link.state()
    expect([doubts(end), end.owing - end.owed]).toEqual([0n, 250n * cent])
  })

  test('who decides that a denied packet arrived, after its amount was sent again, is told what was paid twice', async () => {
    const link = await open()
    await link.process([ok, { how: 'is lost' }]).run()
    await link.advance(1_000)
    expect(await finish(link)).toMatchObject({ debited: 1_000n, arrived: 1_000n, denied: 250n })
    const { sender } = link.process([])
    const [listed] = await listOf(sender)
    const reference = listed?.doubts[0]?.reference ?? ''
    const decision = { what: 'arrived', who: 'ada', reference } as const
    expect(await sender.decide(link.id, decision)).toMatchObject({ ok: true, changed: true })
    expect(await link.state()).toMatchObject({ excess: 250n, denied: 0n, owing: 1_250n * cent })
  })

  test('decides one packet of several, and the others stay listed', async () => {
    const link = await open({ isOurs: false })
    const lost: Fate = { how: 'is lost' }
    await link.process([ok, lost]).run()
    await link.advance(1_000)
    await link.process([lost], () => link.beUnreadable(1_000)).run()
    const before = await finish(link)
    expect(before.inDoubt).toBeGreaterThan(250n)
    const { sender } = link.process([])
    const [listed] = await listOf(sender)
    const reference = listed?.doubts[0]?.reference ?? ''
    const decided = await sender.decide(link.id, { ...never, reference })
    expect(decided).toMatchObject({ ok: true, changed: true })
    const end = await link.state()
    expect(end.inDoubt).toBe(before.inDoubt - 250n)
    expect(end.owing).toBe(before.owing - 250n * cent)
    expect(await sender.decide(link.id, { ...never, reference })).toMatchObject({ changed: false })
    expect(await sender.decide(link.id, { what: 'arrived', who: 'ada', reference })).toMatchObject({
      refusal: 'attempt_decided',
    })
    const unknown = await sender.decide(link.id, { ...never, reference: 'another one' })
    expect(unknown).toMatchObject({ refusal: 'attempt_unknown' })
  })

  test('whose decision is interrupted makes it again, and it stays listed until then', async () => {
    const link = await byWord()
    const failing = ({ book }: PaymentSenderOptions) => ({
      ...book,
      decide: () => Promise.reject(new Error('the database does not respond')),
    })
    const { options } = link.process([])
    const interrupted = link.process([], () => {}, { book: failing(options) })
    await expect(interrupted.sender.decide(link.id, never)).rejects.toThrow('does not respond')
    const { sender } = link.process([])
    expect(await listOf(sender)).toHaveLength(1)
    const again = await sender.decide(link.id, never)
    expect(again).toMatchObject({ refusal: 'nothing_in_doubt' })
    const end = await link.state()
    expect([doubts(end), end.owing - end.owed]).toEqual([0n, 0n])
    const due = { value: '750', ...usd }
    expect(await listOf(sender)).toMatchObject([{ doubts: [], mismatch: { due } }])
  })
})

test('a payment of which somebody else has reported too much ends, and is listed with what is due', async () => {
  const link = await open({ isOurs: false })
  await link
    .process([ok, { how: 'is lost' }], (how) => {
      if (how === 'is lost') link.beUnreadable(1_000)
    })
    .run()
  const reported = { value: '900', assetCode: 'USD', assetScale: 2 }
  const report = { sentAmount: reported, deliveredAmount: reported }
  expect(await link.outgoingPayments.reportSent(link.id, report)).toMatchObject({ ok: true })
  const end = await finish(link)
  expect(end).toMatchObject({ state: 'failed', debited: 900n, inDoubt: 250n })
  const [listed] = await listOf(link.process([]).sender)
  // On a busy machine, another packet was on its way when the second one was lost.
  const due = { value: `${end.arrived + end.inDoubt}` }
  expect(listed?.mismatch).toMatchObject({ debited: { value: '900' }, due })
})

/** Kills the sender before its second packet, and lets somebody else end the payment, with nothing sent. */
async function endByHand(link: Awaited<ReturnType<typeof open>>): Promise<void> {
  const { outgoingPayments } = link
  const killed: Fate = { how: 'its sender is killed before it leaves' }
  const silent = { ...outgoingPayments, reportSent: () => new Promise<never>(() => {}) }
  await link.process([ok, killed], () => {}, { outgoingPayments: silent }).run()
  const none = { value: '0', assetCode: 'USD', assetScale: 2 }
  const totals = { sentAmount: none, deliveredAmount: none }
  expect(await outgoingPayments.fail(link.id, { ...totals, reason: 'by hand' })).toMatchObject({
    ok: true,
  })
  await link.process([]).deliver()
}

test('a payment that somebody else has ended is listed with what is due for its packets', async () => {
  const link = await open()
  await endByHand(link)
  const end = await link.state()
  expect(end).toMatchObject({ state: 'failed', debited: 0n })
  expect(end.arrived).toBeGreaterThan(0n)
  expect(end.undebited).toBeGreaterThanOrEqual(end.arrived)
  expect(end.undebited).toBeLessThanOrEqual(end.arrived + end.inDoubt)
  const { sender } = link.process([])
  await sender.decide(link.id, { what: 'arrived', who: 'ada' })
  expect((await link.state()).undebited).toBe(end.undebited)
  const corrected = await sender.decide(link.id, { what: 'corrected', who: 'ada' })
  expect(corrected).toEqual({ ok: true, changed: true })
  expect((await link.state()).undebited).toBe(0n)
})

test('a payment that somebody else ends while it is sent is not sent further, and is listed with what is due', async () => {
  let packets = 0
  const endedAfterFirst = ({ rail }: PaymentSenderOptions): Partial<PaymentSenderOptions> => ({
    rail: {
      peerFor(address) {
        const peer = rail.peerFor(address)
        return (
          peer && {
            ...peer,
            async send(packet) {
              const reply = await peer.send(packet)
              const { fulfillment } = { fulfillment: undefined, ...readReply(reply) }
              if (fulfillment !== undefined) packets += 1
              if (packets === 1) await link.outgoingPayments.fail(link.id, { reason: 'by hand' })
              return reply
            },
          }
        )
      },
    },
  })
  const link = await open({ amount: 5_000n, mistake: endedAfterFirst })
  await link.process([]).deliver()
  await link.process([]).deliver()
  const end = await link.state()
  expect(end).toMatchObject({ state: 'failed', debited: 0n, undebited: end.arrived })
  // What is on its way when the report finds it arrives.
  expect(end.arrived).toBeLessThan(1_500n)
})

test('what was corrected is not listed again while a packet is in doubt', async () => {
  const link = await open()
  await endByHand(link)
  const { sender } = link.process([])
  const [listed] = await listOf(sender)
  expect(listed?.mismatch).toBeDefined()
  expect(listed?.doubts).not.toEqual([])
  await sender.decide(link.id, { what: 'corrected', who: 'ada' })
  await link.process([]).deliver()
  const [left] = await listOf(sender)
  expect(left?.doubts).toEqual(listed?.doubts)
  expect(left).not.toHaveProperty('mismatch')
  // What did not arrive after all is due again.
  await sender.decide(link.id, { what: 'never', who: 'ada' })
  const [{ mismatch } = { mismatch: undefined }] = await listOf(sender)
  expect(mismatch?.debited).toEqual(listed?.mismatch?.due)
})

describe('a payment of which a packet is in doubt', () => {
  const lost: Fate[] = [{ how: 'its reply is lost' }]
  async function inDoubt(more: Partial<Setting> = {}) {
    const link = await open({ isOurs: false, ...more })
    await link.process([...lost], () => link.beUnreadable(1)).run()
    await link.advance(1_000)
    return link
  }
  const once = { debited: 1_000n, arrived: 1_000n }

  test('is not decided by an operator before it has ended', async () => {
    const link = await inDoubt()
    const decision = { what: 'arrived', who: 'ada' } as const
    expect(await link.process([]).sender.decide(link.id, decision)).toMatchObject({
      refusal: 'payment_not_ended',
    })
    expect(await finish(link)).toMatchObject(once)
  })

  test('does not end as if nothing was sent while its currency has no rate', async () => {
    let hasRate = true
    const link = await inDoubt({
      mistake: ({ rateOf }) => ({ rateOf: (...pair) => (hasRate ? rateOf(...pair) : undefined) }),
    })
    hasRate = false
    await link.process([]).run()
    hasRate = true
    await link.advance(5_000)
    expect(await finish(link)).toMatchObject(once)
  })

  test('asks the peer that got its packets, also if another one has the route now', async () => {
    let isMoved = false
    const mistake = ({ rail }: PaymentSenderOptions): Partial<PaymentSenderOptions> => ({
      rail: {
        peerFor(address) {
          const peer = rail.peerFor(address)
          if (peer === undefined || !isMoved || address === peer.ilpAddress) return peer
          return {
            ...peer,
            ilpAddress: 'test.wallet.usd',
            close: async () => ({ outcome: 'never' }),
          }
        },
      },
    })
    const link = await inDoubt({ mistake })
    isMoved = true
    expect(await finish(link)).toMatchObject(once)
  })

  test('leaves no packet in the book that was not sent, if the reply of the book is lost', async () => {
    let failures = 1
    const mistake = ({ book }: PaymentSenderOptions): Partial<PaymentSenderOptions> => ({
      book: {
        ...book,
        async reserve(...given) {
          const reserved = await book.reserve(...given)
          if (failures-- > 0) throw new Error('the reply of the database is lost')
          return reserved
        },
      },
    })
    const link = await open({ mistake })
    await link.process([]).run()
    await link.advance(1_000)
    const end = await finish(link)
    expect(end).toMatchObject(once)
    expect(end.owing).toBe(end.owed)
  })

  test('is not sent twice if what became of a packet cannot be recorded', async () => {
    let failures = 2
    const mistake = ({ book }: PaymentSenderOptions): Partial<PaymentSenderOptions> => ({
      book: {
        ...book,
        async decide(...given) {
          if (failures-- > 0) throw new Error('the database does not respond')
          return book.decide(...given)
        },
      },
    })
    const link = await open({ isOurs: false, mistake })
    await link.process([]).run()
    await link.advance(1_000)
    expect(await finish(link)).toMatchObject(once)
  })
})
