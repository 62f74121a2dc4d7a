import { pick, show, type WireAnswer } from 'open-payments-programs'
import { bodySizes, keptBytes, ownErrors, passedMethod } from './remedies.js'
import type { Problem } from './report.js'

/** Whether the response has an error in the form of Open Payments. */
export function isOwnError({ body }: WireAnswer): boolean {
  const error = pick(body, 'error')
  return typeof error === 'string' || typeof pick(error, 'code') === 'string'
}

/**
 * Explains a response whose status and content show that it does not come from the addressed operation, but from a
 * proxy, a firewall, a web page, or a wallet that is not available. `undefined` for all other responses.
 */
export function recognised(answer: WireAnswer): Problem | undefined {
  const { status } = answer
  const isOwn = isOwnError(answer)
  if (isChallenge(answer)) return firewall(answer)
  if (status === 429) return limited(answer)
  if (status >= 300 && status < 400) return redirected(answer)
  if (status === 401 && password.test(challengeOf(answer))) return passwordProtected(answer)
  if (status === 503 && isOwn) return unavailable(answer)
  // Proxies put the status into the title of their pages, frameworks do not.
  if (status === 500 && !titleOf(answer)?.startsWith('500')) return failing(answer, isOwn)
  if (status >= 500 && !isOwn) return isBlocked(answer) ? blocked(answer) : proxyPage(answer)
  if (answer.text.startsWith('\x1f')) return compressed(answer)
  if (isIncomplete(answer)) return incomplete(answer)
  if (isOwn) return undefined
  if (status < 300) return isPage(answer) ? webPage(answer) : undefined
  if (status === 401 && isPage(answer)) return replacedError(answer)
  if (isForgery(answer)) return guarded(answer)
  if (isBlocked(answer)) return blocked(answer)
  return status === 404 ? undefined : firewall(answer)
}

const password = /^(Basic|Bearer|Digest|Negotiate|NTLM)\b/i

function challengeOf({ headers }: WireAnswer): string {
  return headers.get('www-authenticate') ?? ''
}

function isBlocked({ status, request }: WireAnswer): boolean {
  return status === 405 || status === 501 || (status === 403 && /^(DELETE|OPTIONS) /.test(request))
}

/** Whether a guard against forged forms may have refused a request without content, which it takes for a form. */
function isForgery({ status, request, hadContent }: WireAnswer): boolean {
  return status === 403 && hadContent === false && request.startsWith('POST ')
}

function isPage({ headers, text }: WireAnswer): boolean {
  return /html/i.test(headers.get('content-type') ?? '') || /^\s*<(!doctype|html)\b/i.test(text)
}

/** Whether a page asks visitors to prove that they are human, as firewalls do with any status. */
function isChallenge(answer: WireAnswer): boolean {
  const title = isPage(answer) ? (titleOf(answer) ?? '') : ''
  return /^just a moment|checking your browser|are you (?:a )?(?:human|robot)|captcha|request rejected/i.test(
    title,
  )
}

/** Whether JSON ends in the middle, although the connection delivered all that was announced. */
function isIncomplete({ text, body, headers }: WireAnswer): boolean {
  const isJson = /json/i.test(headers.get('content-type') ?? '')
  const json = text.trim()
  return isJson && body === undefined && json.startsWith('{') && !json.endsWith('}')
}

/** Shows the status, and the title of a page or the message of a gateway: `(502, "502 Bad Gateway")`. */
function shown(answer: WireAnswer): string {
  const title = titleOf(answer)
  return title === undefined ? `(${answer.status})` : `(${answer.status}, ${show(title)})`
}

function titleOf({ text, body }: WireAnswer): string | undefined {
  const title = /<title>([^<]{1,200})<\/title>/i.exec(text)?.[1] ?? pick(body, 'message')
  return typeof title === 'string' ? title.trim().slice(0, 80) : undefined
}

function urlOf({ request }: WireAnswer): URL {
  return new URL(request.replace(/^.* /, ''))
}

/** The origin that responded. A proxy at this origin treats other requests in the same way. */
function originOf(answer: WireAnswer): string {
  return urlOf(answer).origin
}

function limited(answer: WireAnswer): Problem {
  const after = answer.headers.get('retry-after')
  return {
    what: `${answer.request} is limited: status 429${after === null ? '' : ` and Retry-After ${after}`}`,
    why: isOwnError(answer)
      ? 'The rateLimit of the wallet refused the request.'
      : 'A proxy or firewall refused the request because of a rate limit, before the wallet saw it.',
    fix: isOwnError(answer)
      ? ['rateLimit: perMinute(600) // a payment needs about ten requests']
      : [
          '# Exempt the paths of the wallet, or raise the limit: a payment needs about ten requests.',
          'limit_req zone=wallet burst=50 nodelay;  # nginx',
        ],
    cause: `limit ${originOf(answer)}`,
  }
}

/** Says how the target of a redirect differs from the URL of the request. */
function redirectTarget(answer: WireAnswer): string {
  const location = answer.headers.get('location') ?? ''
  const from = urlOf(answer)
  if (!URL.canParse(location, from.href)) return `Location ${show(location)}`
  if (loginPath.test(location)) return 'a login page'
  const to = new URL(location, from)
  if (to.hostname !== from.hostname) return `the host ${to.host}`
  if (to.protocol !== from.protocol) return to.protocol.slice(0, -1)
  if (to.pathname === `${from.pathname}/`) return 'the same path with a slash at the end'
  if (`${to.pathname}/` === from.pathname) return 'the same path without the slash at the end'
  if (to.pathname === from.pathname.toLowerCase()) return 'the same path in lower case'
  return to.href
}

const loginPath = /log-?in|sign-?in|\/sso|oauth|authorize/i

function redirected(answer: WireAnswer): Problem {
  const isLogin = loginPath.test(answer.headers.get('location') ?? '')
  return {
    what: `${answer.request} redirects to ${redirectTarget(answer)} (${answer.status})`,
    why: isLogin
      ? 'Clients have no account at the login page. The wallet itself verifies who sends a request.'
      : 'Clients and other wallets do not follow redirects, because a signature covers one URL.',
    fix: isLogin
      ? ['# Exempt this path from the login: auth_request off;  # nginx']
      : [
          '# Serve this URL itself, or publish the URL to which it redirects everywhere.',
          '# nginx: no return 301 and no rewrite for the paths of the wallet. Redirect browsers only.',
        ],
    cause: `redirect ${originOf(answer)}`,
  }
}

function passwordProtected(answer: WireAnswer): Problem {
  const [scheme = ''] = challengeOf(answer).split(/\s/, 1)
  return {
    what: `${answer.request} asks for a password (401, ${scheme})`,
    why: 'The proxy protects the path. Clients send no password, but a signature that the wallet verifies.',
    fix: ['auth_basic off;  # nginx, at the paths of the wallet'],
    cause: `password ${originOf(answer)}`,
  }
}

function unavailable(answer: WireAnswer): Problem {
  const description = pick(answer.body, 'error', 'description')
  const [, why, more] = reasons.find(([text]) => text.test(String(description))) ?? [
    undefined,
    'The wallet runs, but its store or a function that it calls fails or does not respond in time.',
  ]
  return {
    what: `${answer.request} responded with status 503: the wallet says ${show(description)}`,
    why,
    fix: [
      'onError: (error) => console.error(error), // says what failed',
      ...(more === undefined ? [] : [more]),
    ],
    cause: `unavailable ${originOf(answer)}`,
  }
}

/** Texts of this library, what they mean, and what to change. */
const reasons: readonly (readonly [text: RegExp, why: string, fix: string])[] = [
  [
    /^Client keys/,
    'The wallet runs, but cannot fetch the key set of the client.',
    'curl -i <client>/jwks.json  # on the machine of the authorization server',
  ],
  [
    /^Token cannot be checked/,
    'The authorization server does not tell the resource server whether a token is valid.',
    'resourceServers: [{ id, keys, … }] // the id and the key with which remoteGrants signs',
  ],
]

function failing(answer: WireAnswer, isOwn: boolean): Problem {
  const begin = `${answer.request} responded with status 500`
  if (isOwn) {
    return {
      what: `${begin}: the wallet reports an internal error`,
      why: 'A function that the wallet calls, such as find, returned something else than documented.',
      fix: ['onError: (error) => console.error(error), // says what failed'],
      cause: 'internal',
    }
  }
  const hasBody = answer.request.startsWith('POST ')
  return {
    what: `${begin}: the application failed before it verified the request`,
    why: hasBody
      ? 'If a body parser runs first, the signed bytes are lost: the log says ERR_RAW_BODY_UNAVAILABLE.'
      : 'The response has no error of Open Payments, so something in front of the wallet failed.',
    fix: hasBody
      ? ['app.use(toExpress(wallet.handle)) // before app.use(express.json())', ...keptBytes]
      : ['# Look at the log of the application for an error at this path.'],
    cause: 'failing',
  }
}

function proxyPage(answer: WireAnswer): Problem {
  const what = isPage(answer) ? 'a page of the proxy' : 'an error of the proxy'
  return {
    what: `${answer.request} responded with ${what} ${shown(answer)}`,
    why: 'The proxy responded itself, because the application does not run, is too slow or is switched off.',
    fix: [
      '# Look at the log of the proxy, and whether the application listens at the address of proxy_pass.',
      ...(answer.status === 503
        ? [
            'limit_req_status 429;  # nginx, if there is a limit_req: it responds with 503 by default',
          ]
        : []),
    ],
    cause: `proxy ${originOf(answer)}`,
  }
}

function compressed(answer: WireAnswer): Problem {
  return {
    what: `${answer.request} responded with gzip data without Content-Encoding`,
    why: 'Clients read the compressed bytes as JSON.',
    fix: ['# Let either the application or the proxy compress, and pass on Content-Encoding.'],
    cause: 'gzip',
  }
}

function incomplete(answer: WireAnswer): Problem {
  const length = Buffer.byteLength(answer.text)
  return {
    what: `the response to ${answer.request} is cut: its JSON ends after ${length} bytes`,
    why: 'The wallet sends whole documents. A proxy or middleware passes on a part, and says that it is all.',
    fix: [
      '# Raise the limit for responses in the proxy, and let no middleware set Content-Length.',
    ],
    cause: 'cut-off',
  }
}

function webPage(answer: WireAnswer): Problem {
  return {
    what: `${answer.request} responded with a web page ${shown(answer)}`,
    why: 'The request reached a web site instead of the wallet: often a fallback of a single-page application.',
    fix: [
      '# Pass the paths of the wallet on before the fallback: in nginx, before try_files … /index.html;',
      'location /auth { proxy_pass http://127.0.0.1:3000; }',
    ],
    cause: `web page ${originOf(answer)}`,
  }
}

function replacedError(answer: WireAnswer): Problem {
  return {
    what: `${answer.request} responded with a page instead of the JSON of the error ${shown(answer)}`,
    why: 'The proxy replaced the body of the error. Clients branch on its code.',
    fix: ownErrors,
    cause: 'replaced errors',
  }
}

function guarded(answer: WireAnswer): Problem {
  return {
    what: `JSON passes, but ${answer.request} without content is refused ${shown(answer)}: a guard against forged forms`,
    why: 'Completion, rotation, revocation and cancellation have none. A token that cannot be revoked goes on working.',
    fix: [
      'app.use(toExpress(wallet.handle, { fallthrough: true })) // the first line, before csrf() and others',
      '# or let POST and DELETE pass below the paths of the servers: docs/mounting.md, "Guards against forged forms"',
    ],
    cause: 'forgery guard',
  }
}

function blocked(answer: WireAnswer): Problem {
  const [method = ''] = answer.request.split(' ', 1)
  return {
    what: `the proxy does not pass on ${answer.request} (${answer.status})`,
    why: 'Clients need GET, POST, DELETE and OPTIONS. Something in front of the wallet knows fewer methods.',
    fix: [
      passedMethod(method),
      '// In Next.js:',
      `export const ${method} = toFetch(wallet.handle)`,
    ],
    cause: `method ${method}`,
  }
}

function firewall(answer: WireAnswer): Problem {
  return {
    what: `a firewall or proxy refused ${answer.request} ${shown(answer)}`,
    why: 'The response has no error of Open Payments, so the request was refused before the wallet saw it.',
    fix:
      answer.status === 413
        ? bodySizes
        : [
            '# Exempt the paths of the wallet from the rules for browsers, bots and bodies: clients are programs.',
          ],
    cause: `firewall ${originOf(answer)}`,
  }
}
