import type { HttpResponse } from 'open-payments-server/adapter'

const dayS = 86_400

/** Two colours that stand out on light and on dark tabs. */
const walletIcon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#0b5bd3"/><path d="M8 12h16v10H8zM18 17h6" fill="none" stroke="#fff" stroke-width="2.5"/></svg>`

/**
 * Returns the icon of the wallet, for `/favicon.ico`. Browsers ask for it on each page: without an answer, the wallet
 * refuses and logs each of these requests.
 *
 * @param svg an SVG image of your own.
 *
 * @example
 * ```ts
 * import type { Handler } from 'open-payments-server'
 * import { icon } from 'open-payments-pages'
 *
 * const favicon: Handler = async () => icon() // mount it at /favicon.ico
 * ```
 */
export function icon(svg: string = walletIcon): HttpResponse {
  return {
    status: 200,
    headers: {
      'content-type': 'image/svg+xml',
      'cache-control': `public, max-age=${dayS}`,
      // The image can be opened as a page: it may run nothing there.
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'referrer-policy': 'strict-origin',
      'x-content-type-options': 'nosniff',
    },
    body: svg,
  }
}
