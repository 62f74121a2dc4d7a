import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { applyReport, type RailReport } from '../../examples/wallet/rail-reports.js'
import type { Limits, ResourceServices } from '../../src/index.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  eur,
  grantToPay,
  outgoingItem,
  pay,
  usd,
} from '../support/spending.js'
import { bob, incomingAccess } from '../support/world.js'

/** A wallet in which Alice may pay Bob, with reports of its rail. */
async function openRail(limits: Limits = { debitAmount: usd(2500) }) {
  const world = createSpendingWorld()
  const client = world.client()
  const { token } = await grantToPay(world, client, [outgoingItem(limits)])
  const incoming = (await client.request([incomingAccess])).body.access_token.value
  const { resources } = world
  const { incomingPayments, outgoingPayments } = resources

  /** Creates a payment to Bob's new incoming payment. */
  async function started(value: string, incomingAmount?: string) {
    const more = incomingAmount === undefined ? {} : { incomingAmount: usd(incomingAmount) }
    const { body } = await client.createPayment(incoming, { walletAddress: bob, ...more })
    const incomingId = incomingPayments.idOf(body.id) ?? ''
    const created = await pay(client, token, value, { incomingPayment: body.id })
    const id = outgoingPayments.idOf(created.body.id) ?? ''
    return {
      id,
      incomingId,
      report: (railReport?: RailReport, services: ResourceServices = resources) =>
        applyReport(services, id, railReport),
      /** Returns what was sent and delivered, what has arrived, and the state of the payment. */
      async status() {
        const payment = await outgoingPayments.get(id)
        const arrived = await incomingPayments.get(incomingId)
        const { sentAmount, deliveredAmount, status: state } = payment ?? {}
        return {
          sent: sentAmount?.value,
          delivered: deliveredAmount?.value,
          arrived: arrived?.receivedAmount.value,
          state,
        }
      },
    }
  }

  /** Returns whether this amount may still be spent. */
  async function affordable(value: string): Promise<boolean> {
    return (await pay(client, token, value)).status === 201
  }
  return { world, resources, started, affordable }
}

const settled = (value: number | string, more: object = {}): RailReport => ({
  type: 'report-sent',
  sentAmount: usd(value),
  deliveredAmount: usd(value),
  ...more,
})
const gaveUp = (value: number | string): RailReport => ({
  type: 'fail',
  sentAmount: usd(value),
  deliveredAmount: usd(value),
})

describe('a payment within the wallet', () => {
  test('arrives in parts as it is sent, each part once', async () => {
    const { started } = await openRail()
    const { report, status } = await started('1000')
    for (const total of ['1', '400', '400', '999']) {
      expect(await report(settled(total))).toMatchObject({ ok: true })
      const standingNow = { sent: total, delivered: total, arrived: total, state: 'begun' }
      expect(await status()).toEqual(standingNow)
    }
    expect(await report({ type: 'report-sent', final: true })).toMatchObject({ ok: true })
    expect(await status()).toMatchObject({ arrived: '999', state: 'completed' })
  })

  test('that fails keeps what has arrived, and the remainder can be spent again', async () => {
    const { started, affordable } = await openRail()
    const { report, status } = await started('2500')
    await report(settled('100'))
    expect(await affordable('1')).toBe(false)
    for (let i = 0; i < 2; i++) expect(await report(gaveUp('300'))).toMatchObject({ ok: true })
    expect(await status()).toEqual({
      sent: '300',
      delivered: '300',
      arrived: '300',
      state: 'failed',
    })
    expect(await affordable('2201')).toBe(false)
    expect(await affordable('2200')).toBe(true)
  })

  test('is begun by the first report, unless its hold has expired', async () => {
    const { world, started } = await openRail()
    const [one, two] = [await started('10'), await started('10')]
    expect(await one.report({ type: 'report-sent' })).toMatchObject({ ok: true })
    expect(await one.status()).toMatchObject({ sent: '0', state: 'begun' })
    world.clock.advance(86_400_000)
    expect(await two.report()).toMatchObject({ ok: false, refusal: 'payment_lapsed' })
    expect(await two.status()).toMatchObject({ arrived: '0', state: 'failed' })
    expect(await one.report()).toMatchObject({ ok: true })
  })

  test.each<[string, RailReport, string]>([
    ['falls', settled('99'), 'totals_receded'],
    ['exceeds the amount to send', settled('1001'), 'totals_exceeded'],
    [
      'sends more than it delivers',
      { ...settled('200'), sentAmount: usd(1001) },
      'totals_exceeded',
    ],
    ['is in another asset', { ...settled('200'), deliveredAmount: eur(200) }, 'amount_invalid'],
    ['is not an amount', { ...settled('200'), deliveredAmount: usd('0x10') }, 'amount_invalid'],
    ['fails a payment that was sent in full', gaveUp('1000'), 'payment_sent'],
  ])('is not credited by a report that %s', async (_, railReport, refusal) => {
    const { started } = await openRail()
    const { report, status } = await started('1000')
    await report(settled('100'))
    const before = await status()
    expect(await report(railReport)).toMatchObject({ ok: false, refusal })
    expect(await status()).toEqual(before)
    expect(before).toMatchObject({ arrived: '100', state: 'begun' })
  })

  test('is not credited once it is over', async () => {
    const { started } = await openRail()
    const [failed, complete] = [await started('1000'), await started('1000')]
    await failed.report({ type: 'fail' })
    await complete.report(settled('500', { final: true }))
    for (const { report, status } of [failed, complete]) {
      const before = await status()
      expect(await report()).toMatchObject({ ok: false, refusal: 'payment_over' })
      expect(await status()).toEqual(before)
    }
    expect(await failed.report({ type: 'fail' })).toMatchObject({ ok: true })
  })

  test('that does not exist is undefined', async () => {
    const { resources } = await openRail()
    expect(await applyReport(resources, 'unknown', undefined)).toBeUndefined()
  })
})

describe('a receiver that accepts no more', () => {
  async function closedAfter(first: string) {
    const rail = await openRail()
    const { incomingId, ...payment } = await rail.started('2000')
    await payment.report(settled(first))
    await rail.resources.incomingPayments.complete(incomingId)
    return { ...rail, ...payment }
  }

  test.each<[string, RailReport | undefined]>([
    ['settling', undefined],
    ['failing', gaveUp('1500')],
  ])(
    'fails the payment that reaches it, by %s, because nothing was sent',
    async (_, railReport) => {
      const { report, status, affordable } = await closedAfter('500')
      expect(await report(railReport)).toMatchObject({ ok: false, refusal: 'payment_completed' })
      expect(await status()).toEqual({
        sent: '500',
        delivered: '500',
        arrived: '500',
        state: 'failed',
      })
      expect(await affordable('2001')).toBe(false)
      expect(await affordable('2000')).toBe(true)
    },
  )

  test('fails the payment when the receiver has expired', async () => {
    const { world, started } = await openRail()
    const { report, status } = await started('10')
    await report({ type: 'report-sent' })
    world.clock.advance(31 * 86_400_000)
    expect(await report()).toMatchObject({ ok: false, refusal: 'payment_expired' })
    expect(await status()).toMatchObject({ sent: '0', arrived: '0', state: 'failed' })
  })
})

describe('a report without a response', () => {
  /** Services that simulate a crash before or after the receiver is credited. */
  function crashing(services: ResourceServices, when: 'before' | 'after'): ResourceServices {
    const crash = () => Promise.reject(new Error('the process has ended'))
    const { incomingPayments, outgoingPayments } = services
    return when === 'before'
      ? { ...services, incomingPayments: { ...incomingPayments, receive: crash } }
      : { ...services, outgoingPayments: { ...outgoingPayments, reportSent: crash, fail: crash } }
  }

  test('counts once when it is repeated, although the receiver was credited', async () => {
    const { resources, started } = await openRail()
    const { report, status } = await started('1000', '1000')
    await expect(report(undefined, crashing(resources, 'after'))).rejects.toThrow('has ended')
    expect(await status()).toMatchObject({ arrived: '1000', delivered: '0', state: 'begun' })
    // A different report is refused: it would credit the same amount again.
    expect(await report(settled('400'))).toMatchObject({ ok: false, refusal: 'transfer_mismatch' })
    expect(await status()).toMatchObject({ arrived: '1000', delivered: '0', state: 'begun' })
    expect(await report()).toMatchObject({ ok: true, payment: { status: 'completed' } })
    expect(await status()).toMatchObject({ arrived: '1000', delivered: '1000' })
  })

  const step = fc.record({
    type: fc.constantFrom<RailReport['type']>('report-sent', 'report-sent', 'report-sent', 'fail'),
    total: fc.nat(1000),
    crash: fc.constantFrom<'before' | 'after' | undefined>(undefined, 'before', 'after'),
    times: fc.integer({ min: 1, max: 3 }),
    /** The delivered total of a concurrent, contradictory report, which a correct rail does not make. */
    rival: fc.option(fc.nat(1000)),
  })

  test('credits what was delivered, for all reports, repeats and crashes', async () => {
    const { resources, started } = await openRail({})
    const property = fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
      const { report, status } = await started('1000')
      for (const { type, total, crash, times, rival } of steps) {
        const said = type === 'fail' ? gaveUp(total) : settled(total)
        if (crash) await report(said, crashing(resources, crash)).catch(() => undefined)
        const reports = Array.from({ length: times }, () => report(said))
        if (rival !== null && type === 'report-sent') reports.push(report(settled(rival)))
        await Promise.all(reports)
        const { sent, delivered, arrived } = await status()
        expect([sent, arrived]).toEqual([delivered, delivered])
      }
    })
    await fc.assert(property, { numRuns: runs(200) })
  })
})
