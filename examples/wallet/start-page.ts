import { html, localeFor, page } from 'open-payments-pages'
import type { Handler } from 'open-payments-server'
import type { Account } from './accounts.js'

/** What the page at `/` links to. */
export interface StartPageOptions {
  readonly baseUrl: string
  readonly grantEndpoint: string
  readonly accounts: readonly Account[]
}

/** Serves the page at the path `/` only: `others` serves every other path. */
export function withStartPage(
  start: Handler<string | Uint8Array>,
  others: Handler<string | Uint8Array>,
): Handler<string | Uint8Array> {
  return async (request) => {
    const { method, url } = request
    const isHere = url === '/' && (method === 'GET' || method === 'HEAD')
    return isHere ? start(request) : others(request)
  }
}

/** Shows the accounts of the wallet, and what to try. */
export function startPage({ baseUrl, grantEndpoint, accounts }: StartPageOptions): Handler {
  const rows = accounts.map(
    ({
      url,
      publicName = '',
      assetCode,
    }) => html`<tr><th scope="row"><a href="${url}">${url}</a></th>
      <td>${publicName}</td><td>${assetCode}</td><td><a href="${url}/jwks.json">keys</a></td></tr>`,
  )
  const [payer = baseUrl, payee = baseUrl] = accounts.map(({ url }) => url)
  const client = 'npx open-payments-cli'
  const commands = [
    ['See what clients see first', `curl ${payer}`],
    ['See how grants work here', `curl -X OPTIONS ${grantEndpoint}`],
    ['Check the wallet', `npx open-payments-doctor --allow-private ${payer}`],
    ['Make a key, and add it to an account', `${client} key ${payer} --register ${baseUrl}/keys`],
    ['Pay with it, after you approve', `${client} pay ${payee} --from ${payer} --amount 5.00`],
  ]
  const content = html`<h1>Example wallet</h1>
    <p>This wallet has no login: whoever opens its pages acts as the owner of an account.</p>
    <h2>Accounts</h2>
    <table><thead><tr><th>wallet address</th><th>owner</th><th>asset</th><th></th></tr></thead>
      <tbody>${rows}</tbody></table>
    <h2>Pages of the owners</h2>
    <ul><li><a href="/grants">Connected apps</a></li>
      <li><a href="/keys">Keys of apps</a>: make or register the key of a client here, to use it with an account</li></ul>
    <h2>What to type next</h2>
    ${commands.map(([aim, command]) => html`<p>${aim}:</p><pre><code>${command}</code></pre>`)}
    <p>Grants are requested at <code>${grantEndpoint}</code>, payments at <code>${baseUrl}</code>.</p>`

  return async ({ method }) => {
    const { texts, timeZone } = localeFor({ headers: [] })
    const locale = { tag: 'en', timeZone, texts } // a page for developers
    const shown = page({ title: 'Example wallet', content }, { locale, design: { css } })
    return method === 'HEAD' ? { ...shown, body: '' } : shown
  }
}

const css =
  'main{max-width:52rem}th,td{text-align:start;padding:.25rem 1rem .25rem 0}' +
  'pre{white-space:pre-wrap;margin:0 0 1rem}p:has(+pre){margin:.25rem 0 0}'
