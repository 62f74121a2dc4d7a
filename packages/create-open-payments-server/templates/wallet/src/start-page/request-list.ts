import { type Html, html } from 'open-payments-pages'
import type { RecordedRequest } from './requests.js'

/** Returns requests as rows of the table, the newest first. */
export function rowsOf(requests: readonly RecordedRequest[]): Html {
  return html`${[...requests].reverse().map(rowOf)}`
}

/** Returns the list of requests, which `requestListScript` keeps up to date. */
export function requestList(requests: readonly RecordedRequest[], url: string): Html {
  return html`<section class="card"><h2 id="requests">Requests</h2>
    <p class="quiet">The newest first, each with the reason of its refusal, which clients do not see.
      <span id="state" role="status"></span></p>
    <label class="only" hidden><input type="checkbox" id="refused"> only refused</label>
    <label class="only older"><input type="checkbox" id="older"> also those before the newest ten</label>
    <table aria-labelledby="requests"><thead><tr><th>Time</th><th>Request</th><th>Status</th><th>Reason</th></tr></thead>
    <tbody id="rows" data-url="${url}">${rowsOf(requests)}</tbody></table>
    <p class="empty quiet">Nothing yet. Requests appear here as they are answered.</p></section>`
}

function rowOf(request: RecordedRequest): Html {
  const { id, at, clock, wallet, method, path, operation, status, ms } = request
  const { code, refusal, reason, fault, keyid, client, consent } = request
  const isRefused = status === undefined || status >= 400
  const details = [
    new URL(wallet).host,
    operation,
    keyid && `keyid ${keyid}`,
    client,
    consent,
    fault && `fault ${fault}`,
  ]
  return html`<tr data-id="${id}"${isRefused && html` class="refused"`}>
    <td>${at.slice(11, 19)}${clock && html`<small>wallets: ${clock.slice(0, 19)}</small>`}</td>
    <td><b>${method}</b> ${path}<small>${details.filter(Boolean).join(' · ')}</small></td>
    <td>${status ?? 'none'}<small>${[code, `${ms} ms`].filter(Boolean).join(' · ')}</small></td>
    <td>${refusal && html`<code>${refusal}</code> `}${reason}</td></tr>`
}

export const requestListStyle = `
table{border-collapse:collapse;width:100%;font-size:.9375rem}th{text-align:start;color:var(--muted);font-weight:600}
th,td{padding:.4rem .75rem .4rem 0;border-block-end:1px solid var(--border);vertical-align:top;overflow-wrap:anywhere}
td:first-child{white-space:nowrap;font-variant-numeric:tabular-nums}td small{display:block;color:var(--muted)}
.refused td:nth-child(3){color:var(--danger);font-weight:600}.refused td:first-child{border-inline-start:4px solid var(--danger);padding-inline-start:.5rem}
.only{font-weight:400}.only input{display:inline;width:auto;min-height:0}
body:has(#refused:checked) #rows tr:not(.refused){display:none}
body:not(:has(#older:checked)):not(:has(#refused:checked)) #rows tr:nth-child(n+11){display:none}
body:has(#refused:checked):not(:has(#older:checked)) #rows tr:nth-child(n+11 of .refused){display:none}
body:not(:has(#rows tr:nth-child(11))) .older{display:none}
#state{color:var(--danger)}table:has(#rows tr)~.empty{display:none}
@media(max-width:40rem){thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tbody{display:block}tr{display:flex;flex-wrap:wrap;border-block-end:1px solid var(--border);padding-block:.4rem}
td{border:0;padding:.1rem .75rem .1rem 0}td:nth-child(2){order:1;flex-basis:100%}td:nth-child(4){order:2;flex-basis:100%}
td:nth-child(3) small{display:inline;margin-inline-start:.5rem}td:empty{display:none}
.refused{border-inline-start:4px solid var(--danger);padding-inline-start:.5rem}.refused td:first-child{border:0;padding-inline-start:0}}`

/** Asks for newer requests each second. The page is complete without it. */
export const requestListScript = `
const rows=document.getElementById('rows'),state=document.getElementById('state'),rowsMax=500
document.querySelector('.only').hidden=false
async function refresh(){
  if(!document.hidden)try{
    const newest=rows.firstElementChild?.dataset.id??0
    const response=await fetch(rows.dataset.url+'?after='+newest,{headers:{accept:'text/html'}})
    if(!response.ok)throw new Error(response.status)
    rows.insertAdjacentHTML('afterbegin',await response.text())
    while(rows.rows.length>rowsMax)rows.lastElementChild.remove()
    if(state.textContent)location.reload()
  }catch{state.textContent='The wallet does not respond.'}
  setTimeout(refresh,1000)
}
setTimeout(refresh,1000)`
