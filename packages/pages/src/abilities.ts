import type { AccessItem } from 'open-payments-server'
import { actionText } from './access.js'
import { type Html, html } from './html.js'
import { isolated, type Locale, listed, say } from './locale.js'

/** Returns what an app may do besides paying, once each. */
function abilitiesOf(access: readonly AccessItem[], locale: Locale): readonly string[] {
  const texts = access.flatMap(({ type, actions }) =>
    actions
      .filter((action) => type !== 'outgoing-payment' || action !== 'create')
      .map((action) => actionText(type, action, locale)),
  )
  return [...new Set(texts)]
}

/** Returns what an app may do besides paying, as items of a list. */
export function accessLines(access: readonly AccessItem[], locale: Locale): readonly Html[] {
  return abilitiesOf(access, locale).map((text) => html`<li>${isolated(text)}</li>`)
}

/** Returns a quiet line with what an app may do besides paying, or nothing. */
export function alsoLine(
  key: 'also' | 'appsMay',
  access: readonly AccessItem[],
  locale: Locale,
): Html {
  const abilities = abilitiesOf(access, locale)
  if (abilities.length === 0) return html``
  const list = html`${listed(abilities, locale)}`
  return html`<p class="quiet">${say(locale, key, { list })}</p>`
}
