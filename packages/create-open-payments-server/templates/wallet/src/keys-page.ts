import { createHash, randomUUID } from 'node:crypto'
import { type Handler, readClientKey } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import type { ClientKey, ClientKeys } from './client-keys.js'
import type { Account, Ledger } from './ledger.js'
import type { Login } from './login.js'
import { escapeHtml, fieldsOf, methodNotAllowed, page, pathOf, seeOther } from './page.js'

const nameLengthMax = 64
const nameForm = /^\P{Cc}{1,64}$/u

/**
 * The page where owners register the public keys of apps, and revoke them: `/keys`. An app can link to it with
 * `account`, `name` and `key` in the query, which only fill the form.
 */
export function keysPage(keys: ClientKeys, ledger: Ledger, login: Login): Handler {
  /** Returns why the key was not added: a sentence for the owner. */
  async function add(walletAddress: string, form: URLSearchParams): Promise<string | undefined> {
    const read = readClientKey(form.get('key') ?? '')
    if (!read.ok) return read.reason
    const { x } = read.key
    const kid = form.get('kid')?.trim() || read.key.kid || randomUUID()
    const named = readClientKey(JSON.stringify({ kty: 'OKP', crv: 'Ed25519', x, kid }))
    if (!named.ok) return named.reason
    const name = form.get('name')?.trim() ?? ''
    if (name.length > nameLengthMax || !nameForm.test(name)) {
      return `Please give the key a name of 1 to ${nameLengthMax} characters.`
    }
    return keys.add(walletAddress, { kid, x, name, addedAt: Date.now() })
  }

  async function show(
    account: Account,
    owned: readonly Account[],
    given: URLSearchParams,
    formField: string,
    problem?: string,
  ): Promise<HttpResponse> {
    const entries = (await keys.of(account.url)).map((key) => entry(account, key, formField))
    const alert = problem && `<p role="alert"><strong>${escapeHtml(problem)}</strong></p>`
    return page({
      status: problem === undefined ? 200 : 400,
      title: 'Keys of your apps',
      content: `${alert ?? ''}
<p>You are signed in as <strong>${escapeHtml(account.owner)}</strong>. An app that has one of these keys can ask for access in the name of your account. Add only keys of apps that you use.</p>
${entries.join('\n') || '<p>Your account has no keys.</p>'}
${formFor(account, owned, given, formField)}`,
      script,
    })
  }

  return async (request) => {
    const { method, url } = request
    const owner = login.ownerOf(request)
    if (owner === undefined) return login.redirect(request)
    if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return methodNotAllowed()
    const given =
      method === 'POST' ? fieldsOf(request) : new URLSearchParams(url.slice(pathOf(request).length))
    const owned = await ledger.ownedBy(owner)
    const account = owned.find((each) => each.url === (given.get('account') ?? owned[0]?.url))
    if (account === undefined) return message(403, 'This account is not yours')
    const formField = login.formField(request)
    if (method !== 'POST') {
      const read = given.has('key') ? readClientKey(given.get('key') ?? '') : undefined
      return show(account, owned, given, formField, read?.ok === false ? read.reason : undefined)
    }
    if (!login.isOwnForm(request)) return message(403, 'Please open the page again')
    const revoked = given.get('revoke')
    if (revoked !== null) await keys.revoke(account.url, revoked)
    const problem = revoked === null ? await add(account.url, given) : undefined
    if (problem !== undefined) return show(account, owned, given, formField, problem)
    return seeOther(`/keys?${new URLSearchParams({ account: account.url })}`)
  }
}

function message(status: number, title: string): HttpResponse {
  return page({ status, title, content: '<p><a href="/keys">Keys of your apps</a></p>' })
}

function entry({ url }: Account, { kid, x, name, addedAt }: ClientKey, formField: string): string {
  // RFC 7638.
  const thumbprint = createHash('sha256')
    .update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
    .digest('base64url')
  return `<section>
<h2>${escapeHtml(name)}</h2>
<p>Key ID <code>${escapeHtml(kid)}</code>, thumbprint <code>${thumbprint.slice(0, 12)}…</code>, added ${new Date(addedAt).toUTCString()}</p>
<form method="post">${formField}<input type="hidden" name="account" value="${escapeHtml(url)}">
<button name="revoke" value="${escapeHtml(kid)}" aria-label="Revoke the key ${escapeHtml(name)}">Revoke</button></form>
</section>`
}

/** A text that is no public key is not repeated: it may be a private key. */
function formFor(
  account: Account,
  owned: readonly Account[],
  given: URLSearchParams,
  formField: string,
): string {
  const key = given.get('key') ?? ''
  const value = (name: string) => escapeHtml(given.get(name) ?? '')
  const options = owned.map(
    ({ url }) => `<option${url === account.url ? ' selected' : ''}>${escapeHtml(url)}</option>`,
  )
  return `<h2>Add a key</h2>
<form method="post" autocomplete="off">
${formField}
<label for="account">Account</label>
<select id="account" name="account">${options.join('')}</select>
<label for="name">Name</label>
<input id="name" name="name" required maxlength="${nameLengthMax}" value="${value('name')}">
<label for="key">Public key (JWK or PEM)</label>
<textarea id="key" name="key" required rows="6" spellcheck="false">
${readClientKey(key).ok ? escapeHtml(key) : ''}</textarea>
<button type="button" id="make" hidden>Make a new key in this browser</button>
<p id="made" role="status"></p>
<label for="kid">Key ID, if you want to choose it</label>
<input id="kid" name="kid" maxlength="256" value="${value('kid')}">
<button>Add</button>
</form>`
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
    status.textContent = 'This browser cannot make such keys. Make one with your app, and paste its public key.'
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
  status.textContent =
    'Your browser has saved the private key. Give the file to your app only: this wallet does not have it. Now add the public key.'
})
`
