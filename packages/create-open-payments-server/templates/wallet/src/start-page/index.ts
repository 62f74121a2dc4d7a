import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { type Design, html, type OwnedKey } from 'open-payments-pages'
import { clientKeysOn } from '../client-keys.js'
import { design } from '../design.js'
import { isForHost } from '../hosts.js'
import { ledgerOn, openAccount } from '../ledger.js'
import { createLogin } from '../login.js'
import { isProduction, type WalletSettings } from '../settings.js'
import type { Database } from '../sql.js'
import { createWallet, reportRefusal, type Wallet, type WalletPorts } from '../wallet.js'
import { movementsOf } from './accounts.js'
import { startPageOf } from './page.js'
import { recorder, requestLog } from './requests.js'

const dollars = { assetCode: 'USD', assetScale: 2 }

const signIn = html`Sign in as <code>alice</code> or <code>bob</code>, with the password that
  <code>.env</code> or the terminal shows: <code>DEMO_PASSWORD</code>`

/**
 * Creates the wallet with a page at `/` for developers, on which an app pays between the accounts of alice and bob. The
 * page shows balances and the reasons of refusals to everyone who reaches it. With `NODE_ENV=production`, there is
 * none.
 *
 * To remove it, delete this folder, and call `createWallet` in `main.ts`.
 */
export async function createWithStartPage(
  settings: WalletSettings,
  database: Database,
  ports: WalletPorts = {},
): Promise<Wallet> {
  if (isProduction()) return createWallet(settings, database, ports)
  const { baseUrl } = settings
  const shop = `${baseUrl}/shop`
  const opened = { url: shop, owner: 'shop', publicName: 'Demo shop', balance: 0n, ...dollars }
  await openAccount(database, opened)
  const { key, ...client } = newClient(shop)

  const look: Design = { ...design, footer: html`<a href="/">Start page for developers</a>` }
  const {
    ledger = ledgerOn(database),
    keys = clientKeysOn(database),
    login = createLogin(settings, { design: look, hint: html`<p class="quiet">${signIn}.</p>` }),
    onRefusal = reportRefusal,
  } = ports
  const log = requestLog()
  const { noteRefusal, recorded } = recorder(log, baseUrl)
  const wallet = createWallet(settings, database, {
    ...ports,
    design: look,
    ledger,
    login,
    keys: { ...keys, of: async (url) => [...(url === shop ? [key] : []), ...(await keys.of(url))] },
    onRefusal(report) {
      noteRefusal(report)
      onRefusal(report)
    },
  })

  const [alice, bob] = [`${baseUrl}/alice`, `${baseUrl}/bob`]
  const startPage = startPageOf({
    baseUrl,
    paths: { page: '/', below: '/start-page' },
    title: 'Your wallet',
    intro: html`<p>It runs. ${signIn}. Owners see their <a href="/apps">connected apps</a>, set
      <a href="/apps?limits">limits for all</a>, register the <a href="/keys">keys of their own apps</a>, and
      <a href="/send">send money</a>.</p>`,
    async accounts() {
      const found = await Promise.all([alice, bob].map((url) => ledger.find(url)))
      const known = found.flatMap((account) => (account === undefined ? [] : [account]))
      return Promise.all(
        known.map(async ({ url, publicName: name = url, assetCode, assetScale, balance }) => {
          const movements = await movementsOf(wallet.resources, url)
          return { url, name, assetCode, assetScale, balance, movements }
        }),
      )
    },
    order: { from: alice, to: bob, amount: { value: '500', ...dollars } },
    client: () => client,
    commands: commandsFor(baseUrl),
    log,
    design,
  })
  const others = recorded(wallet.handle)
  const host = new URL(baseUrl).hostname
  return {
    ...wallet,
    async handle(request) {
      const page = isForHost(request, [host]) ? await startPage(request) : undefined
      return page ?? others(request)
    },
  }
}

/** What to type next, each with what it is for. */
function commandsFor(baseUrl: string): readonly (readonly [aim: string, command: string])[] {
  const [alice, bob] = [`${baseUrl}/alice`, `${baseUrl}/bob`]
  const client = 'npx open-payments-cli'
  return [
    ['See what clients see first', `curl ${alice}`],
    ['See how grants work here', `curl -X OPTIONS ${baseUrl}/auth`],
    ['Check the wallet', `npx open-payments-doctor --allow-private ${alice}`],
    [
      'Make a key, which Alice adds to her account',
      `${client} key ${alice} --register ${baseUrl}/keys`,
    ],
    ['Pay with it, after she has approved', `${client} pay ${bob} --from ${alice} --amount 5.00`],
  ]
}

/** A client with a new key, and this key as its account publishes it. */
function newClient(walletAddress: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const keyId = `start-page-${randomUUID().slice(0, 8)}`
  const key: OwnedKey = { kid: keyId, x, name: 'Start page', addedAt: 0 }
  return { walletAddress, keyId, privateKey, key }
}
