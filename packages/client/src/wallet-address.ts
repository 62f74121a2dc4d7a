import type { Asset } from 'open-payments-server'
import { bodyOf, hasOriginOf, type Read, walletAddressBody } from './bodies.js'
import type { Context } from './context.js'
import type { Call } from './deadline.js'
import { invalid } from './exchange.js'
import type { Outgoing } from './message.js'
import { type Refused, refused } from './refusal.js'

/** What a wallet address tells about its account. */
export interface Address {
  /** The wallet address as its server writes it. */
  readonly id: string
  /** A name that the account's owner chose, of at most 256 characters. Show it through `displayName`. */
  readonly publicName?: string
  /** The asset of the account. */
  readonly asset: Asset
  /** Where grants are requested, exactly as published: the hash of a redirect contains it. */
  readonly authServer: string
  /** The URL below which its payments are. */
  readonly resourceServer: string
}

/** The result of `addressOf`. */
export type FoundAddress = { readonly ok: true; readonly address: Address } | Refused

/** Returns the URL of a wallet address, or of a payment pointer, which begins with `$`; `undefined` for other text. */
export function walletAddressUrl(text: string): string | undefined {
  const isPointer = text.startsWith('$')
  const url = isPointer ? `https://${text.slice(1)}` : text
  if (!/^https?:\/\//.test(url) || /[?#\\\s]/.test(url) || !URL.canParse(url)) return undefined
  const { pathname, username, password } = new URL(url)
  if (username !== '' || password !== '') return undefined
  return isPointer && pathname === '/' ? new URL('/.well-known/pay', url).href : url
}

export async function findAddress(
  { exchange }: Context,
  call: Call,
  urlOrPointer: string,
): Promise<FoundAddress> {
  const url = walletAddressUrl(urlOrPointer)
  if (url === undefined) {
    return refused(
      'url_refused',
      `${urlOrPointer} is neither the URL of a wallet address nor a payment pointer`,
    )
  }
  const request: Outgoing = { method: 'GET', url, isSigned: false }
  const read = await bodyOf(walletAddressBody, request, exchange(call, request))
  if (!read.ok) return read
  const { id, publicName, assetCode, assetScale, authServer, resourceServer } = read.value
  // A server could show its own servers under the name of another wallet.
  if (!hasOriginOf(id, url)) return invalid(request, 'with a wallet address of another origin')
  const named = publicName === undefined ? {} : { publicName }
  const asset = { assetCode, assetScale }
  return { ok: true, address: { id, ...named, asset, authServer, resourceServer } }
}

/** Reads a wallet address, unless the caller has done so. */
export async function addressFrom(
  context: Context,
  call: Call,
  walletAddress: string | Address,
): Promise<Read<Address>> {
  if (typeof walletAddress !== 'string') return { ok: true, value: walletAddress }
  const found = await findAddress(context, call, walletAddress)
  return found.ok ? { ok: true, value: found.address } : found
}

/** Appends the path of a collection to a URL that may end in a slash. */
export function collectionAt({ resourceServer }: Address, path: string): string {
  return `${resourceServer.replace(/\/$/, '')}/${path}`
}
