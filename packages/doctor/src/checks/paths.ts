import type { Problem } from '../check.js'
import type { WireAnswer } from '../conformance/exchange.js'
import { responded } from '../conformance/expectations.js'

/** A server of the wallet, as the application configures it. */
interface WalletServer {
  readonly url: string
  /** The option that has its URL. */
  readonly option: 'grantEndpoint' | 'baseUrl'
  readonly handler: 'auth.handle' | 'resources.handle'
}

export function authorizationServer(url: string): WalletServer {
  return { url, option: 'grantEndpoint', handler: 'auth.handle' }
}

export function resourceServer(url: string): WalletServer {
  return { url, option: 'baseUrl', handler: 'resources.handle' }
}

/** The lines that give a server the bytes that clients signed. */
export function keepBytes(server: WalletServer): readonly string[] {
  return [
    `${mountLine(server)} // before app.use(express.json())`,
    '// (without the prefix that a proxy removes, if one does)',
    '// or let the parser keep the bytes:',
    'express.json({ verify: (request, _response, buffer) => void Object.assign(request, { rawBody: buffer }) })',
  ]
}

function mountLine({ url, handler }: WalletServer): string {
  return `app.use('${new URL(url).pathname}', toExpress(${handler}))`
}

/**
 * Says what to do if a server was not found below its URL, or failed before it verified the request; `undefined` for
 * other responses.
 */
export function misrouted(answer: WireAnswer, server: WalletServer): Problem | undefined {
  const { status } = answer
  if (status === 404 || status === 405) return notFound(answer, server)
  if (status >= 500) return failing(answer, server)
  if (status >= 300 && status < 400) return redirected(answer, server)
  return undefined
}

function notFound(answer: WireAnswer, server: WalletServer): Problem {
  const { url, option } = server
  const { pathname } = new URL(url)
  // Express and Fastify name the path that they received.
  const [, seen] = /(?:Cannot|Route) [A-Z]{3,7}[ :](\/[^\s<]{0,500})/.exec(answer.text) ?? []
  const changed = seen !== undefined && !seen.startsWith(pathname)
  const [, first = ''] = pathname.split('/')
  return {
    what: `${responded(answer)}${changed ? `: the application received the path ${seen}` : ''}`,
    why: 'The path does not reach the server: the proxy changed it, or the server is mounted elsewhere.',
    fix: [
      `location /${first}/ { proxy_pass http://127.0.0.1:3000; }  # nginx: no slash at the end, which removes /${first}`,
      `strippedPrefix: '/${first}', // or name what the proxy removes, beside ${option}`,
      `${mountLine(server)} // mount at the path of ${url}`,
    ],
  }
}

function failing(answer: WireAnswer, server: WalletServer): Problem {
  return {
    what: responded(answer),
    why:
      'The application failed before it verified the signature. If a body parser runs first, the bytes that the ' +
      'client signed are lost: the log says ERR_RAW_BODY_UNAVAILABLE.',
    fix: keepBytes(server),
  }
}

function redirected(answer: WireAnswer, { url }: WalletServer): Problem {
  return {
    what: `${responded(answer)} and Location ${answer.headers.get('location')}`,
    why: 'Clients do not follow redirects, because a signature covers one URL.',
    fix: [
      `# Serve ${url} itself, also with its slash at the end or without it.`,
      'merge_slashes off;  # nginx; and no rewrite or return 301 for this location',
    ],
  }
}
