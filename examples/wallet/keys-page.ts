import { createHash, randomUUID } from 'node:crypto'
import { type Handler, readClientKey } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import type { Account, Accounts } from './accounts.js'
import { formatInstant, isolated, type Locale, localeFor } from './locale.js'
import { escapeHtml, fieldsOf, notice, page, seeOther, wrongMethod } from './page.js'
import type { KeyConflict, RegisteredKey, RegisteredKeys } from './registered-keys.js'
import { isForeignForm, type Session } from './session.js'

/** Why a key was not added: a sentence of this wallet, or one of the library. */
type Problem = 'name' | KeyConflict | { readonly reason: string }

const nameLengthMax = 64
const nameForm = /^\P{Cc}{1,64}$/u

/**
 * The page where an account's owner registers the public keys of apps, and revokes them. An app can link to it with
 * `account`, `name` and `key` in the query, which only fill the form.
 */
export function keysPage(
  keys: RegisteredKeys,
  accounts: Pick<Accounts, 'all' | 'ownedBy'>,
  session: Session,
): Handler {
  async function add({ url, keys: own }: Account, form: URLSearchParams) {
    const read = readClientKey(form.get('key') ?? '')
    if (!read.ok) return read
    const { x } = read.key
    const kid = form.get('kid')?.trim() || read.key.kid || randomUUID()
    const named = readClientKey(JSON.stringify({ ...ed25519, x, kid }))
    if (!named.ok) return named
    const name = form.get('name')?.trim() ?? ''
    if (name.length > nameLengthMax || !nameForm.test(name)) return 'name'
    if (own?.some((key) => key.kid === kid)) return 'kidTaken'
    return keys.add(url, { kid, x, name, addedAt: Date.now() })
  }

  async function submitted(account: Account, form: URLSearchParams): Promise<Problem | 'done'> {
    const revoked = form.get('revoke')
    if (revoked !== null) await keys.revoke(account.url, revoked)
    const outcome = revoked === null ? await add(account, form) : 'added'
    return outcome === 'added' ? 'done' : outcome
  }

  /** Shows the keys of an account, and the form with what a link or a refused form contains. */
  async function show(
    account: Account,
    owned: readonly Account[],
    given: URLSearchParams,
    locale: Locale,
    problem?: Problem,
  ): Promise<HttpResponse> {
    const { messages } = locale
    const done = given.get('done')
    const status = done === 'added' || done === 'revoked' ? messages.keys[done] : undefined
    const entries = (await keys.of(account.url)).map((key, index) =>
      entry(account, key, index, locale),
    )
    const content = `${problem === undefined ? '' : error(problem, locale)}
      ${status === undefined ? '' : `<p role="status">${escapeHtml(status)}</p>`}
      <p>${escapeHtml(messages.consent.signedIn(isolated(account.owner, messages)))}</p>
      <p>${escapeHtml(messages.keys.purpose)}</p>
      ${entries.join('') || `<p>${escapeHtml(messages.keys.none)}</p>`}
      ${formFor(account, owned, given, locale)}`
    return page(problem === undefined ? 200 : 400, messages.keys.title, content, { locale, script })
  }

  return async (request) => {
    const { method, url } = request
    const [path, query] = url.split('?', 2)
    const owner = session.ownerOf(request)
    const owned = owner === undefined ? [] : accounts.ownedBy(owner)
    const locale = localeFor(request, owned[0]?.locale)
    if (path !== '/keys') return notice(404, 'unknown', locale)
    if (method === 'POST' && isForeignForm(request)) return notice(403, 'unknown', locale)
    if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return wrongMethod(locale)
    if (owner === undefined) return signIn(request, accounts, session, locale)
    const given = method === 'POST' ? fieldsOf(request) : new URLSearchParams(query)
    const wanted = given.get('account') ?? owned[0]?.url
    const account = owned.find((each) => each.url === wanted)
    if (account === undefined) return notice(403, 'notYours', locale)
    if (method === 'POST') {
      const outcome = await submitted(account, given)
      if (outcome !== 'done') return show(account, owned, given, locale, outcome)
      const done = given.has('revoke') ? 'revoked' : 'added'
      return seeOther(`/keys?${new URLSearchParams({ account: account.url, done })}`)
    }
    const linked = given.get('key')
    const read = linked === null ? undefined : readClientKey(linked)
    return show(account, owned, given, locale, read?.ok === false ? read : undefined)
  }
}

/** Because this is a demo, visitors choose whom they are: a real wallet uses its own login here. */
function signIn(
  request: HttpRequest,
  { all }: Pick<Accounts, 'all'>,
  session: Session,
  locale: Locale,
): HttpResponse {
  const wanted = fieldsOf(request).get('owner') ?? ''
  if (all.some(({ owner }) => owner === wanted)) {
    const { headers, ...response } = seeOther(request.url)
    return { ...response, headers: { ...headers, 'set-cookie': session.cookieFor(wanted) } }
  }
  const { title, signIn: question } = locale.messages.keys
  const buttons = [...new Set(all.map(({ owner }) => owner))].map(
    (owner) => `<button name="owner" value="${escapeHtml(owner)}">${escapeHtml(owner)}</button>`,
  )
  const content = `<p>${escapeHtml(question)}</p>
    <form method="post"><div class="buttons">${buttons.join('')}</div></form>`
  return page(403, title, content, { locale })
}

function entry(
  { url }: Account,
  { kid, x, name, addedAt }: RegisteredKey,
  index: number,
  locale: Locale,
): string {
  const { messages } = locale
  const said = messages.keys
  const facts = [
    said.kid(isolated(kid, messages)),
    said.thumbprint(isolated(`${thumbprintOf(x).slice(0, 12)}…`, messages)),
    said.since(formatInstant(addedAt, locale)),
  ]
  return `<article class="card" aria-labelledby="key-${index}">
    <h2 id="key-${index}">${escapeHtml(isolated(name, messages))}</h2>
    ${facts.map((fact) => `<p>${escapeHtml(fact)}</p>`).join('')}
    <form method="post"><input type="hidden" name="account" value="${escapeHtml(url)}">
      <button name="revoke" value="${escapeHtml(kid)}"
        aria-label="${escapeHtml(said.revokeKey(isolated(name, messages)))}">${escapeHtml(said.revoke)}</button></form>
  </article>`
}

/** A text that is no public key is not repeated: it may be a private key. */
function formFor(
  account: Account,
  owned: readonly Account[],
  given: URLSearchParams,
  { messages }: Locale,
): string {
  const said = messages.keys
  const key = given.get('key') ?? ''
  const value = (name: string) => escapeHtml(given.get(name) ?? '')
  const options = owned.map(
    ({ url }) => `<option${url === account.url ? ' selected' : ''}>${escapeHtml(url)}</option>`,
  )
  return `<h2>${escapeHtml(said.addTitle)}</h2>
    <form method="post" autocomplete="off">
      <label for="account">${escapeHtml(said.account)}</label>
      <select id="account" name="account">${options.join('')}</select>
      <label for="name">${escapeHtml(said.name)}</label>
      <input id="name" name="name" required maxlength="${nameLengthMax}" value="${value('name')}">
      <label for="key">${escapeHtml(said.key)}</label>
      <textarea id="key" name="key" required rows="6" dir="ltr" spellcheck="false">
${readClientKey(key).ok ? escapeHtml(key) : ''}</textarea>
      <button type="button" id="make" hidden data-made="${escapeHtml(said.made)}"
        data-unsupported="${escapeHtml(said.unsupported)}">${escapeHtml(said.make)}</button>
      <p id="made" role="status"></p>
      <label for="kid">${escapeHtml(said.newKid)}</label>
      <input id="kid" name="kid" maxlength="256" dir="ltr" value="${value('kid')}">
      <div class="buttons"><button id="add">${escapeHtml(said.add)}</button></div>
    </form>`
}

/** A summary that takes the focus, and leads to the field. */
function error(problem: Problem, { messages }: Locale): string {
  const { refused, problems } = messages.keys
  const field = problem === 'name' ? 'name' : problem === 'kidTaken' ? 'kid' : 'key'
  const text =
    typeof problem === 'string'
      ? `<a href="#${field}">${escapeHtml(problems[problem])}</a>`
      : `<a href="#key" lang="en" dir="ltr">${escapeHtml(problem.reason)}</a>`
  return `<div class="error" role="alert" tabindex="-1" autofocus>
    <h2>${escapeHtml(refused)}</h2><p>${text}</p></div>`
}

const ed25519 = { kty: 'OKP', crv: 'Ed25519' }

/** RFC 7638. */
function thumbprintOf(x: string): string {
  return createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
}

/** Makes a key in the browser, and downloads the private part. The policy of the page lets it send only the form. */
const script = `
const button = document.getElementById('make')
button.hidden = false
button.addEventListener('click', async () => {
  const status = document.getElementById('made')
  let pair
  try {
    pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  } catch {
    status.textContent = button.dataset.unsupported
    return
  }
  const kid = crypto.randomUUID()
  const { kty, crv, x } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  const bytes = new Uint8Array(await crypto.subtle.exportKey('pkcs8', pair.privateKey))
  const base64 = btoa(String.fromCharCode(...bytes))
  const pem = '-----BEGIN PRIVATE KEY-----\\n' + base64 + '\\n-----END PRIVATE KEY-----\\n'
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([pem], { type: 'application/x-pem-file' }))
  link.download = kid + '.pem'
  link.click()
  document.getElementById('key').value = JSON.stringify({ kty, crv, x, kid })
  status.textContent = button.dataset.made
})
`
