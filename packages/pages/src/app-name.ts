import { type Html, html } from './html.js'
import { isolated, visible } from './locale.js'

/** How a page can name an app: its verified wallet address, and the name that it chose. */
export interface NamedApp {
  readonly client: string
  readonly display?: { readonly name?: string } | undefined
}

/** Returns the short name of an app: the name that it chose, else the host of its address, else the address. */
export function shortName({ client, display }: NamedApp): string {
  return display?.name || hostOf(client)
}

/** Returns the address of an app, in which the host is emphasized: the owner of a host controls every path below it. */
export function addressOf({ client }: NamedApp): Html {
  const host = hostOf(client)
  const start = client.indexOf(host)
  if (host === client) return isolated(client)
  const [before, after] = [client.slice(0, start), client.slice(start + host.length)]
  return html`<bdi>${visible(before)}<b>${visible(host)}</b>${visible(after)}</bdi>`
}

function hostOf(url: string): string {
  const host = URL.canParse(url) ? new URL(url).host : ''
  return host !== '' && url.includes(host) ? host : url
}
