import { type AccessItem, type Amount, displayName } from 'open-payments-server'
import { addressOf, hostOf } from './app-name.js'
import { type Html, html } from './html.js'
import { isolated } from './locale.js'

/** Who gets the money of an incoming payment. */
export interface NamedReceiver {
  /** The wallet address of the account. */
  readonly walletAddress?: string
  /** The name of the account. The pages clean it with `displayName`, and show the wallet address below it. */
  readonly name?: string
  /** What the incoming payment asks for, if it does: a grant of exactly this amount reads as one payment. */
  readonly amount?: Amount
}

/** Receivers by the URL of the incoming payment. */
export type Receivers = ReadonlyMap<string, NamedReceiver>

/** How long a page waits for the names of receivers. */
const receiversTimeoutMs = 2_000

/** Returns the incoming payments that access names. */
export function receiversIn(access: readonly AccessItem[]): readonly string[] {
  return access.flatMap(({ limits }) => limits?.receiver ?? [])
}

/**
 * Resolves to the receivers of incoming payments, as far as they are known within two seconds: a page with a URL is
 * better than none. Never rejects.
 */
export async function namedReceivers(
  incomingPayments: readonly string[],
  receiverOf: (url: string) => NamedReceiver | undefined | Promise<NamedReceiver | undefined>,
): Promise<Receivers> {
  const urls = new Set(incomingPayments)
  if (urls.size === 0) return new Map()
  const found = new Map<string, NamedReceiver>()
  let isLate = false
  const lookUp = async (url: string) => {
    const receiver = await receiverOf(url)
    if (!isLate && receiver) found.set(url, cleaned(receiver))
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, receiversTimeoutMs)
  })
  await Promise.race([Promise.allSettled([...urls].map(lookUp)), late])
  clearTimeout(timer)
  isLate = true
  return found
}

function cleaned({ walletAddress, name, amount }: NamedReceiver): NamedReceiver {
  const shown = displayName(name)
  return {
    ...(amount !== undefined && { amount }),
    ...(typeof walletAddress === 'string' && walletAddress !== '' && { walletAddress }),
    ...(shown !== undefined && { name: shown }),
  }
}

/** Returns the receiver as the owner knows it: the name and the address of the account, or the host and the URL. */
export function receiverHtml(url: string, receivers: Receivers = new Map()): Html {
  const { walletAddress, name } = receivers.get(url) ?? {}
  const address = walletAddress ?? url
  if (name === undefined && walletAddress !== undefined) return addressOf({ client: address })
  return html`${isolated(name ?? hostOf(url))}
    <span class="quiet small">${addressOf({ client: address })}</span>`
}

/** Returns the receiver of a payment, of which the wallet address may be known without its name. */
export function payeeHtml(
  {
    receiver,
    receiverWalletAddress: walletAddress,
  }: { readonly receiver: string; readonly receiverWalletAddress?: string | undefined },
  receivers: Receivers | undefined,
): Html {
  const known = receivers?.get(receiver) ?? (walletAddress === undefined ? {} : { walletAddress })
  return receiverHtml(receiver, new Map([[receiver, known]]))
}

/** Returns a short name of the receiver, for a sentence: the name of the account, or a host. */
export function receiverName(url: string, receivers: Receivers = new Map()): string {
  const { walletAddress, name } = receivers.get(url) ?? {}
  return name ?? hostOf(walletAddress ?? url)
}

/** Returns the receiver with the URL of the incoming payment, which is what is granted. */
export function grantedReceiverHtml(url: string, receivers: Receivers = new Map()): Html {
  if (receivers.get(url) === undefined) return receiverHtml(url)
  return html`${receiverHtml(url, receivers)} <span class="quiet small">${isolated(url)}</span>`
}
