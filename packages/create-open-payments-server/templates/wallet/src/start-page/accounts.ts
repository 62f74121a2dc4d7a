import { amountHtml, type Html, html, localeFor } from 'open-payments-pages'
import type { Amount, Asset, ResourceServer } from 'open-payments-server'

/** An account that the page shows. */
export interface ShownAccount extends Asset {
  readonly url: string
  readonly name: string
  /** In units of the asset, such as cents. Absent for an account without limit. */
  readonly balance?: bigint
  readonly movements: readonly Movement[]
}

/** Funds that have arrived at an account or left it. */
export interface Movement {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly kind: 'received' | 'sent'
  readonly amount: Amount
  /** The wallet address of the other side, as far as it is known. */
  readonly other?: string | undefined
}

/** Pages for developers are in one language. */
export const english = localeFor({ headers: [] })

const paymentsRead = 20
const movementsShown = 3

/** Resolves to the latest movements of an account, the newest first. */
export async function movementsOf(
  { incomingPayments, outgoingPayments }: ResourceServer,
  walletAddress: string,
): Promise<readonly Movement[]> {
  const query = { walletAddress, last: paymentsRead }
  const [incoming, outgoing] = await Promise.all([
    incomingPayments.list(query),
    outgoingPayments.list(query),
  ])
  const received = incoming.result.map(
    ({ createdAt: at, receivedAmount: amount }): Movement => ({ at, kind: 'received', amount }),
  )
  const sent = outgoing.result.map(
    ({ createdAt: at, sentAmount: amount, receiverWalletAddress: other }): Movement => {
      return { at, kind: 'sent', amount, other }
    },
  )
  return [...received, ...sent]
    .filter(({ amount }) => amount.value !== '0')
    .sort((one, next) => next.at - one.at)
    .slice(0, movementsShown)
}

/** Returns an account as a card. */
export function accountCard(
  { url, name, balance, movements, ...asset }: ShownAccount,
  nameOf: (walletAddress: string) => string,
): Html {
  const { assetCode, assetScale } = asset
  const shown =
    balance === undefined
      ? html`Pays without limit, in ${assetCode}`
      : amountHtml({ value: `${balance}`, assetCode, assetScale }, english)
  return html`<section class="card"><h2>${name}</h2>
    <p class="address"><a href="${url}">${url}</a></p><p class="balance">${shown}</p>
    <ul class="history">${movements.map((movement) => movementItem(movement, nameOf))}</ul>
    ${movements.length === 0 && html`<p class="quiet">No payments yet.</p>`}</section>`
}

function movementItem(
  { kind, amount, other }: Movement,
  nameOf: (walletAddress: string) => string,
): Html {
  const to = other !== undefined && html` to ${nameOf(other)}`
  return html`<li>${kind === 'received' ? '+' : '−'}\u00a0${amountHtml(amount, english)} ${kind}${to}</li>`
}
