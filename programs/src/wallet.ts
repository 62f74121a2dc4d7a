import { demandJson, demandUrl, pick, textAt } from './answer.js'
import { UsageError } from './arguments.js'
import type { WireAnswer, WireRequest } from './exchange.js'

/** The wallet address document, as far as programs need it. */
export interface Wallet {
  readonly authServer: string
  readonly resourceServer: string
  readonly asset: { readonly assetCode: string; readonly assetScale: number }
}

/** An issued access token. */
export interface Token {
  readonly value: string
  readonly manage: string
  readonly continueUri: string
  readonly continueToken: string
}

/** An access item of a grant request. */
export type AccessItem = Readonly<Record<string, unknown>>

/** Returns the URL of a wallet address of the command line. A `$` stands for `https://`, and needs no path. */
export function walletAddressUrl(text: string): string {
  const isPointer = text.startsWith('$')
  const url = isPointer ? `https://${text.slice(1)}` : text
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new UsageError(`${text} is not a wallet address: expected a URL or $host/path`)
  }
  const { pathname, search, hash, username } = new URL(url)
  if (search !== '' || hash !== '' || username !== '') {
    throw new UsageError(`${text} must have no query, fragment or user`)
  }
  if (!isPointer) return url
  return pathname === '/' ? new URL('/.well-known/pay', url).href : url
}

/** Reads a wallet address document. Fails if it lacks the servers. */
export async function readWallet(
  walletAddress: string,
  send: (request: WireRequest) => Promise<WireAnswer>,
): Promise<Wallet> {
  const answer = await send({ method: 'GET', url: walletAddress, sign: false })
  demandJson(answer, 200)
  const [authServer, resourceServer] = ['authServer', 'resourceServer'].map((name) => {
    demandUrl(pick(answer.body, name), `${name} of the wallet address`)
    return textAt(answer, name)
  }) as [string, string]
  // Only the case `wallet-document` checks the asset, so that the others find what else is wrong.
  const assetCode = String(pick(answer.body, 'assetCode'))
  const assetScale = Number(pick(answer.body, 'assetScale'))
  return { authServer, resourceServer, asset: { assetCode, assetScale } }
}

/** Returns the access token of a response. Fails if the response has none. */
export function tokenIn(answer: WireAnswer): Token {
  demandJson(answer, 200)
  return {
    value: textAt(answer, 'access_token', 'value'),
    manage: textAt(answer, 'access_token', 'manage'),
    continueUri: textAt(answer, 'continue', 'uri'),
    continueToken: textAt(answer, 'continue', 'access_token', 'value'),
  }
}

/** Appends a path to a URL that may end in a slash. */
export function joined(base: string, path: string): string {
  return base.replace(/\/$/, '') + path
}
