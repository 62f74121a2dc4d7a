import { type Html, html } from './html.js'
import { isolated, type Locale, plain, say, visible } from './locale.js'

/** The key with which an app signs in the name of one of the owner's accounts. */
export interface OwnKey {
  /** The owner's name for it. Absent if the owner has not registered the key, or has revoked it. */
  readonly name?: string
  /** Absent if it is not known. */
  readonly kid?: string
}

/** How a page can name an app: its verified wallet address, and the name that it chose. */
export interface NamedApp {
  readonly client: string
  readonly display?: { readonly name?: string } | undefined
  /** The key with which it signs, if its wallet address is an account of the signed-in owner. */
  readonly ownKey?: OwnKey | undefined
}

/**
 * Returns the short name of an app: the name that it chose, else the host of its address, else the address. An app that
 * signs with a key of the owner's account has the owner's name for the key: that of the account names no app.
 */
export function shortName({ client, display, ownKey }: NamedApp, locale: Locale): string {
  if (ownKey !== undefined) return ownKey.name || plain(locale, 'ownApp')
  return display?.name || hostOf(client)
}

/** Returns what a page says about the name of an app: with which key of the owner it signs, or that it chose it. */
export function aboutName({ display, ownKey }: NamedApp, locale: Locale): Html {
  if (ownKey === undefined) {
    return html`${display?.name && html`<p class="quiet small">${say(locale, 'nameUnproved')}</p>`}`
  }
  return html`<p class="quiet small">${ownKeyHtml(ownKey, locale)}</p>`
}

/** Returns the key of the owner with which an app signs. Its id tells it from another with the same name. */
export function ownKeyHtml({ kid }: OwnKey, locale: Locale): Html {
  return html`${say(locale, 'ownAppKey')}${kid !== undefined && html` ${say(locale, 'keyId', { kid })}`}`
}

/** Returns the address of an app, in which the host is emphasized: the owner of a host controls every path below it. */
export function addressOf({ client }: Pick<NamedApp, 'client'>): Html {
  const host = hostOf(client)
  const start = client.indexOf(host)
  if (host === client) return isolated(client)
  const [before, after] = [client.slice(0, start), client.slice(start + host.length)]
  return html`<bdi>${visible(before)}<b>${visible(host)}</b>${visible(after)}</bdi>`
}

/** Returns the host of a URL, else the text. */
export function hostOf(url: string): string {
  const host = URL.canParse(url) ? new URL(url).host : ''
  return host !== '' && url.includes(host) ? host : url
}
