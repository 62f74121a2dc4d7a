import {
  pick,
  ReachError,
  responded,
  tokenIn,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import { isOwnError, recognised } from '../answer.js'
import { type Check, caseCheck } from '../check.js'
import { createdId } from '../conformance/incoming-payment.js'
import type { Session } from '../conformance/session.js'
import { bodySizes, keptBytes, ownChallenge, unchangedTarget } from '../remedies.js'
import type { Problem } from '../report.js'
import {
  changedInTransit,
  deliveredTwice,
  notVerified,
  refusedToken,
  variantsOf,
  verifiedTarget,
} from './refusal.js'

/** A server of the wallet, as the application configures it. */
interface WalletServer {
  readonly name: 'authorization server' | 'resource server'
  readonly url: string
  /** The option that has its URL. */
  readonly option: 'grantEndpoint' | 'baseUrl'
  readonly handler: 'auth.handle' | 'resources.handle'
}

function authorizationServer(url: string): WalletServer {
  return { name: 'authorization server', url, option: 'grantEndpoint', handler: 'auth.handle' }
}

function resourceServer(url: string): WalletServer {
  return { name: 'resource server', url, option: 'baseUrl', handler: 'resources.handle' }
}

function mountLine({ url, handler }: WalletServer): string {
  return `app.use('${new URL(url).pathname}', toExpress(${handler}))`
}

/** Says that a server was not found below its URL. */
function notFound(answer: WireAnswer, server: WalletServer): Problem {
  const { name, url, option } = server
  const { pathname } = new URL(url)
  // Express and Fastify name the path that they received.
  const [, seen] = /(?:Cannot|Route) [A-Z]{3,7}[ :](\/[^\s<]{0,500})/.exec(answer.text) ?? []
  const changed = seen !== undefined && !seen.startsWith(pathname)
  const [, first = ''] = pathname.split('/')
  return {
    what: `${answer.request} does not reach the ${name} (${answer.status})${changed ? `: the application received the path ${seen}` : ''}`,
    why: 'The proxy changed the path, the server is mounted elsewhere, or the wallet address names another URL.',
    fix: [
      `location /${first}/ { proxy_pass http://127.0.0.1:3000; }  # nginx: no slash at the end, which removes /${first}`,
      `strippedPrefix: '/${first}', // or name what the proxy removes, beside ${option}`,
      `${mountLine(server)} // mount at the path of ${url}`,
    ],
    cause: 'path',
  }
}

const isLost = ({ status }: WireAnswer) => status === 404 || status === 405

function accessOf({ walletAddress: identifier }: Session) {
  return { type: 'incoming-payment', actions: ['create', 'read'], identifier }
}

/** A signed request for access that needs no consent. */
const signed: Check = {
  name: 'signed-request',
  after: ['wallet-urls'],
  async run(context) {
    const { session } = context
    const { authServer } = await session.wallet()
    const attempt = (sign: Parameters<Session['askFor']>[2]) =>
      session.askFor([accessOf(session)], {}, sign)
    const answer = await answerOrUnread(session, authServer, () => attempt({}))
    if ('what' in answer) return answer
    if (isLost(answer)) {
      return (await otherServer(session)) ?? notFound(answer, authorizationServer(authServer))
    }
    const known = recognised(answer)
    if (known !== undefined) return known
    if (answer.status === 200) {
      tokenIn(answer)
      return undefined
    }
    const twice = deliveredTwice(answer)
    if (twice !== undefined) return twice
    const isAccepted = ({ status }: WireAnswer) => status === 200
    const verified = await verifiedTarget(variantsOf(authServer), attempt, isAccepted)
    if (verified !== undefined) return otherTarget(verified, authorizationServer(authServer))
    const changed = await changedInTransit(session, attempt, isAccepted)
    return changed ?? notVerified(answer, context)
  },
}

/**
 * Returns the answer to a POST with a body, or what is wrong if nothing answers it although one without a body is
 * answered.
 */
async function answerOrUnread(
  session: Session,
  url: string,
  attempt: () => Promise<WireAnswer>,
): Promise<WireAnswer | Problem> {
  const answer = await attempt().catch((error: unknown) => {
    if (error instanceof ReachError) return error
    throw error
  })
  const isUnreached = answer instanceof ReachError
  if (!isUnreached && (isOwnError(answer) || ![502, 504].includes(answer.status))) return answer
  const request = { method: 'POST', url, sign: false } as const
  const empty = await session.send(request).catch(() => undefined)
  if (empty !== undefined && isOwnError(empty)) {
    return {
      what: `POST ${url} is answered without a body, and not with one (${isUnreached ? 'no response' : answer.status})`,
      why: 'Something in front of a gateway has read the body, such as a parser: the wallet waits for it in vain.',
      fix: [
        "app.use('/auth', gateway) // http-proxy and others: before app.use(express.json())",
        '# or pass the bytes on as received: fixRequestBody writes others',
      ],
      cause: 'body',
    }
  }
  if (isUnreached) throw answer
  return answer
}

/** Says which URL is the right one, if the servers name another one than the wallet address. */
async function otherServer(session: Session): Promise<Problem | undefined> {
  const { authServer, resourceServer } = await session.wallet()
  const discovery = await session.send({ method: 'OPTIONS', url: resourceServer, sign: false })
  if (pick(discovery.body, 'grant_request_endpoint') === resourceServer) {
    return {
      what: 'authServer and resourceServer are swapped',
      why: 'The wallet address names the grant endpoint as the resource server.',
      fix: [
        `createWalletAddressServer({ grantEndpoint: '${resourceServer}', resourceServerUrl: '${authServer}' })`,
      ],
      cause: 'path',
    }
  }
  const { headers } = await session.requestIncoming(undefined)
  const [, named] = /as_uri="?([^\s",]{1,2000})/.exec(headers.get('www-authenticate') ?? '') ?? []
  return named === undefined || named === authServer
    ? undefined
    : otherEndpoint(authServer, named, 'resource server')
}

function otherEndpoint(authServer: string, endpoint: string, by: WalletServer['name']): Problem {
  return {
    what: `authServer is ${authServer}, but the ${by} names ${endpoint}`,
    why: 'Clients sign the URL that they know, and the hash of an interaction contains it.',
    fix: [
      `createWalletAddressServer({ grantEndpoint: '${endpoint}', … }) // if the wallet address is wrong`,
      `createAuthorizationServer({ grantEndpoint: '${authServer}', … }) // if the servers are: the same text in all`,
    ],
    cause: 'grant endpoint',
  }
}

function otherTarget(verified: string, { name, url, option }: WalletServer): Problem {
  return {
    what: `the ${name} accepts signatures of ${verified}, but clients sign ${url}`,
    why: 'Every signature covers the URL of the request. The server does not know the URL that clients use.',
    fix: [
      `${option}: '${url}' // of the ${name}`,
      '# If the server derives its URL from the request, the proxy must pass on the original:',
      'proxy_set_header Host $host;',
      'proxy_set_header X-Forwarded-Proto $scheme;',
      "app.set('trust proxy', 'loopback') // Express",
    ],
  }
}

/** Sends JSON that no serializer writes with the same bytes. */
const bytes: Check = {
  name: 'body-bytes',
  after: ['signed-request'],
  async run({ session }) {
    const { authServer: url } = await session.wallet()
    const request = { access_token: { access: [accessOf(session)] }, client: session.client }
    const body = JSON.stringify(request, undefined, 2).replace('"client"', '"\\u0063lient"')
    const answer = await session.send({ method: 'POST', url, body })
    if (answer.status === 200) return undefined
    return {
      what: `${answer.request} refused JSON with white space and escapes, and accepted the same JSON without them`,
      why: 'Signatures cover the bytes of the body. A parser or proxy parsed it and serialized it again.',
      fix: [
        `${mountLine(authorizationServer(url))} // before app.use(express.json())`,
        ...keptBytes,
      ],
    }
  },
}

/** The size of a body that the wallet accepts, and that some proxies and gateways do not. */
const largeBodyBytes = 20_000

const largeBody: Check = {
  name: 'body-size',
  after: ['body-bytes'],
  async run({ session }) {
    const { authServer: url } = await session.wallet()
    const request = { access_token: { access: [accessOf(session)] }, client: session.client }
    const body = JSON.stringify(request).padEnd(largeBodyBytes)
    const answer = await session.send({ method: 'POST', url, body })
    if (answer.status === 200) return undefined
    return (
      recognised(answer) ?? {
        what: `${answer.request} refused ${largeBodyBytes} bytes (${answer.status}), and accepted the same JSON with less white space`,
        why: 'Metadata and lists of access can be that long.',
        fix: bodySizes,
      }
    )
  },
}

const discovery: Check = {
  name: 'discovery',
  after: ['signed-request'],
  async run({ session }) {
    const { authServer: url } = await session.wallet()
    const answer = await session.send({ method: 'OPTIONS', url, sign: false })
    const isAnsweredByCors = answer.headers.has('access-control-allow-methods')
    if (answer.status < 300 && isAnsweredByCors && answer.body === undefined) {
      return swallowed(answer, url)
    }
    const endpoint = pick(answer.body, 'grant_request_endpoint')
    if (answer.status === 200 && endpoint === url) return undefined
    if (answer.status === 200 && typeof endpoint === 'string') {
      return otherEndpoint(url, endpoint, 'authorization server')
    }
    return { ...(recognised(answer) ?? undiscovered(answer)), severity: 'advice' }
  },
}

function swallowed(answer: WireAnswer, url: string): Problem {
  return {
    severity: 'advice',
    what: `cors() or a proxy answers ${answer.request} with status ${answer.status}`,
    why: 'It answers every OPTIONS request as a preflight, so clients cannot discover what the server supports.',
    fix: [
      '# nginx: no return 204 for OPTIONS at the paths of the wallet, which answers preflights itself',
      `${mountLine(authorizationServer(url))} // before app.use(cors())`,
      '// or let cors answer preflights only:',
      "const isPreflight = request.headers['access-control-request-method'] !== undefined",
      "if (request.method === 'OPTIONS' && !isPreflight) next()",
      'else cors()(request, response, next)',
    ],
  }
}

function undiscovered(answer: WireAnswer): Problem {
  return {
    what: `${responded(answer)} without a discovery document`,
    why: 'Clients cannot find out what the server supports (RFC 9635 section 9).',
    fix: [
      '# Pass OPTIONS on to the server. In Next.js:',
      'export const OPTIONS = toFetch(auth.handle)',
    ],
  }
}

const resources: Check = {
  name: 'resource-server',
  after: ['wallet-urls'],
  async run({ session }) {
    const server = resourceServer((await session.wallet()).resourceServer)
    const url = await session.resource('/incoming-payments')
    const answer = await answerOrUnread(session, url, () => session.requestIncoming(undefined))
    if ('what' in answer) return answer
    if (isLost(answer)) return notFound(answer, server)
    // The challenge is the resource server's own, so only the body was replaced, which other checks find.
    const isOwn = /^GNAP\b/i.test(answer.headers.get('www-authenticate') ?? '')
    return isOwn ? undefined : recognised(answer)
  },
}

const createCase = caseCheck('incoming-create', {
  after: ['signed-request', 'resource-server'],
  why: 'The id of a payment must be a URL below resourceServer, as clients see it.',
  fix: async ({ session }) => [
    `createResourceServer({ baseUrl: '${(await session.wallet()).resourceServer}', … })`,
  ],
  explain: async (answer, context) =>
    answer.status === 401 ? refused(context.session, answer) : undefined,
})

/** Several processes share the requests, so that one payment proves little. */
const creationsMin = 3

const create: Check = {
  ...createCase,
  async run(context) {
    for (let i = 0; i < creationsMin; i++) {
      const problem = await createCase.run(context)
      if (problem !== undefined) return problem
    }
    return undefined
  },
}

/** Says why the resource server refused a signed request with a token that was just issued. */
async function refused(session: Session, answer: WireAnswer): Promise<Problem | undefined> {
  const token = await session.sharedToken()
  const attempt = (sign: Parameters<Session['requestIncoming']>[2]) =>
    session.requestIncoming(token, {}, sign)
  const isAccepted = ({ status }: WireAnswer) => status === 201
  const lost = await refusedToken(session, answer)
  if (lost !== undefined) return lost
  const url = await session.resource('/incoming-payments')
  const verified = await verifiedTarget(variantsOf(url), attempt, isAccepted)
  if (verified !== undefined) return otherTarget(verified, resourceServer(url))
  return changedInTransit(session, attempt, isAccepted)
}

const asset: Check = {
  name: 'asset',
  after: ['wallet-document', 'incoming-create'],
  async run({ session }) {
    const answer = await session.createIncoming()
    const { asset: stated } = await session.wallet()
    const [code, scale] = ['assetCode', 'assetScale'].map((name) =>
      pick(answer.body, 'receivedAmount', name),
    )
    if (code === undefined || (code === stated.assetCode && scale === stated.assetScale))
      return undefined
    return {
      what: `the wallet address says ${stated.assetCode} with scale ${stated.assetScale}, and the resource server says ${code} with scale ${scale}`,
      why: 'Clients compute amounts with the scale of the wallet address: payers would pay another amount.',
      fix: [
        'walletAddresses: accounts // the same in createWalletAddressServer and createResourceServer',
      ],
    }
  },
}

const getCase = caseCheck('incoming-get', {
  after: ['incoming-create'],
  why: 'The id of a payment must lead to it, with the signature of the client.',
  fix: () => unchangedTarget,
})

/** Ids may be in lower case already, so that one in upper case shows whether the proxy keeps the case of paths. */
const get: Check = {
  ...getCase,
  async run(context) {
    const problem = await getCase.run(context)
    if (problem !== undefined) return problem
    const { session } = context
    const id = await createdId(session)
    const last = id.split('/').at(-1) ?? ''
    const token = await session.sharedToken()
    const url = id.slice(0, -last.length) + last.toUpperCase()
    const attempt = (sign: NonNullable<WireRequest['sign']>) =>
      session.send({ method: 'GET', url, token, sign })
    if (url === id || (await attempt({})).status !== 401) return undefined
    const isRead = ({ status }: WireAnswer) => status === 200
    if ((await verifiedTarget([id], attempt, isRead)) === undefined) return undefined
    return {
      what: `the proxy writes paths in lower case, as that of GET ${url}`,
      why: 'Ids are case-sensitive, and signatures cover the URL as clients send it.',
      fix: [
        '# Remove the rule that writes URLs in lower case, at least for the paths of the wallet.',
      ],
    }
  },
}

/** A path with an encoded character, such as `%7e` or that of an accented letter, has a signature as every other. */
const encodedPath: Check = {
  name: 'incoming-get-encoded',
  after: ['incoming-get'],
  async run({ session }) {
    const id = await createdId(session)
    const last = id.slice(-1)
    const url = `${id.slice(0, -1)}%${last.charCodeAt(0).toString(16)}`
    const token = await session.sharedToken()
    const attempt = (sign: NonNullable<WireRequest['sign']>) =>
      session.send({ method: 'GET', url, token, sign })
    const isVerified = ({ status }: WireAnswer) => status !== 401
    if (isVerified(await attempt({}))) return undefined
    const verified = await verifiedTarget([id], attempt, isVerified)
    if (verified === undefined) return undefined
    return {
      severity: 'advice',
      what: `the proxy decodes an encoded character in the path of GET ${id}`,
      why: 'Signatures cover the path as it was sent. Wallet addresses such as /café are encoded in one.',
      fix: unchangedTarget,
      cause: 'path',
    }
  },
}

/** A question mark without a query belongs to the URL that the client signs. */
const loneQuery: Check = {
  name: 'incoming-get-query',
  after: ['incoming-get', 'list', 'list-encoded'],
  async run({ session }) {
    const id = await createdId(session)
    const token = await session.sharedToken()
    const attempt = (sign: NonNullable<WireRequest['sign']>) =>
      session.send({ method: 'GET', url: `${id}?`, token, sign })
    const isVerified = ({ status }: WireAnswer) => status !== 401
    if (isVerified(await attempt({}))) return undefined
    const verified = await verifiedTarget([id], attempt, isVerified)
    if (verified === undefined) return undefined
    return {
      severity: 'advice',
      what: `the proxy drops the question mark at the end of GET ${id}?`,
      why: 'Signatures cover the URL as it was sent. Some clients write an empty query so.',
      fix: unchangedTarget,
      cause: 'path',
    }
  },
}

export const reachChecks: readonly Check[] = [signed, resources, discovery, bytes, largeBody]

export const resourceChecks: readonly Check[] = [
  caseCheck('resource-401-challenge', {
    after: ['discovery', 'signed-request', 'resource-server'],
    why: 'Clients that only know a payment learn from this header where to request a grant.',
    fix: async ({ session }) => [
      `createResourceServer({ grantEndpoint: '${(await session.wallet()).authServer}', … })`,
      ...ownChallenge,
    ],
    cause: 'challenge',
  }),
  create,
  asset,
  get,
  encodedPath,
]

/** The last one of targets, because what breaks it breaks least. */
export const queryChecks: readonly Check[] = [loneQuery]
