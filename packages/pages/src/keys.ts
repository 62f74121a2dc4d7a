import { type ClientKeyRefusal, type PublicJwk, readClientKey } from 'open-payments-server'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { formatDay, isolated, type Locale, plain, say, visible } from './locale.js'
import { alertOf } from './notice.js'
import type { OwnedAccount } from './owned-account.js'
import type { TextKey } from './texts.js'

/** A public key that the owner of an account registered for an app. */
export interface OwnedKey extends PublicJwk {
  /** The owner's name for it. */
  readonly name: string
  /** Milliseconds since 1970. */
  readonly addedAt: number
}

/** Why a key cannot be added: the account has it, has another with its `kid`, or has 20 keys. */
export type KeyConflict = 'known' | 'kidTaken' | 'full'

/** A key of one of the accounts of an owner. */
export interface ListedKey extends OwnedKey {
  readonly account: OwnedAccount
}

/** Where the host keeps the keys that owners register. It publishes them in `keys` of `walletAddresses.find`. */
export interface OwnerKeys {
  /** Resolves to the keys of an account, the oldest first. */
  of(walletAddress: string): Promise<readonly OwnedKey[]>
  /** Adds a key, even if others are added at the same time, or resolves to the reason why not. */
  add(walletAddress: string, key: OwnedKey): Promise<'added' | KeyConflict>
  revoke(walletAddress: string, kid: string): Promise<void>
}

/** Why a form changed nothing. */
export type KeyProblem = KeyConflict | ClientKeyRefusal | 'name' | 'stale'

/** The values that the page of keys needs in addition to the keys. */
export interface KeysOptions {
  readonly locale: Locale
  /** The account for which a key can be added. */
  readonly account: OwnedAccount
  /** All accounts of the owner. */
  readonly accounts: readonly OwnedAccount[]
  /** The fields of the link or of the form. */
  readonly given: URLSearchParams
  readonly problem?: KeyProblem | undefined
  /** A hidden field with the token of the forms. */
  readonly token: Html
}

const nameLengthMax = 64
const ed25519 = { kty: 'OKP', crv: 'Ed25519' }

/** Reads the key of a form, whose `kid` is that of the form, else that of the key, else a random one. */
export function readKey(
  form: URLSearchParams,
  addedAt: number,
):
  | { readonly ok: true; readonly key: OwnedKey }
  | { readonly ok: false; readonly problem: KeyProblem } {
  const read = readClientKey(form.get('key') ?? '')
  if (!read.ok) return { ok: false, problem: read.refusal }
  const { x } = read.key
  const kid = form.get('kid')?.trim() || read.key.kid || crypto.randomUUID()
  const named = readClientKey(JSON.stringify({ ...ed25519, x, kid }))
  if (!named.ok) return { ok: false, problem: named.refusal }
  const name = form.get('name')?.trim() ?? ''
  const isNamed = name !== '' && name.length <= nameLengthMax && visible(name) === name
  return isNamed ? { ok: true, key: { kid, x, name, addedAt } } : { ok: false, problem: 'name' }
}

/**
 * Resolves to the page with the keys of all accounts of an owner, and the form for another.
 *
 * @example
 * ```ts
 * import { html, keysScreen, page } from 'open-payments-pages'
 *
 * const account = { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }
 * const screen = await keysScreen([], {
 *   locale,
 *   account,
 *   accounts: [account],
 *   given: new URLSearchParams(),
 *   token: html`<input type="hidden" name="token" value="…">`,
 * })
 * const response = page(screen, { locale })
 * ```
 */
export async function keysScreen(
  keys: readonly ListedKey[],
  options: KeysOptions,
): Promise<Screen> {
  const { locale, problem, given } = options
  const done = { added: 'keyAdded', revoked: 'keyRevoked' } as const
  const outcome = given.get('done') ?? ''
  const said = Object.hasOwn(done, outcome) && say(locale, done[outcome as keyof typeof done])
  const thumbprints = await Promise.all(keys.map(({ x }) => thumbprintOf(x)))
  const content = html`${problem && problemHtml(problem, locale)}
    <h1>${say(locale, 'keysTitle')}</h1>
    ${said && html`<p class="done" role="status">${said}</p>`}
    <p>${say(locale, 'keysPurpose')}</p>
    ${keys.length === 0 && html`<p class="card">${say(locale, 'keysNone')}</p>`}
    ${keys.map((key, index) => keyHtml(key, index, thumbprints[index] ?? '', options))}
    ${addForm(options)}`
  return { title: plain(locale, 'keysTitle'), content, script }
}

function keyHtml(
  { kid, name, addedAt, account }: ListedKey,
  index: number,
  thumbprint: string,
  { locale, accounts, token }: KeysOptions,
): Html {
  return html`<article class="card" aria-labelledby="key-${index}">
    <h2 id="key-${index}">${isolated(name)}</h2>
    <p class="quiet">${say(locale, 'keyId', { kid })}<br>
    ${say(locale, 'keyThumbprint', { beginning: `${thumbprint.slice(0, 12)}…` })}<br>
    ${say(locale, 'keyAddedOn', { date: formatDay(addedAt, locale) })}
    ${accounts.length > 1 && html`<br>${say(locale, 'appAccount', { account: account.publicName || account.url })}`}</p>
    <details><summary aria-label="${plain(locale, 'keyRevokeNamed', { name })}">${say(locale, 'keyRevoke')}</summary>
      <p>${say(locale, 'keyRevokeQuestion')}</p>
      <form method="post">${token}<input type="hidden" name="account" value="${account.url}">
      <button class="danger" name="revoke" value="${kid}">${say(locale, 'keyRevokeNamed', { name: isolated(name) })}</button></form></details>
  </article>`
}

function addForm({ locale, account, accounts, given, problem, token }: KeysOptions): Html {
  const refused = problem !== undefined && problem !== 'stale' ? fieldOf(problem) : undefined
  const problemOf = (field: KeyField) =>
    refused === field &&
    html`<p class="problem" id="${field}-problem">${sayProblem(problem, locale)}</p>`
  const markOf = (field: KeyField, hint = '') => {
    const [mark, problemId] =
      refused === field ? [html` aria-invalid="true"`, `${field}-problem`] : ['', '']
    const described = [hint, problemId].filter((id) => id !== '').join(' ')
    return html`${mark}${described && html` aria-describedby="${described}"`}`
  }
  const options = accounts.map(
    ({ url, publicName }) =>
      html`<option value="${url}"${url === account.url && html` selected`}>${visible(publicName ? `${publicName}, ${url}` : url)}</option>`,
  )
  return html`<section class="card"><h2>${say(locale, 'keyAddTitle')}</h2>
    <form method="post" autocomplete="off">${token}
    <label for="account">${say(locale, 'keyAccount')}</label>
    <select id="account" name="account">${options}</select>
    <label for="name">${say(locale, 'keyName')}</label>${problemOf('name')}
    <input id="name" name="name"${markOf('name')} required maxlength="${nameLengthMax}" value="${visible(given.get('name') ?? '')}">
    <label for="key">${say(locale, 'keyText')}</label>
    <p class="quiet small" id="key-hint">${say(locale, 'keyTextHint', { jwk: exampleOf('{"kty":"OKP"'), base64: exampleOf('eyJ'), pem: exampleOf('-----BEGIN PUBLIC KEY-----') })}</p>${problemOf('key')}
    <textarea id="key" name="key"${markOf('key', 'key-hint')} required rows="6" dir="ltr" autocapitalize="none" autocorrect="off" spellcheck="false">
${keyToShow(given.get('key') ?? '')}</textarea>
    <p><button type="button" id="make" hidden data-made="${plain(locale, 'keyMade', { file: '*' })}"
      data-unsupported="${plain(locale, 'keyUnsupported')}">${say(locale, 'keyMake')}</button></p>
    <p id="made" role="status"></p>
    <label for="kid">${say(locale, 'keyNewId')}</label>${problemOf('kid')}
    <input id="kid" name="kid"${markOf('kid')} maxlength="256" dir="ltr" autocapitalize="none" autocorrect="off" spellcheck="false" value="${isPrivate(given.get('kid') ?? '') ? '' : visible(given.get('kid') ?? '')}">
    <div class="buttons"><button class="primary" id="add">${say(locale, 'keyAdd')}</button></div></form></section>`
}

/** How a key begins, left to right in every language. */
function exampleOf(beginning: string): Html {
  return html`<code dir="ltr">${beginning}</code>`
}

/**
 * The key of a link or a refused form as it was read: base64 says nothing to a person. A text that is not a public key
 * is not repeated, because it may be a private key.
 */
function keyToShow(text: string): string {
  const read = readClientKey(text)
  if (!read.ok) return ''
  return read.form === 'base64' ? JSON.stringify({ ...ed25519, ...read.key }) : text
}

function isPrivate(text: string): boolean {
  const read = readClientKey(text)
  return !read.ok && read.refusal === 'key_private'
}

const problems = {
  name: 'keyNameRefused',
  known: 'keyKnown',
  kidTaken: 'keyIdTaken',
  full: 'keysFull',
  key_missing: 'keyMissing',
  key_too_long: 'keyTooLong',
  key_private: 'keyPrivate',
  key_unsupported: 'keyOfOtherKind',
  key_damaged: 'keyDamaged',
  key_unsound: 'keyUnsound',
  keys_several: 'keysSeveral',
  kid_invalid: 'keyIdRefused',
} as const satisfies Record<Exclude<KeyProblem, 'stale'>, TextKey>

type KeyField = 'name' | 'key' | 'kid'

/** The field that a problem concerns. */
function fieldOf(problem: Exclude<KeyProblem, 'stale'>): KeyField {
  if (problem === 'name') return 'name'
  return problem === 'kidTaken' || problem === 'kid_invalid' ? 'kid' : 'key'
}

function sayProblem(problem: KeyProblem | undefined, locale: Locale): Html | false {
  return problem !== undefined && problem !== 'stale' && say(locale, problems[problem])
}

/** A summary that takes the focus, and leads to the field. */
function problemHtml(problem: KeyProblem, locale: Locale): Html {
  if (problem === 'stale') return alertOf('stale', locale)
  const text = html`<a href="#${fieldOf(problem)}">${sayProblem(problem, locale)}</a>`
  // A new key ends the problem.
  const isOver = fieldOf(problem) === 'key' && problem !== 'full'
  return html`<div class="error" role="alert" tabindex="-1" autofocus${isOver && html` id="key-refused"`}>
    <h2>${say(locale, 'keyRefused')}</h2><p>${text}</p></div>`
}

/** Resolves to the thumbprint of a key (RFC 7638). */
export async function thumbprintOf(x: string): Promise<string> {
  const text = new TextEncoder().encode(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', text))
  return btoa(String.fromCharCode(...digest))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
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
  const field = document.getElementById('key')
  field.value = JSON.stringify({ kty, crv, x, kid })
  const refused = document.getElementById('key-refused')
  if (refused) {
    refused.remove()
    document.getElementById('key-problem').remove()
    field.removeAttribute('aria-invalid')
    field.setAttribute('aria-describedby', 'key-hint')
  }
  status.textContent = button.dataset.made.replace('*', link.download)
})
`
