import { createPrivateKey } from 'node:crypto'
import { movementsOf } from 'create-open-payments-server/wallet/start-page/accounts'
import { type StartPage, startPageOf } from 'create-open-payments-server/wallet/start-page/page'
import type { RequestLog } from 'create-open-payments-server/wallet/start-page/requests'
import { type Html, html } from 'open-payments-pages'
import type { SandboxDescription } from './description.js'
import type { AccountWithKey, SandboxWallet } from './wallet.js'

/**
 * The page below `/sandbox`: the start page of the created wallets, with the accounts of both wallets and their keys.
 */
export function sandboxPage(
  wallets: readonly [SandboxWallet, SandboxWallet],
  describe: () => SandboxDescription,
  log: RequestLog,
): StartPage {
  const [{ baseUrl }] = wallets
  const named = (name: string) => describe().accounts[name] as AccountWithKey
  const [alice, dana] = [named('alice').walletAddress, named('dana').walletAddress]
  const dollars = { assetCode: 'USD', assetScale: 2 }
  return startPageOf({
    baseUrl,
    paths: { page: '/sandbox', below: '/sandbox' },
    title: 'Open Payments sandbox',
    intro: html`<p>Two wallets, ${wallets.map((wallet) => wallet.baseUrl).join(' and ')}, that pay each other. Visitors
      act as any owner: see <a href="/apps">connected apps</a>, <a href="/apps?limits">limits for all apps</a> and
      <a href="/keys">keys of apps</a>.</p>`,
    more: () => details(describe()),
    accounts: async () => {
      const shown = wallets.flatMap((wallet) =>
        wallet.accounts().map(async ({ walletAddress: url, publicName: name, ...asset }) => {
          const { assetCode, assetScale } = asset
          const movements = await movementsOf(wallet.resources, url)
          return { url, name, assetCode, assetScale, movements }
        }),
      )
      return Promise.all(shown)
    },
    order: { from: alice, to: dana, amount: { value: '500', ...dollars } },
    client() {
      const { walletAddress, keyId, privateKeyPem } = named('app')
      return { walletAddress, keyId, privateKey: createPrivateKey(privateKeyPem) }
    },
    commands: [
      ['See what clients see first', `curl ${alice}`],
      ['Get all URLs, accounts and private keys', `curl ${baseUrl}/sandbox`],
      ['Check a wallet', `npx open-payments-doctor --allow-private ${alice}`],
      [
        'Advance the time of both wallets by a day',
        `curl -X POST ${baseUrl}/sandbox/clock -H 'content-type: application/json' -d '{"advance":"P1D"}'`,
      ],
    ],
    log,
  })
}

function details({ accounts, now }: SandboxDescription): Html {
  return html`<details class="card"><summary>Keys of the accounts, and the time of the wallets: ${now}</summary>
    ${Object.values(accounts).map(accountKey)}</details>`
}

function accountKey({ walletAddress, keyId, privateKeyPem }: AccountWithKey): Html {
  return html`<p>${walletAddress} signs with <code>${keyId}</code>:</p>
    <pre>${privateKeyPem.trim()}</pre>`
}
