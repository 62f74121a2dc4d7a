import { type KeyPair, signedRequest } from 'open-payments-server-testing'
import type { ProxyFault, Reply, SeenRequest } from 'open-payments-test-support/faulty-proxy'

/** A fault of a server, as a proxy in front of a correct one shows it, and the cases that must find it. */
export interface ServerFault {
  readonly name: string
  /** The ids of the cases. */
  readonly found: readonly string[]
  /** Creates the fault for one run. `sign` signs a request again, as the client. */
  readonly create: (sign: Resign) => ProxyFault
}

/** @param found The ids of the cases, separated by spaces. */
function fault(name: string, found: string, create: ServerFault['create']): ServerFault {
  return { name, found: found.split(' '), create }
}

/** Replaces the signature of a request by a valid one, so that the server behind the proxy accepts it. */
export type Resign = (request: SeenRequest, changes?: Resigned) => SeenRequest

interface Resigned {
  readonly token?: string
  readonly target?: string
}

export function resigner(origin: string, key: KeyPair): Resign {
  return ({ method, target, headers, body }, changes = {}) => {
    const given = headerOf(headers, 'authorization')?.replace(/^GNAP /, '')
    const token = changes.token ?? given
    const signed = signedRequest({
      method,
      url: origin + (changes.target ?? target),
      key,
      created: Math.floor(Date.now() / 1000),
      nonce: crypto.randomUUID(),
      ...(body !== '' && { body }),
      ...(token !== undefined && { token }),
    })
    const kept = headers.filter(([name]) => /^(host|accept)$/i.test(name))
    return { method, target: signed.url, headers: [...kept, ...signed.headers], body }
  }
}

function headerOf(headers: SeenRequest['headers'], name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1]
}

/** Changes the JSON of each response that passes the filter. */
function rewrites(
  change: (body: never) => unknown,
  applies: (request: SeenRequest, reply: Reply) => boolean = () => true,
): () => ProxyFault {
  return () => async (request, forward) => {
    const reply = await forward(request)
    if (!reply.body.startsWith('{') || !applies(request, reply)) return reply
    return { ...reply, body: JSON.stringify(change(JSON.parse(reply.body) as never)) }
  }
}

/** Changes each response. */
function replies(change: (reply: Reply, request: SeenRequest) => Reply): () => ProxyFault {
  return () => async (request, forward) => change(await forward(request), request)
}

/** Changes the headers of each response. */
function headers(change: (headers: Record<string, string>) => void): () => ProxyFault {
  return () => async (request, forward) => {
    const reply = await forward(request)
    const changed = { ...reply.headers }
    change(changed)
    return { ...reply, headers: changed }
  }
}

/** Signs the requests again that pass the filter, as if the server did not check what is wrong with them. */
function accepts(applies: (request: SeenRequest) => boolean): ServerFault['create'] {
  return (sign) => async (request, forward) => {
    return forward(applies(request) ? sign(request) : request)
  }
}

const input = (request: SeenRequest) => headerOf(request.headers, 'signature-input') ?? ''
const created = (request: SeenRequest) => Number(/;created=(\d+)/.exec(input(request))?.[1])
const nowS = () => Date.now() / 1000
const isPost = (request: SeenRequest) => request.method === 'POST'
const isGrant = (request: SeenRequest) => isPost(request) && request.target === '/auth'
const isToken = (request: SeenRequest) => request.target.startsWith('/auth/token/')
const isContinue = (request: SeenRequest) => request.target.startsWith('/auth/continue/')
const isWallet = (request: SeenRequest) => request.method === 'GET' && request.target === '/alice'
const isKeys = (request: SeenRequest) => request.target.endsWith('/jwks.json')
const isIncoming = (request: SeenRequest) => request.target.startsWith('/incoming-payments')
const isPublicView = (request: SeenRequest) =>
  request.method === 'GET' && isIncoming(request) && input(request) === ''
const noContent: Reply = { status: 204, headers: {}, body: '' }

/** Changes every amount, at any depth. */
function eachAmount(body: unknown, change: (amount: { value: string }) => unknown): unknown {
  if (Array.isArray(body)) return body.map((inner) => eachAmount(inner, change))
  if (typeof body !== 'object' || body === null) return body
  if (isAmount(body)) return change(body)
  const members = Object.entries(body).map(([name, inner]) => [name, eachAmount(inner, change)])
  return Object.fromEntries(members)
}

function isAmount(body: object): body is { value: string } {
  return ['value', 'assetScale'].every((name) => Object.hasOwn(body, name))
}

const documents: readonly ServerFault[] = [
  fault(
    'has a wallet address without its scale',
    'wallet-document',
    rewrites(({ assetScale: _, ...rest }: { assetScale?: unknown }) => rest, isWallet),
  ),
  fault(
    'has a wallet address with the id of the host behind a proxy',
    'wallet-id',
    rewrites((body: object) => ({ ...body, id: 'http://10.0.0.7/alice' }), isWallet),
  ),
  fault(
    'names its resource server by http',
    'wallet-urls',
    rewrites((body: object) => ({ ...body, resourceServer: 'http://op.example' }), isWallet),
  ),
  fault(
    'serves a page where there is no account',
    'wallet-unknown',
    replies((reply, request) =>
      request.method === 'GET' && request.target.startsWith('/alice-')
        ? { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Hello</h1>' }
        : reply,
    ),
  ),
  fault(
    'publishes a private key',
    'wallet-keys',
    rewrites(
      ({ keys }: { keys: object[] }) => ({ keys: keys.map((key) => ({ ...key, d: 'secret' })) }),
      isKeys,
    ),
  ),
  fault(
    'lets no page read a wallet address',
    'wallet-cors',
    headers((lines) => delete lines['access-control-allow-origin']),
  ),
  fault(
    'answers OPTIONS before the authorization server',
    'discovery',
    () => async (request, forward) => (request.method === 'OPTIONS' ? noContent : forward(request)),
  ),
  fault(
    'names another grant endpoint in its discovery',
    'discovery-endpoint',
    rewrites(
      (body: { grant_request_endpoint: string }) => ({
        ...body,
        grant_request_endpoint: `${body.grant_request_endpoint}/`,
      }),
      ({ method }) => method === 'OPTIONS',
    ),
  ),
  fault(
    'sends JSON as text/html',
    'wallet-document grant-incoming incoming-create list',
    headers((lines) => {
      lines['content-type'] = 'text/html'
    }),
  ),
]

const proofs: readonly ServerFault[] = [
  fault(
    'accepts requests without a signature',
    'grant-unsigned resource-unsigned',
    accepts((request) => isPost(request) && input(request) === ''),
  ),
  fault(
    'accepts any signature',
    'grant-other-key resource-other-key continue-other-key token-rotate-other-key',
    accepts((request) => input(request) !== ''),
  ),
  fault('accepts signatures of any target', 'grant-other-target', accepts(isGrant)),
  ...['method', 'target-uri'].map(
    (name): ServerFault => ({
      name: `does not require that the signature covers @${name}`,
      found: [name === 'method' ? 'grant-method-uncovered' : 'grant-target-uncovered'],
      create: accepts((request) => isGrant(request) && !input(request).includes(`"@${name}"`)),
    }),
  ),
  fault(
    'does not require that the signature covers the digest',
    'grant-digest-uncovered grant-digest-missing',
    accepts((request) => isGrant(request) && !input(request).includes('content-digest')),
  ),
  fault(
    'does not compare the digest with the body',
    'grant-body-changed',
    accepts((request) => isGrant(request) && request.body.includes('\n')),
  ),
  fault(
    'does not require that the signature covers the token',
    'resource-token-uncovered',
    accepts((request) => isIncoming(request) && !input(request).includes('authorization')),
  ),
  fault(
    'accepts signatures without the time of their creation',
    'grant-created-missing',
    accepts((request) => isGrant(request) && !input(request).includes(';created=')),
  ),
  fault(
    'accepts old signatures',
    'grant-created-long-ago resource-created-long-ago',
    accepts((request) => created(request) < nowS() - 300),
  ),
  fault(
    'accepts signatures of the future',
    'grant-created-in-future',
    accepts((request) => created(request) > nowS() + 300),
  ),
  fault('accepts a nonce twice', 'grant-replay', (sign) => {
    const seen = new Set<string>()
    return async (request, forward) => {
      const [nonce = ''] = /;nonce="[^"]+"/.exec(input(request)) ?? []
      const isRepeat = seen.has(nonce)
      seen.add(nonce)
      return forward(isRepeat ? sign(request) : request)
    }
  }),
]

/** A response with a token, for requests that must not get one. */
function issuing(applies: (request: SeenRequest) => boolean): ServerFault['create'] {
  return () => async (request, forward) => {
    const reply = await forward(request)
    if (reply.status < 400 || !applies(request)) return reply
    const token = { value: 'stolen', manage: 'https://op.example/token/1', access: [] }
    const next = { uri: 'https://op.example/continue/1', access_token: { value: 'next' } }
    const body = JSON.stringify({ access_token: token, continue: next })
    return { ...reply, status: 200, body }
  }
}

const grants: readonly ServerFault[] = [
  fault(
    'lets caches store tokens',
    'grant-no-store token-rotate-no-store',
    headers((lines) => {
      lines['cache-control'] = 'public, max-age=60'
    }),
  ),
  fault(
    'sends 401 without a challenge',
    'grant-401-challenge resource-401-challenge',
    headers((lines) => delete lines['www-authenticate']),
  ),
  fault(
    'sends errors as text',
    'grant-error-body resource-error-body incoming-unknown',
    replies((reply) => (reply.status < 400 ? reply : { ...reply, body: 'Something went wrong' })),
  ),
  fault(
    'sends a code of its own',
    'grant-unsigned grant-not-json',
    rewrites(
      () => ({ error: { code: 'bad_signature', description: 'no' } }),
      (_request, { status }) => status >= 400,
    ),
  ),
  fault(
    'grants everything that it is asked for',
    'grant-needs-consent grant-type-unknown grant-action-unknown grant-not-json',
    issuing(isGrant),
  ),
  fault(
    'grants access without knowing the client',
    'grant-client-missing',
    issuing((request) => isGrant(request) && !request.body.includes('"client"')),
  ),
  fault(
    'leaves out the access of a token',
    'grant-access token-rotate consent-continue',
    rewrites((body: { access_token?: object }) => {
      return body.access_token === undefined
        ? body
        : { ...body, access_token: { ...body.access_token, access: [] } }
    }, isPost),
  ),
  fault('issues the same token twice', 'grant-new-tokens', () => {
    let first: Reply | undefined
    return async (request, forward) => {
      const reply = await forward(request)
      if (!isGrant(request) || reply.status !== 200) return reply
      first ??= reply
      return first
    }
  }),
  fault(
    'puts the token into its management URI',
    'grant-incoming',
    rewrites((body: { access_token: { value: string; manage: string } }) => {
      const { manage, value } = body.access_token
      const token = { ...body.access_token, manage: `${manage}/${value}` }
      return { ...body, access_token: token }
    }, isGrant),
  ),
  fault(
    'issues a token before consent',
    'grant-pending continue-before-consent',
    rewrites(
      (body: object) => ({ ...body, access_token: { value: 'early' } }),
      (request) => isGrant(request) || isContinue(request),
    ),
  ),
  fault(
    'does not ask for the continuation token',
    'continue-without-token',
    replies((reply, request) =>
      isContinue(request) && reply.status === 401 ? { ...reply, status: 200 } : reply,
    ),
  ),
  fault(
    'takes a continuation token for an access token',
    'continue-token-at-resource resource-token-unknown token-revoke',
    replies((reply, request) =>
      isIncoming(request) && reply.status === 401 ? { ...reply, status: 201 } : reply,
    ),
  ),
  fault('ignores cancellations', 'grant-cancel', () => async (request, forward) => {
    const reply = await forward(request)
    const isLater = isContinue(request) && isPost(request) && reply.status >= 400
    return isLater ? { ...reply, status: 200, body: '{}' } : reply
  }),
]

const tokens: readonly ServerFault[] = [
  fault('accepts the old token after a rotation', 'token-rotate-old', (sign) => {
    const next = new Map<string, string>()
    return async (request, forward) => {
      const token = headerOf(request.headers, 'authorization')?.replace(/^GNAP /, '') ?? ''
      const later = isIncoming(request) ? next.get(token) : undefined
      if (later !== undefined) return forward(sign(request, { token: later }))
      const reply = await forward(request)
      if (isToken(request) && reply.status === 200) {
        next.set(token, JSON.parse(reply.body).access_token.value)
      }
      return reply
    }
  }),
  fault('returns the old token from a rotation', 'token-rotate', () => async (request, forward) => {
    const reply = await forward(request)
    if (!isToken(request) || reply.status !== 200) return reply
    const body = JSON.parse(reply.body)
    const value = headerOf(request.headers, 'authorization')?.replace(/^GNAP /, '')
    const access_token = { ...body.access_token, value }
    return { ...reply, body: JSON.stringify({ ...body, access_token }) }
  }),
  fault(
    'rotates any token at any management URI',
    'token-rotate-other-token',
    issuing((request) => isToken(request) && isPost(request)),
  ),
  fault(
    'ignores revocations',
    'token-revoke',
    () => async (request, forward) =>
      isToken(request) && request.method === 'DELETE' ? noContent : forward(request),
  ),
  fault(
    'revokes for every key',
    'token-revoke-other-key',
    accepts((request) => isToken(request) && request.method === 'DELETE'),
  ),
  fault(
    'revokes with status 200',
    'token-revoke token-revoke-again',
    replies((reply, request) =>
      isToken(request) && reply.status === 204 ? { ...reply, status: 200 } : reply,
    ),
  ),
]

const payments: readonly ServerFault[] = [
  fault(
    'creates with status 200',
    'incoming-create',
    replies((reply) => (reply.status === 201 ? { ...reply, status: 200 } : reply)),
  ),
  fault(
    'sends amounts as numbers',
    'incoming-create incoming-amount incoming-public list quote-create',
    rewrites((body) => eachAmount(body, (amount) => ({ ...amount, value: Number(amount.value) }))),
  ),
  fault(
    'keeps amounts as floating-point numbers',
    'incoming-amount',
    rewrites((body) =>
      eachAmount(body, (amount) => ({ ...amount, value: String(Number(amount.value)) })),
    ),
  ),
  fault(
    'accepts every amount and asset',
    'incoming-amount-number incoming-amount-negative incoming-amount-fraction incoming-amount-more-than-64-bits incoming-asset resource-identifier incoming-large',
    replies((reply, request) =>
      isIncoming(request) && [400, 403, 413].includes(reply.status)
        ? { ...reply, status: 201 }
        : reply,
    ),
  ),
  fault(
    'loses metadata',
    'incoming-metadata incoming-get',
    rewrites(
      ({ metadata: _, ...rest }: { metadata?: unknown }) => rest,
      ({ method, target }) => method === 'GET' && target.includes('/incoming-payments/'),
    ),
  ),
  fault(
    'shows metadata to everybody',
    'incoming-public',
    rewrites((body: object) => ({ ...body, metadata: { reference: 1 } }), isPublicView),
  ),
  fault(
    'names another authorization server in the public view',
    'incoming-public',
    rewrites((body: object) => ({ ...body, authServer: 'https://other.example' }), isPublicView),
  ),
  fault('caches what it read', 'incoming-complete', () => {
    const kept = new Map<string, Reply>()
    return async (request, forward) => {
      if (request.method !== 'GET') return forward(request)
      const reply = kept.get(request.target) ?? (await forward(request))
      kept.set(request.target, reply)
      return reply
    }
  }),
  fault(
    'lets shared caches store payments',
    'incoming-private-cache',
    headers((lines) => {
      lines['cache-control'] = 'public, max-age=60'
    }),
  ),
  fault(
    'names payments by the host behind a proxy',
    'incoming-create',
    rewrites((body: { id?: string }) => {
      return { ...body, id: body.id?.replace(/^http:\/\/[^/]+/, 'http://10.0.0.7') }
    }, isIncoming),
  ),
  fault(
    'leaves out the completion',
    'incoming-complete',
    rewrites((body: object) => ({ ...body, completed: false }), isIncoming),
  ),
  fault(
    'permits every action with every token',
    'resource-action-missing list-action-missing outgoing-limit outgoing-limit-total',
    replies((reply) => (reply.status === 403 ? { ...reply, status: 201 } : reply)),
  ),
  fault(
    'serves a page for methods that it does not know',
    'resource-405-allow',
    headers((lines) => delete lines['allow']),
  ),
  fault(
    'changes the encoding of the query',
    'list list-pages outgoing-get',
    () => async (request, forward) =>
      forward({ ...request, target: request.target.replaceAll('%3A', ':') }),
  ),
  fault('ignores cursors', 'list-pages list-backwards', (sign) => async (request, forward) => {
    const target = request.target.replace(/&cursor=[^&]*/, '').replace('last=', 'first=')
    return forward(target === request.target ? request : sign(request, { target }))
  }),
]

const consents: readonly ServerFault[] = [
  fault(
    'computes the hash with another URL',
    'consent-hash',
    headers((lines) => {
      lines['location'] = (lines['location'] ?? '').replace(/hash=[^&]*/, 'hash=AAAA')
    }),
  ),
  fault(
    'drops the query of the client',
    'consent-finish',
    headers((lines) => {
      lines['location'] = (lines['location'] ?? '').replace(/order=[^&]*&?/, '')
    }),
  ),
  fault('continues with any reference', 'consent-reference', issuing(isContinue)),
  fault('issues a token although the owner denied it', 'consent-denied', issuing(isContinue)),
  fault(
    'loses the amounts of quotes and payments',
    'quote-create quote-get outgoing-create outgoing-get',
    rewrites(({ debitAmount: _, ...rest }: { debitAmount?: unknown }) => rest),
  ),
  fault(
    'reports spent amounts as numbers',
    'outgoing-spent',
    rewrites((body) => eachAmount(body, (amount) => ({ ...amount, value: Number(amount.value) }))),
  ),
]

export const serverFaults: readonly ServerFault[] = [
  ...documents,
  ...proofs,
  ...grants,
  ...tokens,
  ...payments,
  ...consents,
]
