import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from 'open-payments-programs'
import { accessTo, dollars, refused, type Scene } from './app.js'
import { approved } from './consent.js'
import { money } from './money.js'
import { step, tell } from './story.js'
import type { DemoSettings } from './wallet.js'
import type { Answered, Said } from './wallet-process.js'

/** Payments are reserved while the wallet asks its ledger, and nothing is lost if its process dies meanwhile. */
export async function reserve(
  app: Pick<Scene, 'client' | 'shop'>,
  settings: DemoSettings,
): Promise<void> {
  const ledger = createLedger(1_500n)
  const directory = await mkdtemp(join(tmpdir(), 'open-payments-demo-'))
  const baseUrl = `http://localhost:${await freePort()}`
  let wallet: ChildProcess | undefined
  /** Starts the wallet on the data of its last process. */
  async function start(aheadMs: number): Promise<void> {
    wallet = fork(new URL('./wallet-process.ts', import.meta.url), {
      execArgv: ['--import', 'tsx'],
      env: {
        ...process.env,
        BASE_URL: baseUrl,
        DATA_DIR: directory,
        ADAPTER: settings.adapter,
        OUTBOUND_TIMEOUT_MS: `${settings.outboundTimeoutMs}`,
        AHEAD_MS: `${aheadMs}`,
      },
    })
    await ledger.serve(wallet)
  }
  try {
    step('A wallet starts, whose ledger is another process')
    await start(0)
    tell('the ledger', `has ${money(dollars('1500'))} for Alice`)
    const payer = await payerOf({ ...app, baseUrl })
    await refuseForFunds(payer, ledger)
    const lost = await dieWhileReserved(payer, ledger, '500')
    step('The wallet starts again, and the app repeats its request after half a minute')
    await start(60_000)
    await repeat(payer, ledger, lost)
    await dieWhileReserved(payer, ledger, '300')
    step('Five minutes later, the wallet has started again, and its sweep declines the payment')
    await start(6 * 60_000)
    await releaseUndecided(payer, ledger)
  } finally {
    if (wallet?.connected) {
      const ended = once(wallet, 'exit')
      wallet.disconnect()
      await ended
    }
    await rm(directory, { recursive: true, force: true })
  }
}

type Ledger = ReturnType<typeof createLedger>

/** The account of Alice, with what is held for payments. */
function createLedger(balance: bigint) {
  const holds = new Map<string, bigint>()
  const asked: string[] = []
  const ended = new Map<string, string>()
  let killsNext = false
  const heldValue = () => [...holds.values()].reduce((sum, value) => sum + value, 0n)

  function hold(paymentId: string, value: bigint): boolean {
    const others = heldValue() - (holds.get(paymentId) ?? 0n)
    // A call about a payment that has ended comes late.
    if (ended.has(paymentId) || value > balance - others) return false
    holds.set(paymentId, value)
    return true
  }

  function hear(wallet: ChildProcess, said: Said): void {
    if (said.type === 'asks') {
      const { paymentId, value } = said
      asked.push(paymentId)
      const isHeld = hold(paymentId, BigInt(value))
      if (killsNext) {
        killsNext = false
        wallet.kill('SIGKILL')
      } else wallet.send({ paymentId, isHeld } satisfies Answered)
    } else if (said.type === 'ended') {
      holds.delete(said.paymentId)
      ended.set(said.paymentId, said.how)
    }
  }

  return {
    asked: asked as readonly string[],
    /** The event of the end of a payment. */
    endOf: (paymentId: string) => ended.get(paymentId),
    /** Answers a wallet. Resolves when the wallet has started. */
    async serve(wallet: ChildProcess): Promise<void> {
      const ready = new Promise<void>((resolve, reject) => {
        wallet.on('message', (said: Said) => {
          if (said.type === 'ready') resolve()
          else hear(wallet, said)
        })
        wallet.once('exit', () => reject(new Error('the process of the wallet has ended')))
      })
      await ready
    },
    /** Kills the process of the wallet before it gets the next answer. */
    killNext() {
      killsNext = true
    },
    held: () => money(dollars(`${heldValue()}`)),
  }
}

type Payer = Awaited<ReturnType<typeof payerOf>>

/** The app, with Alice's permission to pay USD 30.00. */
async function payerOf(scene: Scene) {
  const { client, baseUrl } = scene
  const walletAddress = `${baseUrl}/alice`
  const { url, accessToken } = await accessTo(scene, [
    { type: 'incoming-payment', actions: ['create'] },
    { type: 'quote', actions: ['create'] },
  ])
  const requesting = { url, accessToken }
  const limits = { debitAmount: dollars('3000') }
  const paying = { url, accessToken: await approved(scene, walletAddress, limits) }
  return {
    async quote(value: string): Promise<string> {
      const bob = { walletAddress: `${baseUrl}/bob` }
      const { id: receiver } = await client.incomingPayment.create(requesting, bob)
      const asked = { walletAddress, receiver, method: 'ilp' as const, debitAmount: dollars(value) }
      return (await client.quote.create(requesting, asked)).id
    },
    pay: (quoteId: string) => client.outgoingPayment.create(paying, { walletAddress, quoteId }),
    async spent(): Promise<string> {
      const { spentDebitAmount } = await client.outgoingPayment.getGrantSpentAmounts(paying)
      return money(spentDebitAmount ?? dollars('0'))
    },
  }
}

async function refuseForFunds(payer: Payer, ledger: Ledger): Promise<void> {
  step('The app pays USD 20.00, which Alice permits, but does not have')
  const quote = await payer.quote('2000')
  await refused(payer.pay(quote), 403, 'insufficient_funds')
  tell('USD 20.00', 'refused: insufficient funds')
  await refused(payer.pay(quote), 403, 'insufficient_funds')
  assert.equal(ledger.asked.length, 1)
  tell('repeated', 'the same refusal, without asking the ledger again')
  assert.equal(await payer.spent(), 'USD 0.00')
  tell('the limit', 'USD 0.00 of USD 30.00 is spent')

  step('A smaller payment passes')
  const payment = await payer.pay(await payer.quote('400'))
  assert.equal(ledger.held(), 'USD 4.00')
  tell('outgoing payment', payment.id)
  tell('the ledger', `holds ${ledger.held()} until the payment ends`)
}

/** Returns the quote of the payment. */
async function dieWhileReserved(payer: Payer, ledger: Ledger, value: string): Promise<string> {
  step(`The ledger holds ${money(dollars(value))}, and the wallet dies before it gets the answer`)
  const quote = await payer.quote(value)
  ledger.killNext()
  await assert.rejects(payer.pay(quote))
  tell('the app', 'gets no response')
  tell('the ledger', `holds ${ledger.held()}`)
  return quote
}

async function repeat(payer: Payer, ledger: Ledger, quote: string): Promise<void> {
  const before = ledger.held()
  const payment = await payer.pay(quote)
  const [first, again] = ledger.asked.slice(-2)
  assert.equal(again, first)
  assert(payment.id.endsWith(`/${again}`))
  assert.equal(ledger.held(), before)
  tell('outgoing payment', payment.id)
  tell('the ledger', `was asked again about the same payment, and holds ${before}`)
  assert.equal(await payer.spent(), 'USD 9.00')
  tell('the limit', 'USD 9.00 of USD 30.00 is reserved')
}

async function releaseUndecided(payer: Payer, ledger: Ledger): Promise<void> {
  const [paymentId = ''] = ledger.asked.slice(-1)
  // The event arrives soon after the sweep.
  while (ledger.endOf(paymentId) === undefined) await sleep(50)
  assert.equal(ledger.endOf(paymentId), 'outgoing-payment.declined')
  tell('event', 'outgoing-payment.declined')
  assert.equal(ledger.held(), 'USD 9.00')
  tell('the ledger', `releases USD 3.00, and holds ${ledger.held()}`)
  assert.equal(await payer.spent(), 'USD 9.00')
  tell('the limit', 'USD 9.00 of USD 30.00 is reserved')
}
