import { randomBytes } from 'node:crypto'
import {
  amountHtml,
  type Design,
  formatInstant,
  formTokens,
  type Html,
  html,
  isForeignForm,
  page,
  seeOther,
} from 'open-payments-pages'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { accountCard, english, type ShownAccount } from './accounts.js'
import {
  type ClientInstance,
  clientPayments,
  type Order,
  type Outcome,
  reasonOf,
} from './payment.js'
import { requestList, requestListScript, requestListStyle, rowsOf } from './request-list.js'
import type { RequestLog } from './requests.js'

export interface StartPageOptions {
  /** The origin of the wallet. */
  readonly baseUrl: string
  /** The path of the page, and the path below which it has what its buttons lead to. */
  readonly paths: { readonly page: string; readonly below: string }
  readonly title: string
  /** Below the title, and below the accounts. */
  readonly intro: Html
  readonly more?: () => Html
  readonly accounts: () => Promise<readonly ShownAccount[]>
  /** What the button pays, between two of the accounts. */
  readonly order: Order
  /** Returns the app that pays, with its current key. */
  readonly client: () => ClientInstance
  /** What to type, each with what it is for. */
  readonly commands: readonly (readonly [aim: string, command: string])[]
  readonly log: RequestLog
  readonly design?: Design
}

/** Serves the start page. Resolves to `undefined` for paths of others. */
export type StartPage = (request: HttpRequest) => Promise<HttpResponse | undefined>

/**
 * Creates a page for developers: it shows the accounts, pays between them with the consent of an owner, and lists the
 * requests. Everything but the refresh of the list and the buttons that copy works without a script.
 */
export function startPageOf(options: StartPageOptions): StartPage {
  const { paths, baseUrl, order, client, log } = options
  const at = (name: string) => `${paths.below}/${name}`
  const payments = clientPayments(client, baseUrl + at('paid'))
  const tokens = formTokens(randomBytes(32))

  async function show(notice?: Html, status = 200): Promise<HttpResponse> {
    const accounts = await options.accounts()
    const token = await tokens.field('pay')
    return pageOf(options, { accounts, token, notice }, at, status)
  }

  async function pay(request: HttpRequest): Promise<HttpResponse> {
    const isOurs = !isForeignForm(request) && (await tokens.isValid(request, 'pay'))
    if (!isOurs) return show(error('This form is not of this page, or too old. Try again.'), 403)
    try {
      return seeOther(await payments.begin(order))
    } catch (problem) {
      return show(error(reasonOf(problem)), 502)
    }
  }

  /** Completes the payment before the browser shows the page, which can then be loaded again. */
  async function paid(query: URLSearchParams): Promise<HttpResponse> {
    const outcome = await payments.finish(query)
    if (outcome === undefined) return show(error('No payment waits for this redirect.'), 400)
    const shown = new URLSearchParams({ payment: query.get('payment') ?? '' })
    return seeOther(`${paths.page}?${shown}`)
  }

  /** Shows what has become of a payment: without a name, of one that the owner has to answer first. */
  async function result(query: URLSearchParams): Promise<HttpResponse> {
    const id = query.get('payment') ?? payments.latestOpen() ?? ''
    const outcome = await payments.outcomeOf(id)
    const again = `${paths.page}?${new URLSearchParams({ payment: id })}`
    return show(
      outcome && outcomeHtml(outcome, { order, again, accounts: await options.accounts() }),
    )
  }

  function newRequests(query: URLSearchParams): HttpResponse {
    const requests = log.list()
    const after = Number(query.get('after') ?? 0)
    // A page that was opened before the wallet was started again has seen none of these.
    const isKnown = after <= (requests.at(-1)?.id ?? 0)
    const rows = rowsOf(requests.filter(({ id }) => !isKnown || id > after))
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      // The rows can be opened as a page: it may load and run nothing.
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'referrer-policy': 'strict-origin',
      'x-content-type-options': 'nosniff',
    }
    return { status: 200, headers, body: rows.toString() }
  }

  return async (request) => {
    const [given = '', search = ''] = request.url.split('?', 2)
    const path = given.replace(/(?<=.)\/$/, '')
    const query = new URLSearchParams(search)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    if (method === 'GET' && path === paths.page) return result(query)
    if (method === 'GET' && path === at('requests')) return newRequests(query)
    if (method === 'GET' && path === at('paid')) return paid(query)
    if (method === 'POST' && path === at('pay')) return pay(request)
    return undefined
  }
}

interface View {
  readonly accounts: readonly ShownAccount[]
  /** The hidden field of the form. */
  readonly token: Html
  readonly notice: Html | undefined
}

function pageOf(
  { title, intro, more, order, client, commands, log, design = {} }: StartPageOptions,
  { accounts, token, notice }: View,
  at: (name: string) => string,
  status: number,
): HttpResponse {
  const nameOf = namesOf(accounts)
  const [from, to] = [nameOf(order.from), nameOf(order.to)]
  const { walletAddress } = client()
  const content = html`<h1>${title}</h1>${intro}${notice}
    <form method="post" action="${at('pay')}" class="card">${token}
      <button class="primary">Pay ${to} ${amountHtml(order.amount, english)}</button>
      <p class="quiet">The app <a href="${walletAddress}">${walletAddress}</a> asks ${from} to pay.
        ${from} approves on the consent page, and the app pays.</p></form>
    <div class="accounts">${accounts.map((account) => accountCard(account, nameOf))}</div>
    ${more?.()}
    <section class="card"><h2>What to type next</h2>
      <p class="quiet">In another terminal, in the folder where you started this server.</p>${commands.map(commandHtml)}</section>
    ${requestList(log.list(), at('requests'))}`
  const css = `${design.css ?? ''}${style}${requestListStyle}`
  const script = `${copyScript}${againScript}${requestListScript}`
  // A browser can have opened the page by another name of this machine.
  const formTarget = order.from
  const screen = { title, content, script, fetches: true, formTarget }
  return page(screen, { locale: english, status, design: { ...design, css } })
}

function commandHtml([aim, command]: readonly [string, string], index: number): Html {
  return html`<p id="aim-${index}">${aim}:</p><div class="command"><pre><code>${unbroken(command)}</code></pre>
    <button type="button" class="copy" aria-describedby="aim-${index}" hidden>Copy</button></div>`
}

/** Keeps a line from ending after the hyphens of an option. */
function unbroken(command: string): readonly Html[] {
  return command
    .split(/( )/)
    .map((word) => html`${word.startsWith('-') ? html`<span class="option">${word}</span>` : word}`)
}

/** What has become of a payment. `again` is the page that attempts an open one again. */
function outcomeHtml(
  outcome: Outcome,
  {
    order,
    again,
    accounts,
  }: {
    readonly order: Order
    readonly again: string
    readonly accounts: readonly ShownAccount[]
  },
): Html {
  const nameOf = namesOf(accounts)
  const [from, to] = [nameOf(order.from), nameOf(order.to)]
  if (outcome.status === 'failed') return error(outcome.reason)
  if (outcome.status === 'delayed') {
    return html`<div class="error" role="alert"><h2>The payment is not made yet</h2><p>${outcome.reason}</p>
      <p><a href="${again}">Try again</a>, with the same quote, which is paid only once.</p></div>`
  }
  if (outcome.status === 'confirming') {
    const { url, until } = outcome
    const by = until !== undefined && html`, until ${formatInstant(until, english)}`
    return html`<div class="done" role="status"><p>The payment waits for ${from}:
      <a href="${url}">confirm or decline it</a>${by}. Nothing is paid before.</p>
      <p class="quiet">The app then <a id="again" href="${again}">continues with the same quote</a>.</p></div>`
  }
  const sentences = {
    paid: html`${from} has paid ${to} ${amountHtml(order.amount, english)}.`,
    denied: html`${from} has denied the payment.`,
    declined: html`${from} has declined the payment. Nothing is paid.`,
    unanswered: html`${from} has not answered in time. Nothing is paid.`,
    pending: html`The payment was created. The wallet has not sent it yet: <a href="${again}">look again</a>.`,
  }
  return html`<p class="done" role="status">${sentences[outcome.status]}</p>`
}

function error(reason: string): Html {
  return html`<div class="error" role="alert"><h2>The payment failed</h2><p>${reason}</p></div>`
}

/** Returns the name of each account, and of other wallet addresses the URL. */
function namesOf(accounts: readonly ShownAccount[]): (walletAddress: string) => string {
  return (walletAddress) => accounts.find(({ url }) => url === walletAddress)?.name ?? walletAddress
}

const style = `
header,main,footer{max-width:64rem}h1{font-size:1.75rem}
.accounts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,16rem),1fr));gap:0 1rem}
.done{margin-block-end:1rem}.balance{font-size:1.5rem;font-weight:700;margin:.5rem 0}
.command{display:flex;flex-wrap:wrap;gap:.5rem;align-items:start;margin-block-end:1rem}
pre{flex:1 1 min(100%,20rem);min-width:0;margin:0;padding:.6rem .75rem;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--border);border-radius:calc(var(--radius)*.5);background:var(--background)}
.option{display:inline-block;max-width:100%}p:has(+.command){margin:.25rem 0}`

/** An app that comes back into view continues what waited for an answer on another page. */
const againScript = `
if(document.getElementById('again')){
  document.addEventListener('visibilitychange',()=>{if(!document.hidden)location.reload()})
  addEventListener('pageshow',({persisted})=>{if(persisted)location.reload()})
}`

/** Without a script, or where a page cannot write to the clipboard, there are no buttons that copy. */
const copyScript = `
for(const button of navigator.clipboard?document.querySelectorAll('.copy'):[]){
  button.hidden=false
  button.onclick=async()=>{
    await navigator.clipboard.writeText(button.previousElementSibling.textContent)
    button.textContent='Copied'
    setTimeout(()=>{button.textContent='Copy'},2000)
  }
}`
