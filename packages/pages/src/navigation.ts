import type { NavigationLink } from './layout.js'
import { type Locale, plain } from './locale.js'
import type { PagesOptions } from './options.js'

/** A page to which the others link. */
export type Place = 'send' | 'apps' | 'limits' | 'keys'

/** Returns the links between the pages of an owner, if there are several. `elsewhere` is none of them. */
export function navigationAt(
  place: Place | 'elsewhere',
  {
    connectedAppsUrl,
    accountLimits,
    keysUrl,
    sendUrl,
  }: Pick<PagesOptions, 'connectedAppsUrl' | 'accountLimits' | 'keysUrl' | 'sendUrl'>,
  locale: Locale,
): readonly NavigationLink[] {
  const limitsUrl = accountLimits && connectedAppsUrl && limitsUrlAt(connectedAppsUrl)
  const places = [
    { name: 'apps', url: connectedAppsUrl, text: plain(locale, 'navigationApps') },
    { name: 'limits', url: limitsUrl, text: plain(locale, 'navigationLimits') },
    { name: 'keys', url: keysUrl, text: plain(locale, 'navigationKeys') },
    { name: 'send', url: sendUrl, text: plain(locale, 'navigationSend') },
  ] as const
  const links = places.flatMap(({ name, url, text }) =>
    url === undefined ? [] : [{ url, text, isCurrent: name === place }],
  )
  return links.length > 1 ? links : []
}

/** Returns the URL of the page of limits for all apps. */
export function limitsUrlAt(connectedAppsUrl: string): string {
  return `${connectedAppsUrl}${connectedAppsUrl.includes('?') ? '&' : '?'}limits`
}
