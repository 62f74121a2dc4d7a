import type { Handler, HttpRequest } from 'open-payments-server/adapter'
import { confirmationHandler } from './confirmation-handler.js'
import { connectedAppsHandler } from './connected-apps-handler.js'
import { consentHandler } from './consent-handler.js'
import { icon } from './icon.js'
import { keysHandler } from './keys-handler.js'
import type { PagesOptions } from './options.js'
import { sendHandler } from './send-handler.js'
import { createSite } from './site.js'

/** The pages as handlers, for the adapters of the library, such as `toExpress`. */
export interface Pages {
  /** The consent page, below the path of `consentUrl`: `/consent/{id}`. */
  readonly consent: Handler
  /**
   * The page on which an owner confirms one payment, at `…/{paymentId}`: the `url` of `policy.mayPay`, as in
   * `https://wallet.example/confirm/{paymentId}`.
   */
  readonly confirmation: Handler
  /** The page of connected apps. */
  readonly connectedApps: Handler
  /**
   * The page on which owners register the public keys of apps, and revoke them. An app can link to it with `account`,
   * `name` and `key` in the query, which only fill the form.
   */
  readonly keys: Handler
  /**
   * The page on which an owner pays somebody from the wallet, with the option `send`: it shows the price first. A link
   * can have `account`, `to` and `amount` in the query, which only fill the form.
   */
  readonly send: Handler
  /** A page for paths at which there is nothing, with the status 404. */
  readonly notFound: Handler
  /**
   * Returns the handler of the servers with what browsers need besides: the icon at `/favicon.ico`, and `notFound`
   * where the servers have nothing. Clients get the responses of the servers.
   */
  around(handle: Handler): Handler
}

/**
 * Creates the pages on which owners consent, and see and end the access of apps.
 *
 * @throws {InvalidInputError} for an invalid option.
 *
 * @example
 * ```ts
 * import { createPages, seeOther } from 'open-payments-pages'
 *
 * const pages = createPages({
 *   auth: wallet.auth,
 *   resources: wallet.resources,
 *   ownerOf: async () => ({ id: 'alice', name: 'Alice' }), // from your session
 *   accountsOf: async () => [
 *     { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 },
 *   ],
 *   signIn: ({ url }) => seeOther(`/login?next=${encodeURIComponent(url)}`),
 *   formKey: Buffer.from(process.env['FORM_KEY'] ?? '', 'base64'),
 * })
 * ```
 */
export function createPages(options: PagesOptions): Pages {
  const site = createSite(options)
  const notFound = site.served(async (visit) =>
    site.notice(404, 'unknown', visit, { place: 'elsewhere' }),
  )
  return {
    consent: consentHandler(site),
    confirmation: confirmationHandler(site),
    connectedApps: connectedAppsHandler(site),
    keys: keysHandler(site),
    send: sendHandler(site),
    notFound,
    around(handle) {
      const { mayMatch } = handle
      const serve: Handler = async (request) => {
        if (isForIcon(request)) return icon()
        const response = await handle(request)
        return response.unmatched && isRead(request) && acceptsHtml(request)
          ? notFound(request)
          : response
      }
      const isOwn: Handler['mayMatch'] = (request) =>
        isRead(request) || mayMatch?.(request) !== false
      return Object.assign(serve, { mayMatch: isOwn })
    },
  }
}

type RequestLine = Pick<HttpRequest, 'method' | 'url'>

function isRead({ method }: RequestLine): boolean {
  return method === 'GET' || method === 'HEAD'
}

function isForIcon(request: RequestLine): boolean {
  return isRead(request) && request.url.split('?', 1)[0] === '/favicon.ico'
}

function acceptsHtml({ headers }: HttpRequest): boolean {
  return headers.some(
    ([name, value]) => name.toLowerCase() === 'accept' && value.includes('text/html'),
  )
}
