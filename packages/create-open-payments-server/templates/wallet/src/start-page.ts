import { html, localeFor, page } from 'open-payments-pages'
import type { Handler } from 'open-payments-server'
import { design } from './design.js'

/** Shows what to try, at the path `/` only. Replace it with your own first page: `others` serves every other path. */
export function withStartPage(baseUrl: string, others: Handler): Handler {
  const [alice, bob] = [`${baseUrl}/alice`, `${baseUrl}/bob`]
  const client = 'npx open-payments-cli'
  const commands = [
    ['See what clients see first', `curl ${alice}`],
    ['See how grants work here', `curl -X OPTIONS ${baseUrl}/auth`],
    ['Check the wallet', `npx open-payments-doctor --allow-private ${alice}`],
    [
      'Make a key, which Alice adds to her account',
      `${client} key ${alice} --register ${baseUrl}/keys`,
    ],
    ['Pay with it, after she has approved', `${client} pay ${bob} --from ${alice} --amount 5.00`],
  ]
  const content = html`<h1>Your wallet</h1>
    <p>It runs. Owners sign in as <code>alice</code> or <code>bob</code> with the <code>DEMO_PASSWORD</code>.</p>
    <h2>Accounts</h2>
    <ul>${[alice, bob].map((url) => html`<li><a href="${url}">${url}</a>, <a href="${url}/jwks.json">keys</a></li>`)}</ul>
    <h2>Pages of the owners</h2>
    <ul><li><a href="/apps">Connected apps</a></li><li><a href="/keys">Keys of their own apps</a></li></ul>
    <h2>What to type next</h2>
    ${commands.map(([aim, command]) => html`<p>${aim}:</p><pre><code>${command}</code></pre>`)}`
  const css = `${design.css ?? ''}pre{white-space:pre-wrap;margin:0 0 1rem}p:has(+pre){margin:.25rem 0 0}`

  return async (request) => {
    const { method, url } = request
    if (url !== '/' || (method !== 'GET' && method !== 'HEAD')) return others(request)
    const { texts, timeZone } = localeFor({ headers: [] })
    const locale = { tag: 'en', timeZone, texts } // a page for developers
    const shown = page({ title: 'Your wallet', content }, { locale, design: { ...design, css } })
    return method === 'HEAD' ? { ...shown, body: '' } : shown
  }
}
