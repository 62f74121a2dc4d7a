import { bob, interactionId, resourceServer } from '../../test/support/world.js'
import type { Caller } from './caller.js'
import type { createGrantActions } from './grant-actions.js'
import type { PaymentEntry } from './journal.js'

const paymentLimit = 2_000n
const transferMax = 900

/** A customer's actions on incoming payments, and the ledger's reports for any payment. */
export function createPaymentActions(
  caller: Caller,
  { requestToken, withToken }: ReturnType<typeof createGrantActions>,
) {
  const { name, wallet, journal, send, noted, insist, surprise, pick, random, unique } = caller

  /** A payment whose creation had no response may exist, with an unknown id. */
  async function create(): Promise<void> {
    const limit = random() < 0.3 ? paymentLimit : undefined
    const incomingAmount = limit && { value: `${limit}`, assetCode: 'USD', assetScale: 2 }
    const body = { walletAddress: bob, ...(incomingAmount && { incomingAmount }) }
    const answer = await withToken((token) =>
      send('POST', `${resourceServer}/incoming-payments`, token, body),
    )
    if (answer === undefined) return requestToken()
    if (!noted('create a payment', answer, 201)) return
    const entry = { id: interactionId(answer.body.id), owner: name, transfers: new Map() }
    journal.payments.push(limit === undefined ? entry : { ...entry, limit })
  }

  async function read(): Promise<void> {
    const payment = pick(journal.payments.filter(({ owner }) => owner === name))
    if (payment === undefined) return create()
    const url = `${resourceServer}/incoming-payments/${payment.id}`
    await withToken((token) => insist('read a payment', 200, () => send('GET', url, token)))
  }

  /** Reports a transfer until its outcome is known, which is final. */
  async function report(payment: PaymentEntry, transferId: string): Promise<void> {
    const entry = payment.transfers.get(transferId) ?? {
      value: BigInt(1 + Math.floor(random() * transferMax)),
      state: 'unknown' as const,
    }
    payment.transfers.set(transferId, entry)
    const amount = { value: `${entry.value}`, assetCode: 'USD', assetScale: 2 }
    const answer = await insist('receive a transfer', 200, () =>
      wallet.receive(payment.id, { transferId, amount }),
    )
    if (answer.status !== 200) return
    const { ok, refusal } = answer.body
    const mayRefuse = payment.limit !== undefined && refusal === 'payment_completed'
    const state = ok ? 'counted' : 'refused'
    const changed = entry.state !== 'unknown' && entry.state !== state
    if ((!ok && !mayRefuse) || changed) surprise(`a transfer (${entry.state})`, answer)
    entry.state = state
  }

  /** Reports several concurrent transfers, one of them twice. */
  async function receive(times: number): Promise<void> {
    const payment = pick(journal.payments)
    if (payment === undefined) return create()
    const ids = Array.from({ length: times }, unique)
    await Promise.all([...ids, ...ids.slice(1, 2)].map((id) => report(payment, id)))
  }

  async function repeatTransfer(): Promise<void> {
    const payment = pick(journal.payments.filter(({ transfers }) => transfers.size > 0))
    const known = [...(payment?.transfers ?? [])].filter(([, { state }]) => state !== 'unknown')
    const [transferId] = pick(known) ?? []
    if (payment !== undefined && transferId !== undefined) await report(payment, transferId)
  }

  return { create, read, receive, repeatTransfer }
}
