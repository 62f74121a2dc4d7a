import type { MayPay } from 'open-payments-server'
import { type AdapterName, startWallet } from '../wallet/start.js'
import { openStorage } from '../wallet/storage.js'

/** What the process of a wallet says to the ledger, which is the process that has started it. */
export type Said =
  | { readonly type: 'ready' }
  /** It asks whether the account covers a payment. */
  | { readonly type: 'asks'; readonly paymentId: string; readonly value: string }
  /** The payment has ended, or will never be created. */
  | { readonly type: 'ended'; readonly paymentId: string; readonly how: string }

/** What the ledger answers. */
export interface Answered {
  readonly paymentId: string
  readonly isHeld: boolean
}

/** Runs a wallet until the ledger disconnects, or kills it. */
async function main({ BASE_URL = '', DATA_DIR = '', ...env }: NodeJS.ProcessEnv): Promise<void> {
  const stopped = new Promise((resolve) => process.once('disconnect', resolve))
  const waiting = new Map<string, (isHeld: boolean) => void>()
  process.on('message', ({ paymentId, isHeld }: Answered) => waiting.get(paymentId)?.(isHeld))

  const mayPay: MayPay = async ({ outgoingPaymentId: paymentId, debitAmount: { value } }) => {
    const answer = new Promise<boolean>((resolve) => waiting.set(paymentId, resolve))
    await say({ type: 'asks', paymentId, value })
    return (await answer) ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
  }

  const storage = await openStorage({ baseUrl: BASE_URL, dataDir: DATA_DIR })
  const { stop } = await startWallet({
    adapter: env['ADAPTER'] as AdapterName,
    baseUrl: BASE_URL,
    port: Number(new URL(BASE_URL).port),
    outboundTimeoutMs: Number(env['OUTBOUND_TIMEOUT_MS']),
    storage,
    // The demo does not wait for minutes: it starts a process whose clock is ahead.
    clock: { now: () => Date.now() + Number(env['AHEAD_MS']) },
    mayPay,
    async onEvent(event) {
      switch (event.type) {
        case 'outgoing-payment.completed':
        case 'outgoing-payment.failed':
        case 'outgoing-payment.declined':
          await say({ type: 'ended', paymentId: event.outgoingPaymentId, how: event.type })
      }
    },
  })
  await say({ type: 'ready' })
  await stopped
  await stop()
  await storage.close()
}

function say(message: Said): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, (error: Error | null) => (error ? reject(error) : resolve()))
  })
}

await main(process.env)
