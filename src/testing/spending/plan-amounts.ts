import type { AccessItem, Amount } from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import { accountAt, type BookedPayment, spentIn } from './book.js'
import { type Draft, fromTheEnd, grantNumber, retryMs } from './draft.js'
import type { SpendingAction } from './history.js'
import {
  amountOf,
  debitFor,
  receivedOf,
  type SpendingReceiver,
  type SpendingScene,
} from './scene.js'
import type { PayWish, Share, TotalsWish } from './wish.js'

export function planPayment(draft: Draft, wish: PayWish): SpendingAction {
  const { book, now, rules, scene, requests } = draft
  const grant = grantNumber(book, wish.grant)
  const items = book.grants[grant - 1]?.items ?? []
  const place = wish.item % Math.max(1, items.length)
  const found = accountAt(book, grant, place + 1, now, rules)
  const account = found.ok ? found.value : undefined
  const receiver = chooseReceiver(scene, items[place], account?.limit, wish.receiver)
  const limit = BigInt(account?.limit.value ?? 1_000n)
  const rest = account === undefined ? limit : limit - spentIn(book, account)
  const { size } = wish
  const wanted =
    size.of === 'rest'
      ? rest + size.off
      : size.of === 'limit'
        ? limit / size.parts + size.off
        : size.value
  return {
    type: 'pay',
    payment: requests.length + 1,
    grant,
    by: wish.by,
    walletAddress: choosePayer(scene, items[place], wish.other),
    receiver: receiver.url,
    ...amountsOf(
      account?.counts === 'receiveAmount' ? debitFor(wanted, receiver) : wanted,
      receiver,
      scene,
    ),
  }
}

/** Repeats a recent request with half of the amount, or with one unit more. */
export function planAltered(draft: Draft, back: number): SpendingAction | undefined {
  const { requests, scene, now } = draft
  const made = fromTheEnd(requests, back)
  // A repeat of a quote has no amount.
  if (made === undefined || made.request.by === 'quote' || now - made.at > retryMs) return undefined
  const { request } = made
  const receiver = receiverAt(scene, request.receiver)
  const debit = BigInt(request.debitAmount.value)
  const least = debitFor(1n, receiver)
  // The smaller amount may fit where the first one did not.
  const other = debit / 2n >= least ? debit / 2n : debit + least
  return { type: 'alter', request: { ...request, ...amountsOf(other, receiver, scene) } }
}

function amountsOf(wanted: bigint, receiver: SpendingReceiver, { asset }: SpendingScene) {
  // Both the debit and what arrives must be amounts.
  const most = debitFor(amountValueMax + 1n, receiver) - 1n
  const debit = within(
    wanted,
    debitFor(1n, receiver),
    most < amountValueMax ? most : amountValueMax,
  )
  return {
    debitAmount: amountOf(debit, asset),
    receiveAmount: amountOf(receivedOf(debit, receiver), receiver.asset),
  }
}

/** Returns the account of the item, or the other one. */
function choosePayer(
  { walletAddress, otherWalletAddress = walletAddress }: SpendingScene,
  item: AccessItem | undefined,
  other: boolean,
): string {
  const identifier = item?.identifier ?? walletAddress
  if (!other) return identifier
  return identifier === walletAddress ? otherWalletAddress : walletAddress
}

function receiverAt({ receivers }: SpendingScene, url: string): SpendingReceiver {
  return receivers.find((each) => each.url === url) ?? receivers[0]
}

function within(value: bigint, least: bigint, most: bigint): bigint {
  if (value < least) return least
  return value > most ? most : value
}

/** Returns the receiver of the item, unless the wish selects another; 0 selects none. */
function chooseReceiver(
  { receivers }: SpendingScene,
  item: AccessItem | undefined,
  limit: Amount | undefined,
  wish: number,
): SpendingReceiver {
  const [first] = receivers
  if (wish > 0) return receivers[wish % receivers.length] ?? first
  const { receiver, receiveAmount } = item?.limits ?? {}
  const named = receivers.find(({ url }) => url === receiver)
  if (named !== undefined || receiveAmount === undefined) return named ?? first
  return receivers.find(({ asset }) => asset.assetCode === limit?.assetCode) ?? first
}

export function planTotals(
  { scene }: Draft,
  { type, share, delivered: deliveredShare, final }: TotalsWish,
  { request, sent, delivered }: BookedPayment,
): SpendingAction {
  const { payment, debitAmount, receiveAmount, receiver } = request
  const total = sentOf(share, sent, BigInt(debitAmount.value))
  const arrived =
    deliveredShare === undefined
      ? within(receivedOf(total, receiverAt(scene, receiver)), 0n, amountValueMax)
      : sentOf(deliveredShare, delivered, BigInt(receiveAmount.value))
  const totals = {
    payment,
    sentAmount: amountOf(total, debitAmount),
    deliveredAmount: amountOf(arrived, receiveAmount),
  }
  return type === 'fail' ? { type, ...totals } : { type, ...totals, final }
}

/** Returns the cumulative amount for a share of a payment, given the amount before. */
function sentOf(share: Share, before: bigint, debit: bigint): bigint {
  switch (share) {
    case 'nothing':
      return before
    case 'one unit':
      return before < debit ? before + 1n : before
    case 'half':
      return before + (debit - before) / 2n
    case 'all but one unit':
      return before < debit ? debit - 1n : debit
    case 'all':
      return debit
    case 'too much':
      return debit < amountValueMax ? debit + 1n : debit
  }
}
