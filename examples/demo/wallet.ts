import { randomBytes } from 'node:crypto'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { serverOf as fastify } from 'create-open-payments-server/frameworks/fastify'
import { serverOf as hono } from 'create-open-payments-server/frameworks/hono'
import { exchangeFor } from 'create-open-payments-server/wallet/exchange'
import { openAccount, openDemoAccounts } from 'create-open-payments-server/wallet/ledger'
import { serverOf as express } from 'create-open-payments-server/wallet/server'
import type { WalletSettings } from 'create-open-payments-server/wallet/settings'
import type { Database } from 'create-open-payments-server/wallet/sql'
import { type StartOptions, startWallet } from 'create-open-payments-server/wallet/start'
import { migrate } from 'create-open-payments-server/wallet/tables'
import type { Wallet, WalletPorts } from 'create-open-payments-server/wallet/wallet'
import { remoteClientKeys } from 'open-payments-server'
import { demoPassword } from './browser.js'

/** The wallets of the demo charge 1 %. */
export const fee = { basisPoints: 100n, fixed: 0n }

export const adapters = { express, fastify, hono }
export type AdapterName = keyof typeof adapters

export interface DemoSettings {
  readonly adapter: AdapterName
  /** How long a wallet waits for other servers. */
  readonly outboundTimeoutMs: number
}

/** A wallet, and its work between requests if that is another than that of a created wallet. */
interface Created<Kind extends Wallet> extends Pick<StartOptions, 'work'> {
  readonly wallet: Kind
}

export interface DemoOptions<Kind extends Wallet> extends DemoSettings {
  readonly baseUrl: string
  /** Default: that of `baseUrl`. */
  readonly port?: number
  readonly database: Database
  readonly create: (
    settings: WalletSettings,
    database: Database,
    ports: WalletPorts,
  ) => Created<Kind> | Promise<Created<Kind>>
}

/** Starts the wallet of `npm create`, in which Carol has an account in euros. */
export async function startDemoWallet<Kind extends Wallet>(
  options: DemoOptions<Kind>,
): Promise<{ readonly wallet: Kind; readonly stop: () => Promise<void> }> {
  const { adapter, outboundTimeoutMs: timeoutMs, baseUrl, database, create } = options
  // By default, Node.js gives up an address of localhost after 250 ms, which are short for a busy machine.
  setDefaultAutoSelectFamilyAttemptTimeout(timeoutMs)
  await migrate(database)
  await openDemoAccounts(database, baseUrl)
  const euros = { assetCode: 'EUR', assetScale: 2, balance: 10_000n }
  const carol = { url: `${baseUrl}/carol`, owner: 'carol', publicName: 'Carol', ...euros }
  await openAccount(database, carol)
  const secrets = { sessionSecret: randomBytes(32), paymentDetailsSecret: randomBytes(32) }
  // Its clients can show the page on which an owner confirms a payment.
  const settings = { baseUrl, ...secrets, demoPassword, confirmAbove: 50n }
  const { wallet, work } = await create(settings, database, {
    exchanges: exchangeFor(fee),
    clientKeys: remoteClientKeys({ allowLoopback: true, timeoutMs }),
    onRefusal: () => undefined, // the demo shows them
  })
  const { port = Number(new URL(baseUrl).port) } = options
  const served = { port, host: 'localhost' }
  const mount = adapters[adapter]
  return { wallet, stop: await startWallet(wallet, served, { mount, ...(work && { work }) }) }
}
