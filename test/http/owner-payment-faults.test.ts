import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type DeliveredEvent, type MayPay, memoryStore, type Store } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, shopReceiver, usd } from '../support/spending.js'
import { alice } from '../support/world.js'

const minute = 60_000
const order = { walletAddress: alice, receiver: shopReceiver, debitAmount: usd(500) }
const common = { walletAddress: alice, resourceOwner: 'alice', data: { card: 'secret' } }

/** A commit succeeds, fails, or has an effect although it fails. */
const fault = fc.constantFrom('none', 'none', 'none', 'before', 'after')
const answer = fc.constantFrom('allows', 'allows', 'allows', 'throws', 'demands')

/** Two processes on one store. The commits and the answers of the host fail until the end of the trouble. */
function twoProcesses(faults: Iterator<string>, answers: Iterator<string>) {
  const clock = manualClock()
  const inner = memoryStore()
  const trouble = { ends: false }
  const next = (from: Iterator<string>, good: string) =>
    trouble.ends ? good : String(from.next().value)
  const store: Store = {
    ...inner,
    async commit(commit) {
      const does = next(faults, 'none')
      if (does === 'before') throw new Error('the connection is lost')
      const committed = await inner.commit(commit)
      if (does === 'after') throw new Error('the reply is lost')
      return committed
    },
  }
  const asked = new Set<string>()
  const mayPay: MayPay = ({ outgoingPaymentId, isConfirmed }) => {
    asked.add(outgoingPaymentId)
    const says = next(answers, 'allows')
    if (says === 'throws') throw new Error('no ledger')
    if (says !== 'demands' || isConfirmed) return { ok: true }
    const until = clock.now() + 60 * minute
    return { ok: false, refusal: 'confirmation_required', url: 'https://wallet.example/c', until }
  }
  const policy = { mayPay, accountLimits: () => [{ debitAmount: usd(10_000) }] }
  const started = () =>
    createSpendingWorld({ clock, store, resources: { policy, random: crypto } }).resources
  return { clock, trouble, asked, one: started(), other: started() }
}

test('an owner pays once, and the cap for apps counts it exactly, whatever fails in two processes', async () => {
  const met = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.infiniteStream(fault),
      fc.infiniteStream(answer),
      fc.boolean(),
      fc.boolean(),
      fc.constantFrom('cancels', 'fails', 'lapses'),
      async (faults, answers, countsInAccountLimits, isQuoted, end) => {
        const { clock, trouble, asked, one, other } = twoProcesses(faults, answers)
        const quoted = isQuoted ? await one.quotes.create(order).catch(() => undefined) : undefined
        const terms = quoted?.ok
          ? { quoteId: quoted.quote.quoteId }
          : { receiver: shopReceiver, debitAmount: usd(500), idempotencyKey: 'rent' }
        const ordered = { ...common, ...terms, countsInAccountLimits }
        const paid = new Set<string>()
        async function pays({ outgoingPayments }: typeof one) {
          const result = await outgoingPayments.create(ordered).catch(() => undefined)
          if (result?.ok) paid.add(result.payment.paymentId)
          met.add(result?.ok ? 'pays' : (result?.refusal ?? 'throws'))
        }
        for (let round = 0; round < 3; round += 1) {
          await Promise.all([pays(one), pays(other), pays(one)])
          const page = await one.outgoingPayments.listToConfirm({ walletAddress: alice })
          for (const { paymentId, receiver, debitAmount, receiveAmount } of page.result) {
            const shown = { receiver, debitAmount, receiveAmount }
            const confirm = (resourceOwner: string) =>
              other.outgoingPayments
                .confirm(paymentId, { ...shown, resourceOwner })
                .catch(() => undefined)
            expect(await confirm('mallory')).toMatchObject({ refusal: 'not_the_owner' })
            if ((await confirm('alice'))?.ok) met.add('confirms')
          }
        }
        trouble.ends = true
        clock.advance(minute)
        await pays(other)

        const { result } = await one.outgoingPayments.list({ walletAddress: alice })
        expect(result.map(({ paymentId }) => paymentId)).toEqual([...paid])
        expect([asked.size, paid.size]).toEqual([1, 1])
        const left = async () => {
          const [limit] = await one.outgoingPayments.limitsOf({ walletAddress: alice })
          return limit?.left?.debitAmount?.value
        }
        expect(await left()).toBe(countsInAccountLimits ? '9500' : '10000')
        const [id = ''] = paid
        if (end === 'cancels') await other.outgoingPayments.cancel(id)
        if (end === 'fails') {
          await other.outgoingPayments.begin(id)
          const sent = { sentAmount: usd(100), deliveredAmount: usd(100) }
          await one.outgoingPayments.fail(id, sent)
        }
        if (end === 'lapses') {
          clock.advance(24 * 60 * minute)
          await one.sweep()
        }
        expect(await left()).toBe(countsInAccountLimits && end === 'fails' ? '9900' : '10000')
        // The event of the end waits for a hold of a call that was lost.
        clock.advance(10 * minute)
        const events: DeliveredEvent[] = []
        await other.events.drain(async (event) => void events.push(event))
        const ends = events.filter(({ type }) => /\.(created|failed)$/.test(type))
        const ofPayment = ends.filter(({ type }) => type.startsWith('outgoing'))
        expect(ofPayment.map(({ type }) => type)).toEqual([
          'outgoing-payment.created',
          'outgoing-payment.failed',
        ])
        expect(JSON.stringify(events)).not.toContain('secret')
      },
    ),
    { numRuns: runs(1_000, 30) },
  )
  expect([...met]).toEqual(
    expect.arrayContaining(['confirmation_required', 'confirms', 'pays', 'throws']),
  )
})
