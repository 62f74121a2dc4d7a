import { type Check, type Context, caseCheck, type Problem } from '../check.js'
import type { WireAnswer } from '../conformance/exchange.js'
import { demandJson, pick, responded } from '../conformance/expectations.js'
import type { Session } from '../conformance/session.js'
import { authorizationServer, keepBytes, misrouted, resourceServer } from './paths.js'

function accessOf({ walletAddress: identifier }: Session) {
  return { type: 'incoming-payment', actions: ['create', 'read'], identifier }
}

/** A signed request for access that needs no consent. */
const signed: Check = {
  name: 'signed-request',
  after: 'wallet-urls',
  async run(context) {
    const { session } = context
    const { authServer } = await session.wallet()
    const answer = await session.askFor([accessOf(session)])
    const lost = misrouted(answer, authorizationServer(authServer))
    if (lost !== undefined) return lost
    try {
      demandJson(answer, 200)
      return undefined
    } catch (error) {
      const verified = await verifiedTarget(session, authServer)
      return verified === undefined
        ? refused(context, `${(error as Error).message}`)
        : otherTarget(verified, authServer)
    }
  },
}

/** Returns the URL for which the server accepts a signature, if it is not the URL that clients use. */
async function verifiedTarget(session: Session, authServer: string): Promise<string | undefined> {
  for (const url of variantsOf(authServer)) {
    const answer = await session.askFor(
      [accessOf(session)],
      {},
      { override: { '"@target-uri"': url } },
    )
    if (answer.status === 200) return url
  }
  return undefined
}

/** The URLs that a server may take for its own behind a proxy: another scheme, path or slash at the end. */
export function variantsOf(url: string): readonly string[] {
  const { host, pathname } = new URL(url)
  const segments = pathname.split('/').filter((segment) => segment !== '')
  const paths = segments.map((_, index) => `/${segments.slice(index).join('/')}`).concat('/')
  const all = ['https:', 'http:'].flatMap((scheme) =>
    paths.flatMap((path) => {
      const one = `${scheme}//${host}${path}`
      return path === '/' ? [one] : [one, `${one}/`]
    }),
  )
  return all.filter((each) => each !== url)
}

function otherTarget(verified: string, authServer: string): Problem {
  return {
    what: `the authorization server accepts signatures of ${verified}, but clients sign ${authServer}`,
    why: 'Every signature covers the URL of the request. The server does not know the URL that clients use.',
    fix: [
      `createAuthorizationServer({ grantEndpoint: '${authServer}', … })`,
      '# If the server derives its URL from the request, the proxy must pass on the original:',
      'proxy_set_header Host $host;',
      'proxy_set_header X-Forwarded-Proto $scheme;',
      "app.set('trust proxy', 'loopback') // Express",
    ],
  }
}

function refused({ options }: Context, what: string): Problem {
  return {
    what,
    why:
      'A correctly signed request was refused. Either the configured grantEndpoint differs from authServer, or a ' +
      'proxy changes the body or the headers Signature, Signature-Input and Content-Digest' +
      (options.client === undefined
        ? ', or the server does not accept clients that are identified by their key alone.'
        : ', or the server cannot fetch the key set of the client.'),
    fix: [
      'onRefusal: ({ refusal, reason }) => console.warn(refusal, reason), // says which check failed',
      ...(options.client === undefined
        ? ['npx open-payments-doctor --client <wallet address> --key <file> … # a published key']
        : []),
    ],
  }
}

/** Sends JSON that no serializer writes with the same bytes. */
const bytes: Check = {
  name: 'body-bytes',
  after: 'signed-request',
  async run({ session }) {
    const { authServer: url } = await session.wallet()
    const request = { access_token: { access: [accessOf(session)] }, client: session.client }
    const body = JSON.stringify(request, undefined, 2).replace('"client"', '"\\u0063lient"')
    const answer = await session.send({ method: 'POST', url, body })
    if (answer.status === 200) return undefined
    return {
      what: `${responded(answer)}, although it accepted the same JSON without white space and escapes`,
      why: 'Signatures cover the bytes of the body. A parser or proxy parsed it and serialized it again.',
      fix: keepBytes(authorizationServer(url)),
    }
  },
}

const discovery: Check = {
  name: 'discovery',
  after: 'wallet-urls',
  async run({ session }) {
    const { authServer: url } = await session.wallet()
    const answer = await session.send({ method: 'OPTIONS', url, sign: false })
    const isAnsweredByCors = answer.headers.has('access-control-allow-methods')
    if (answer.status < 300 && isAnsweredByCors && answer.body === undefined)
      return swallowed(answer)
    const endpoint = pick(answer.body, 'grant_request_endpoint')
    if (answer.status === 200 && endpoint === url) return undefined
    return answer.status === 200 && typeof endpoint === 'string'
      ? otherEndpoint(url, endpoint)
      : undiscovered(answer)
  },
}

function swallowed(answer: WireAnswer): Problem {
  return {
    severity: 'advice',
    what: `${responded(answer)} and Access-Control-Allow-Methods`,
    why: 'cors() answers every OPTIONS request, so clients cannot discover what the server supports.',
    fix: [
      "app.use('/auth', toExpress(auth.handle)) // before app.use(cors())",
      '// or let cors answer preflights only:',
      "const isPreflight = request.headers['access-control-request-method'] !== undefined",
      "if (request.method === 'OPTIONS' && !isPreflight) next()",
      'else cors()(request, response, next)',
    ],
  }
}

function otherEndpoint(authServer: string, endpoint: string): Problem {
  return {
    what: `discovery names the grant endpoint ${endpoint}, and the wallet address names ${authServer}`,
    why: 'Clients sign the one that they know, and the hash of an interaction contains it.',
    fix: [
      `createAuthorizationServer({ grantEndpoint: '${authServer}', … })`,
      `createWalletAddressServer({ grantEndpoint: '${authServer}', … }) // exactly the same text`,
    ],
  }
}

function undiscovered(answer: WireAnswer): Problem {
  return {
    severity: 'advice',
    what: `${responded(answer)} without a discovery document`,
    why: 'Clients cannot find out what the server supports (RFC 9635 section 9). The method may be blocked.',
    fix: [
      '# Pass OPTIONS on to the server. In Next.js:',
      'export const OPTIONS = toFetch(auth.handle)',
    ],
  }
}

const resources: Check = {
  name: 'resource-server',
  after: 'wallet-urls',
  async run({ session }) {
    const url = await session.resource('/incoming-payments')
    const { walletAddress } = session
    const answer = await session.send({ method: 'POST', url, body: { walletAddress } })
    return misrouted(answer, resourceServer((await session.wallet()).resourceServer))
  },
}

export const serverChecks: readonly Check[] = [
  discovery,
  signed,
  bytes,
  caseCheck('grant-unsigned', {
    after: 'signed-request',
    why: 'An attacker could request access as any client.',
    fix: () => ["app.use('/auth', toExpress(auth.handle)) // the handler verifies every request"],
  }),
  resources,
  caseCheck('resource-401-challenge', {
    after: 'resource-server',
    why: 'Clients that only know a payment learn from this header where to request a grant.',
    fix: async ({ session }) => [
      `createResourceServer({ grantEndpoint: '${(await session.wallet()).authServer}', … })`,
      '# nginx: remove proxy_hide_header WWW-Authenticate',
    ],
  }),
]
