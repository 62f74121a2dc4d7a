import { startBackground } from 'create-open-payments-server/wallet/background'
import { type Ledger, ledgerOn } from 'create-open-payments-server/wallet/ledger'
import { createWallet } from 'create-open-payments-server/wallet/wallet'
import type { EventHandler } from 'open-payments-server'
import { openEmbedded } from '../created-wallet/embedded-database.js'
import { type AdapterName, startDemoWallet } from './wallet.js'

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

  const hold: Ledger['hold'] = async ({ outgoingPaymentId: paymentId, debitAmount: { value } }) => {
    const answer = new Promise<boolean>((resolve) => waiting.set(paymentId, resolve))
    await say({ type: 'asks', paymentId, value })
    return answer
  }
  /** Sends nothing: the ledger only hears what has ended. */
  const handler: EventHandler = async (event) => {
    switch (event.type) {
      case 'outgoing-payment.completed':
      case 'outgoing-payment.failed':
      case 'outgoing-payment.declined':
        await say({ type: 'ended', paymentId: event.outgoingPaymentId, how: event.type })
    }
  }

  const database = await openEmbedded(DATA_DIR)
  const { stop } = await startDemoWallet({
    adapter: env['ADAPTER'] as AdapterName,
    baseUrl: BASE_URL,
    outboundTimeoutMs: Number(env['OUTBOUND_TIMEOUT_MS']),
    database,
    create(settings, database, ports) {
      const wallet = createWallet(settings, database, {
        ...ports,
        ledger: { ...ledgerOn(database), hold },
        // The demo does not wait for minutes: it starts a process whose clock is ahead.
        clock: { now: () => Date.now() + Number(env['AHEAD_MS']) },
        signatures: { clock: { now: () => Date.now() } },
      })
      return { wallet, work: () => startBackground(wallet, handler) }
    },
  })
  await say({ type: 'ready' })
  await stopped
  await stop()
  await database.close()
}

function say(message: Said): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, (error: Error | null) => (error ? reject(error) : resolve()))
  })
}

await main(process.env)
