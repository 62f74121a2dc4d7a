import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccessItem } from '../../src/index.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  eur,
  euroReceiver,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { spentUnder } from '../support/spending-client.js'
import { type Answer, alice, bob, type TestClient } from '../support/world.js'

const hourly = 'R/2026-11-21T12:00:00Z/PT1H'
const minute = 60_000

/** Items with and without amounts, intervals and receivers, for two wallet addresses. */
const items: fc.Arbitrary<AccessItem> = fc
  .record({
    limits: fc.constantFrom(
      undefined,
      { debitAmount: usd(100) },
      { receiveAmount: eur(60) },
      { interval: hourly },
      { interval: hourly, debitAmount: usd(50) },
      { interval: 'R2/2026-11-21T12:00:00Z/PT30M', receiveAmount: usd(40) },
      { receiver: euroReceiver },
    ),
    walletAddress: fc.constantFrom(alice, alice, bob),
  })
  .map(({ limits, walletAddress }) => outgoingItem(limits, walletAddress))

type Step =
  | {
      readonly do: 'pay'
      readonly by: 'quote' | 'key' | 'neither'
      readonly value: number
      readonly walletAddress: string
      readonly incomingPayment: string
    }
  | { readonly do: 'repeat' | 'settle' | 'fail' | 'cancel'; readonly which: number }
  | { readonly do: 'wait'; readonly ms: number }

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('pay' as const),
      by: fc.constantFrom('quote', 'key', 'neither'),
      value: fc.integer({ min: 2, max: 60 }),
      walletAddress: fc.constantFrom(alice, alice, bob),
      incomingPayment: fc.constantFrom(shopReceiver, shopReceiver, euroReceiver),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('repeat', 'settle', 'fail', 'cancel'),
      which: fc.nat(9),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(minute, 20 * minute, 31 * minute),
    }),
  },
)

/** Reads both amounts of a created payment. An amount that is `null` is absent from this response. */
function toldBy({ body }: Answer) {
  const { grantSpentDebitAmount = null, grantSpentReceiveAmount = null } = body
  return { spentDebitAmount: grantSpentDebitAmount, spentReceiveAmount: grantSpentReceiveAmount }
}

/** Plays the steps under a grant, and calls `onPaid` after each payment that was created or repeated. */
async function play(
  access: readonly AccessItem[],
  history: readonly Step[],
  onPaid: (answer: Answer, client: TestClient, token: string) => Promise<void>,
) {
  const world = createSpendingWorld({
    auth: { policy: { accessTokenLifetimeMs: 30 * 86_400_000 } },
  })
  const client = world.client()
  const { token } = await grantToPay(world, client, access)
  const quoting = await quoteToken(client)
  const { outgoingPayments } = world.resources
  const paid: { readonly id: string; readonly value: number; send(): Promise<Answer> }[] = []
  for (const [index, step] of history.entries()) {
    if (step.do === 'wait') {
      world.clock.advance(step.ms)
      continue
    }
    if (step.do !== 'pay') {
      const found = paid[step.which % Math.max(1, paid.length)]
      if (found === undefined) continue
      const { id, value, send } = found
      if (step.do === 'repeat') await told(await send())
      if (step.do === 'cancel') await outgoingPayments.cancel(id)
      if (step.do === 'fail' || step.do === 'settle') await outgoingPayments.begin(id)
      if (step.do === 'fail') await outgoingPayments.fail(id, { sentAmount: usd(value - 1) })
      if (step.do === 'settle') {
        const { receiveAmount } = (await outgoingPayments.get(id)) ?? {}
        const deliveredAmount = { ...(receiveAmount ?? usd(0)), value: '1' }
        await outgoingPayments.reportSent(id, { sentAmount: usd(1), deliveredAmount, final: true })
      }
      continue
    }
    const { by, value, walletAddress, incomingPayment } = step
    const asked = { walletAddress, receiver: incomingPayment, debitAmount: usd(value) }
    const quote = by === 'quote' ? (await newQuote(client, quoting, asked)).body.id : undefined
    const send = () =>
      quote === undefined
        ? pay(client, token, value, { walletAddress, incomingPayment }, key)
        : payByQuote(client, token, quote, { walletAddress })
    const key = by === 'key' ? withKey(`payment-${index}`) : {}
    const answer = await send()
    if (answer.status !== 201) continue
    await told(answer)
    const id = outgoingPayments.idOf(answer.body.id) ?? ''
    paid.push({ id, value, send })
  }

  async function told(answer: Answer) {
    if (answer.status === 201) await onPaid(answer, client, token)
  }
}

describe('the response to the creation of an outgoing payment', () => {
  const histories = fc.tuple(
    fc.uniqueArray(items, { minLength: 2, maxLength: 3, selector: JSON.stringify }),
    fc.array(steps, { minLength: 4, maxLength: 16, size: 'max' }),
  )

  test('has the spent amounts that the client reads right after it, in every history', async () => {
    let compared = 0
    const property = fc.asyncProperty(histories, async ([access, history]) => {
      await play(access, history, async (answer, client, token) => {
        compared += 1
        expect(toldBy(answer)).toEqual(await spentUnder(client, token))
      })
    })
    const numRuns = runs(400, 40)
    await fc.assert(property, { numRuns })
    expect(compared).toBeGreaterThan(numRuns)
  })
})
