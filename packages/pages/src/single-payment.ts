import type { InteractionView, TokenItem } from 'open-payments-server'
import { type DescriptionOptions, outlookOf } from './access.js'
import { amountHtml } from './amounts.js'
import type { Html } from './html.js'
import { say } from './locale.js'
import { receiverName } from './receivers.js'

/** Returns the words for a request that is no more than one payment: of what its only receiver asks for. */
export function singlePaymentOf(
  total: InteractionView['totals'][number],
  access: readonly TokenItem[],
  options: DescriptionOptions,
): Html | undefined {
  const { locale, receivers } = options
  const { limit, isReceived, receivers: named } = outlookOf(total, access, options)
  const [receiver, ...others] = named
  if (receiver === undefined || others.length > 0 || total.items > 1) return undefined
  if (total.interval !== undefined || limit === undefined || isReceived) return undefined
  const asked = receivers?.get(receiver)?.amount
  const isAll =
    asked?.value === limit.value &&
    asked.assetCode === limit.assetCode &&
    asked.assetScale === limit.assetScale
  if (!isAll) return undefined
  const name = receiverName(receiver, receivers)
  return say(locale, 'payOnce', { receiver: name, amount: amountHtml(limit, locale) })
}
