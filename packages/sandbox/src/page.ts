import { createHash } from 'node:crypto'
import { type Html, html, trustedHtml } from 'open-payments-pages'
import type { HttpResponse } from 'open-payments-server/adapter'
import type { SandboxDescription } from './description.js'
import type { RecordedRequest } from './requests.js'

/** The page with the accounts, and a list of requests that grows while it is open. */
export function pageOf(
  { accounts, wallets, now }: SandboxDescription,
  requests: readonly RecordedRequest[],
): HttpResponse {
  const rows = [...requests].reverse().map((request) => trustedHtml(rowOf(request)))
  const body = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Open Payments sandbox</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${trustedHtml(style)}</style></head><body>
<header><h1>Open Payments sandbox</h1>
<p>${wallets.map(({ url }) => url).join(' and ')}; time of the wallets: ${now}</p></header>
<details><summary>Accounts and keys</summary><table><thead><tr><th>Wallet address</th><th>Currency</th><th>keyid</th><th>Private key</th></tr></thead>
<tbody>${Object.values(accounts).map(accountRow)}</tbody></table></details>
<h2 id="requests">Requests <small>the newest first</small></h2>
<p class="filters"><label><input type="checkbox" id="refused"> only refused</label>
<span id="state" role="status"></span></p>
<table aria-labelledby="requests"><thead><tr><th>Time</th><th>Wallet</th><th>Request</th><th>Status</th><th>Reason</th></tr></thead>
<tbody id="rows">${rows}</tbody></table>
<p class="empty">Nothing yet. Requests to both wallets appear here as they are answered.</p>
<script>${trustedHtml(script)}</script></body></html>`
  const hash = createHash('sha256').update(script).digest('base64')
  const policy = `default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'sha256-${hash}'; frame-ancestors 'none'`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
  }
  return { status: 200, headers, body: body.toString() }
}

function accountRow(account: SandboxDescription['accounts'][string]): Html {
  const { walletAddress, assetCode, keyId, privateKeyPem } = account
  return html`<tr><td>${walletAddress}</td><td>${assetCode}</td><td>${keyId}</td><td><pre>${privateKeyPem.trim()}</pre></td></tr>`
}

/** Returns a request as one line of HTML. */
export function rowOf(request: RecordedRequest): string {
  const { at, clock, wallet, method, path, operation, status, ms, code, refusal, reason, fault } =
    request
  const { keyid, client, consent } = request
  const kinds = [
    (status === undefined || status >= 400) && 'refused',
    fault !== undefined && 'faulty',
  ]
  const details = [
    operation,
    keyid && `keyid ${keyid}`,
    client,
    consent && 'decided by rule',
    fault && `fault ${fault}`,
  ]
  const row = html`<tr class="${kinds.filter(Boolean).join(' ')}"><td>${at.slice(11, 23)}${clock && html`<small>wallets: ${clock.slice(0, 19)}</small>`}</td>
<td>:${new URL(wallet).port}</td>
<td><b>${method}</b> ${path}<small>${details.filter(Boolean).join(' · ')}</small></td>
<td>${status ?? 'none'}<small>${[code, `${ms} ms`].filter(Boolean).join(' · ')}</small></td>
<td>${refusal && html`<code>${refusal}</code><br>`}${reason}</td></tr>`
  return row.toString().replaceAll('\n', '')
}

const style = `
:root{color-scheme:light dark;--line:color-mix(in srgb,CanvasText 18%,Canvas);--soft:color-mix(in srgb,CanvasText 65%,Canvas);
--bad:light-dark(#b3261e,#ff8a80);--badsoft:light-dark(#fdecea,#3a1513);--fault:light-dark(#8a5a00,#ffc766)}
body{font:15px/1.45 system-ui,sans-serif;background:Canvas;color:CanvasText;margin:0 auto;max-width:1200px;padding:16px 24px}
h1{font-size:1.5rem;margin:.3rem 0}h2{font-size:1.15rem;margin:1.2rem 0 .3rem}header p,h2 small{color:var(--soft);font-weight:normal;margin:0}
table{border-collapse:collapse;width:100%}th{text-align:start;color:var(--soft);font-weight:600;font-size:.85rem}
th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
td:nth-child(1),td:nth-child(2){white-space:nowrap;font-variant-numeric:tabular-nums}
#rows td:nth-child(3){width:45%}#rows td:nth-child(5){width:28%}
td small{display:block;color:var(--soft);font-size:.8rem}
.refused td:nth-child(4){color:var(--bad);font-weight:600}.refused{background:var(--badsoft)}
.faulty td:nth-child(5){color:var(--fault)}
code,pre{font:.85rem/1.4 ui-monospace,monospace}pre{margin:0;white-space:pre-wrap}
summary{cursor:pointer;margin-top:1rem}.filters{display:flex;gap:1.2rem;margin:.2rem 0 .5rem;flex-wrap:wrap}
body:has(#refused:checked) #rows tr:not(.refused){display:none}
#state{color:var(--bad)}table:has(#rows tr)~.empty{display:none}.empty{color:var(--soft)}
@media(max-width:700px){body{padding:12px}th:nth-child(2),td:nth-child(2){display:none}#rows td{padding-inline-end:8px}}`

const script = `
const rows=document.getElementById('rows'),state=document.getElementById('state')
const source=new EventSource('/sandbox/requests')
source.onmessage=({data})=>{rows.insertAdjacentHTML('afterbegin',data);while(rows.rows.length>500)rows.lastElementChild.remove()}
source.onerror=()=>{state.textContent='The sandbox has stopped.'}
source.onopen=()=>{if(state.textContent)location.reload()}`
