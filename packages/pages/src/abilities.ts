import type { AccessItem } from 'open-payments-server'
import { actionText } from './access.js'
import { type Html, html } from './html.js'
import { isolated, type Locale, say } from './locale.js'

const known = new Set(['create', 'complete', 'read', 'read-all', 'list', 'list-all'])

/**
 * Returns what an app may do besides paying, in the words of an owner: to list is to see, and who creates payment
 * requests closes and sees them. The details of a page name each action.
 */
function abilitiesOf(access: readonly AccessItem[], locale: Locale): readonly string[] {
  const types = [...new Set(access.map(({ type }) => type))]
  return types.flatMap((type) => {
    const granted = new Set<string>(
      access.flatMap((item) => (item.type === type ? item.actions : [])),
    )
    const may = (...actions: readonly string[]) => actions.some((action) => granted.has(action))
    const creates = type !== 'outgoing-payment' && may('create')
    const seesOwn = may('read', 'list') && !creates
    const words = [
      ...(creates ? ['create'] : may('complete') ? ['complete'] : []),
      ...(may('read-all', 'list-all') ? ['read-all'] : seesOwn ? ['read'] : []),
      ...[...granted].filter((action) => !known.has(action)),
    ]
    return words.map((action) => actionText(type, action, locale))
  })
}

/** Returns what an app may do besides paying, as items of a list. */
export function accessLines(access: readonly AccessItem[], locale: Locale): readonly Html[] {
  return abilitiesOf(access, locale).map((text) => html`<li>${isolated(text)}</li>`)
}

/** Returns a quiet list of what an app may do besides paying, or nothing. */
export function alsoList(
  key: 'also' | 'appsMay',
  access: readonly AccessItem[],
  locale: Locale,
): Html {
  const lines = accessLines(access, locale)
  if (lines.length === 0) return html``
  return html`<div class="quiet"><p>${say(locale, key)}</p><ul>${lines}</ul></div>`
}
