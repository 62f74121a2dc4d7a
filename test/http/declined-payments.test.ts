import { expect, test } from 'vitest'
import type { PaymentRecord } from '../../src/core/outgoing-payment/record.js'
import { type MayPayAnswer, memoryStore } from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { manualClock } from '../support/clock.js'
import { loadPublicRecord } from '../support/public-record.js'
import { errorOf } from '../support/spending-client.js'
import { walletInProcesses } from '../support/two-processes.js'

const minute = 60_000
const day = 24 * 60 * minute
const retentionMs = 30 * day
const resourceOwner = 'alice'

/** A payer who requests a payment, and a host that gives the answers in turn. */
async function setUp(authority: Authority, processes: 1 | 2, ...answers: readonly MayPayAnswer[]) {
  const rest = [...answers]
  const asked: string[] = []
  const store = memoryStore()
  const world = walletInProcesses(processes, {
    clock: manualClock(),
    ...(processes === 1 && { store }),
    resources: {
      ...(processes === 2 && { store }),
      policy: {
        outgoingPayments: { retentionMs },
        mayPay({ outgoingPaymentId }) {
          asked.push(outgoingPaymentId)
          const answer = rest.shift()
          if (answer === undefined) throw new Error('the host fails')
          return answer
        },
      },
    },
  })
  const payer = await payerOf(world, authority)
  const request = () => payer.pay(60, {}, 'k')
  const first = errorOf(await request())
  const id = asked[0] ?? ''
  const { outgoingPayments } = world.resources
  const record = async () => {
    return (await loadPublicRecord(store, 'outgoing-payment', id)) as PaymentRecord
  }
  return { world, id, first, request, payer, outgoingPayments, record }
}

type SetUp = Awaited<ReturnType<typeof setUp>>

const refusal: MayPayAnswer = { ok: false, refusal: 'payment_not_allowed' }

const confirmation = (): MayPayAnswer => ({
  ok: false,
  refusal: 'confirmation_required',
  url: 'https://wallet.example/confirm',
  until: manualClock().now() + 8 * minute,
})

async function confirm({ outgoingPayments, id }: SetUp) {
  const shown = await outgoingPayments.toConfirm(id)
  if (shown === undefined) throw new Error('nothing waits for its owner')
  const { receiver, debitAmount, receiveAmount } = shown
  return outgoingPayments.confirm(id, { receiver, debitAmount, receiveAmount, resourceOwner })
}

interface Way {
  readonly name: string
  readonly answers: readonly MayPayAnswer[]
  /** Declines the payment, if its first request has not. */
  readonly decline?: (setUp: SetUp) => Promise<unknown>
  /** Whether the reason is the end of the grant, of which only its own process knows. */
  readonly isOfGrant?: true
}

const ways: readonly Way[] = [
  { name: 'a request that the host refuses', answers: [refusal] },
  {
    name: 'a repeat that comes too late to ask',
    answers: [],
    async decline({ world, request }) {
      world.clock.advance(5 * minute)
      await request()
    },
  },
  {
    name: 'a sweep, because the host did not decide',
    answers: [],
    async decline({ world }) {
      world.clock.advance(5 * minute)
      await world.resources.sweep()
    },
  },
  {
    name: 'a sweep, because its owner did not decide',
    answers: [confirmation()],
    async decline({ world }) {
      world.clock.advance(8 * minute)
      await world.resources.sweep()
    },
  },
  {
    name: 'its owner',
    answers: [confirmation()],
    decline: ({ outgoingPayments, id }) => outgoingPayments.decline(id, { resourceOwner }),
  },
  {
    name: 'a confirmation after which the host refuses it',
    answers: [confirmation(), refusal],
    decline: confirm,
  },
  {
    name: 'a repeat under another grant, because its own has ended',
    answers: [confirmation()],
    async decline({ world, payer }) {
      const client = payer.granted?.client
      const other = await payerOf(world, 'a client under a grant', { ...(client && { client }) })
      await world.auth.grants.revoke(payer.named.grantId ?? '')
      await other.pay(60, {}, 'k')
    },
    isOfGrant: true,
  },
]

const cases = authorities.flatMap((authority) =>
  ways.flatMap((way) => {
    if (way.isOfGrant && authority === 'the owner of the account') return []
    const processes = way.isOfGrant ? ([1] as const) : ([1, 2] as const)
    return processes.map((each) => ({ ...way, processes: each, authority }))
  }),
)

test.each(cases)(
  'a payment by $authority that is declined by $name is kept as long as any other, in $processes process(es)',
  async ({ answers, processes, authority, decline }) => {
    const setting = await setUp(authority, processes, ...answers)
    await decline?.(setting)
    expect(setting.first[0]).toBe(answers.length === 0 ? 503 : 403)
    const { state, endedAt = 0, retainUntil = 0 } = await setting.record()
    expect([state, retainUntil - endedAt]).toEqual(['declined', retentionMs])
  },
)
