import type { Amount, ItemBudget, ItemView, PaymentToConfirm } from 'open-payments-server'
import { parseInterval } from 'open-payments-server/core'
import { type DescriptionOptions, every } from './access.js'
import { amountHtml, formatAmount } from './amounts.js'
import { type Html, html } from './html.js'
import { formatDay, isolated, plain, say } from './locale.js'

type CountedAmount = keyof ItemBudget['spent']

/** Returns the limit of an item, and what of it is spent. */
export function limitHtml(
  item: ItemView,
  {
    budgets,
    waiting = [],
  }: {
    readonly budgets?: readonly ItemBudget[] | undefined
    readonly waiting?: readonly PaymentToConfirm[] | undefined
  },
  options: DescriptionOptions,
): Html {
  const { locale } = options
  const { itemId = '', limits = {}, label } = item
  const { debitAmount, receiveAmount, interval } = limits
  const limit = debitAmount ?? receiveAmount
  const parsed = interval === undefined ? undefined : parseInterval(interval)
  const often = parsed?.ok
    ? every(parsed.value, locale)
    : interval !== undefined
      ? isolated(interval)
      : limit && say(locale, 'inAll')
  const amount =
    limit === undefined
      ? say(locale, 'anyAmount')
      : say(locale, debitAmount ? 'upTo' : 'upToReceived', { amount: amountHtml(limit, locale) })
  const budget = budgets?.find((each) => each.item.itemId === itemId)
  const counts: CountedAmount = debitAmount ? 'debitAmount' : 'receiveAmount'
  return html`<div class="limit">
    ${label !== undefined && html`<p class="quiet small">${say(locale, 'token', { label })}</p>`}
    <strong>${amount} ${often}</strong>
    ${budget && budgetHtml(withoutWaiting(budget, waiting), limit && { limit, left: budget.left[counts], counts }, options)}
    </div>`
}

/** A budget of which only what was sent, or is being sent, counts as spent, and what waits for the owner apart. */
interface SpentBudget extends ItemBudget {
  readonly waits: { readonly [Name in CountedAmount]: bigint }
}

/** Takes what waits for the owner out of what a budget calls spent: it reserves that, too. */
function withoutWaiting(budget: ItemBudget, waiting: readonly PaymentToConfirm[]): SpentBudget {
  const { item, window, spent } = budget
  const counted = waiting.filter(
    ({ itemId, createdAt }) => itemId === item.itemId && isIn(window, createdAt),
  )
  const sumOf = (name: CountedAmount) =>
    counted.reduce((sum, payment) => sum + BigInt(payment[name].value), 0n)
  const waits = { debitAmount: sumOf('debitAmount'), receiveAmount: sumOf('receiveAmount') }
  const less = (name: CountedAmount) => {
    const amount = spent[name]
    return amount && { ...amount, value: String(BigInt(amount.value) - waits[name]) }
  }
  const sent = { debitAmount: less('debitAmount'), receiveAmount: less('receiveAmount') }
  return { ...budget, spent: sent, waits }
}

/** Whether an instant is in a window; without one, every instant is. */
export function isIn(window: ItemBudget['window'], at: number): boolean {
  return window === undefined || (at >= window.start && at < window.end)
}

function budgetHtml(
  { isOpen, window, spent, waits }: SpentBudget,
  limited:
    | { readonly limit: Amount; readonly left: Amount | undefined; readonly counts: CountedAmount }
    | undefined,
  { locale }: DescriptionOptions,
): Html {
  if (!isOpen) return html`<p class="quiet">${say(locale, 'notNow')}</p>`
  const { debitAmount } = spent
  if (limited === undefined) {
    return html`${debitAmount && html`<p class="quiet">${say(locale, 'spent', { spent: amountHtml(debitAmount, locale) })}</p>`}`
  }
  const { limit, left = { ...limit, value: '0' }, counts } = limited
  // More than the limit, if the owner has lowered it since.
  const used = spent[counts] ?? {
    ...limit,
    value: String(BigInt(limit.value) - BigInt(left.value) - waits[counts]),
  }
  const values = { spent: amountHtml(used, locale), limit: amountHtml(limit, locale) }
  const rest = { left: amountHtml(left, locale) }
  const end = window && formatDay(window.end, locale)
  const percent = percentOf(used, limit)
  const reserved = { ...limit, value: String(waits[counts]) }
  return html`<svg class="bar" role="meter" aria-valuemin="0" aria-valuemax="100" aria-valuenow="${percent}" aria-label="${plain(locale, 'spentOf', { spent: formatAmount(used, locale), limit: formatAmount(limit, locale) })}"><rect width="${percent}%" height="100%"/>${waits[counts] > 0n && html`<rect class="waits" x="${percent}%" width="${percentOf(reserved, limit)}%" height="100%"/>`}</svg>
    <p class="sides quiet"><span>${say(locale, 'spentOf', values)}</span>
    <span>${end === undefined ? say(locale, 'left', rest) : say(locale, 'leftUntil', { ...rest, end })}</span></p>
    ${waits[counts] > 0n && html`<p class="quiet">${say(locale, 'waitsReserved', { amount: amountHtml(reserved, locale) })}</p>`}`
}

function percentOf(used: Amount, limit: Amount): string {
  const most = BigInt(limit.value)
  const parts = most === 0n ? 1_000n : (BigInt(used.value) * 1_000n) / most
  return (Math.min(Number(parts), 1_000) / 10).toString()
}
