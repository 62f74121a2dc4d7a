import type { KeyPair } from '../../src/testing/key.js'
import { signedRequest } from '../../src/testing/sign.js'
import type { ProxyFault, Reply, SeenRequest } from './faulty-proxy.js'

/** A fault of a server, as a proxy in front of a correct one shows it, and the cases that must find it. */
export interface ServerFault {
  readonly name: string
  /** The ids of the cases. */
  readonly found: readonly string[]
  /** Creates the fault for one run. `sign` signs a request again, as the client instance. */
  readonly create: (sign: Resign) => ProxyFault
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
const isIncoming = (request: SeenRequest) => request.target.startsWith('/op/incoming-payments')
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
  {
    name: 'has a wallet address without its scale',
    found: ['wallet-document'],
    create: rewrites(({ assetScale: _, ...rest }: { assetScale?: unknown }) => rest, isWallet),
  },
  {
    name: 'has a wallet address with the id of the host behind a proxy',
    found: ['wallet-id'],
    create: rewrites((body: object) => ({ ...body, id: 'http://10.0.0.7/alice' }), isWallet),
  },
  {
    name: 'names its resource server by http',
    found: ['wallet-urls'],
    create: rewrites(
      (body: object) => ({ ...body, resourceServer: 'http://op.example' }),
      isWallet,
    ),
  },
  {
    name: 'serves a page where there is no account',
    found: ['wallet-unknown'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return request.method === 'GET' && request.target.startsWith('/alice-')
        ? { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Hello</h1>' }
        : reply
    },
  },
  {
    name: 'publishes a private key',
    found: ['wallet-keys'],
    create: rewrites(
      ({ keys }: { keys: object[] }) => ({ keys: keys.map((key) => ({ ...key, d: 'secret' })) }),
      isKeys,
    ),
  },
  {
    name: 'lets no page read a wallet address',
    found: ['wallet-cors'],
    create: headers((lines) => delete lines['access-control-allow-origin']),
  },
  {
    name: 'answers OPTIONS before the authorization server',
    found: ['discovery'],
    create: () => async (request, forward) =>
      request.method === 'OPTIONS' ? noContent : forward(request),
  },
  {
    name: 'names another grant endpoint in its discovery',
    found: ['discovery-endpoint'],
    create: rewrites(
      (body: { grant_request_endpoint: string }) => ({
        ...body,
        grant_request_endpoint: `${body.grant_request_endpoint}/`,
      }),
      ({ method }) => method === 'OPTIONS',
    ),
  },
  {
    name: 'sends JSON as text/html',
    found: ['wallet-document', 'grant-incoming', 'incoming-create', 'list'],
    create: headers((lines) => {
      lines['content-type'] = 'text/html'
    }),
  },
]

const proofs: readonly ServerFault[] = [
  {
    name: 'accepts requests without a signature',
    found: ['grant-unsigned', 'resource-unsigned'],
    create: accepts((request) => isPost(request) && input(request) === ''),
  },
  {
    name: 'accepts any signature',
    found: [
      'grant-other-key',
      'resource-other-key',
      'continue-other-key',
      'token-rotate-other-key',
    ],
    create: accepts((request) => input(request) !== ''),
  },
  {
    name: 'accepts signatures of any target',
    found: ['grant-other-target'],
    create: accepts(isGrant),
  },
  ...['method', 'target-uri'].map(
    (name): ServerFault => ({
      name: `does not require that the signature covers @${name}`,
      found: [name === 'method' ? 'grant-method-uncovered' : 'grant-target-uncovered'],
      create: accepts((request) => isGrant(request) && !input(request).includes(`"@${name}"`)),
    }),
  ),
  {
    name: 'does not require that the signature covers the digest',
    found: ['grant-digest-uncovered', 'grant-digest-missing'],
    create: accepts((request) => isGrant(request) && !input(request).includes('content-digest')),
  },
  {
    name: 'does not compare the digest with the body',
    found: ['grant-body-changed'],
    create: accepts((request) => isGrant(request) && request.body.includes('\n')),
  },
  {
    name: 'does not require that the signature covers the token',
    found: ['resource-token-uncovered'],
    create: accepts((request) => isIncoming(request) && !input(request).includes('authorization')),
  },
  {
    name: 'accepts signatures without the time of their creation',
    found: ['grant-created-missing'],
    create: accepts((request) => isGrant(request) && !input(request).includes(';created=')),
  },
  {
    name: 'accepts old signatures',
    found: ['grant-created-long-ago', 'resource-created-long-ago'],
    create: accepts((request) => created(request) < nowS() - 300),
  },
  {
    name: 'accepts signatures of the future',
    found: ['grant-created-in-future'],
    create: accepts((request) => created(request) > nowS() + 300),
  },
  {
    name: 'accepts a nonce twice',
    found: ['grant-replay'],
    create: (sign) => {
      const seen = new Set<string>()
      return async (request, forward) => {
        const [nonce = ''] = /;nonce="[^"]+"/.exec(input(request)) ?? []
        const isRepeat = seen.has(nonce)
        seen.add(nonce)
        return forward(isRepeat ? sign(request) : request)
      }
    },
  },
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
  {
    name: 'lets caches store tokens',
    found: ['grant-no-store', 'token-rotate-no-store'],
    create: headers((lines) => {
      lines['cache-control'] = 'public, max-age=60'
    }),
  },
  {
    name: 'sends 401 without a challenge',
    found: ['grant-401-challenge', 'resource-401-challenge'],
    create: headers((lines) => delete lines['www-authenticate']),
  },
  {
    name: 'sends errors as text',
    found: ['grant-error-body', 'resource-error-body', 'incoming-unknown'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return reply.status < 400 ? reply : { ...reply, body: 'Something went wrong' }
    },
  },
  {
    name: 'sends a code of its own',
    found: ['grant-unsigned', 'grant-not-json'],
    create: rewrites(
      () => ({ error: { code: 'bad_signature', description: 'no' } }),
      (_request, { status }) => status >= 400,
    ),
  },
  {
    name: 'grants everything that it is asked for',
    found: ['grant-needs-consent', 'grant-type-unknown', 'grant-action-unknown', 'grant-not-json'],
    create: issuing(isGrant),
  },
  {
    name: 'grants access without knowing the client',
    found: ['grant-client-missing'],
    create: issuing((request) => isGrant(request) && !request.body.includes('"client"')),
  },
  {
    name: 'leaves out the access of a token',
    found: ['grant-access', 'token-rotate', 'consent-continue'],
    create: rewrites((body: { access_token?: object }) => {
      return body.access_token === undefined
        ? body
        : { ...body, access_token: { ...body.access_token, access: [] } }
    }, isPost),
  },
  {
    name: 'issues the same token twice',
    found: ['grant-new-tokens'],
    create: () => {
      let first: Reply | undefined
      return async (request, forward) => {
        const reply = await forward(request)
        if (!isGrant(request) || reply.status !== 200) return reply
        first ??= reply
        return first
      }
    },
  },
  {
    name: 'puts the token into its management URI',
    found: ['grant-incoming'],
    create: rewrites((body: { access_token: { value: string; manage: string } }) => {
      const { manage, value } = body.access_token
      const token = { ...body.access_token, manage: `${manage}/${value}` }
      return { ...body, access_token: token }
    }, isGrant),
  },
  {
    name: 'issues a token before consent',
    found: ['grant-pending', 'continue-before-consent'],
    create: rewrites(
      (body: object) => ({ ...body, access_token: { value: 'early' } }),
      (request) => isGrant(request) || isContinue(request),
    ),
  },
  {
    name: 'does not ask for the continuation token',
    found: ['continue-without-token'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return isContinue(request) && reply.status === 401 ? { ...reply, status: 200 } : reply
    },
  },
  {
    name: 'takes a continuation token for an access token',
    found: ['continue-token-at-resource', 'resource-token-unknown', 'token-revoke'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return isIncoming(request) && reply.status === 401 ? { ...reply, status: 201 } : reply
    },
  },
  {
    name: 'ignores cancellations',
    found: ['grant-cancel'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      const isLater = isContinue(request) && isPost(request) && reply.status >= 400
      return isLater ? { ...reply, status: 200, body: '{}' } : reply
    },
  },
]

const tokens: readonly ServerFault[] = [
  {
    name: 'accepts the old token after a rotation',
    found: ['token-rotate-old'],
    create: (sign) => {
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
    },
  },
  {
    name: 'returns the old token from a rotation',
    found: ['token-rotate'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      if (!isToken(request) || reply.status !== 200) return reply
      const body = JSON.parse(reply.body)
      const value = headerOf(request.headers, 'authorization')?.replace(/^GNAP /, '')
      const access_token = { ...body.access_token, value }
      return { ...reply, body: JSON.stringify({ ...body, access_token }) }
    },
  },
  {
    name: 'rotates any token at any management URI',
    found: ['token-rotate-other-token'],
    create: issuing((request) => isToken(request) && isPost(request)),
  },
  {
    name: 'ignores revocations',
    found: ['token-revoke'],
    create: () => async (request, forward) =>
      isToken(request) && request.method === 'DELETE' ? noContent : forward(request),
  },
  {
    name: 'revokes for every key',
    found: ['token-revoke-other-key'],
    create: accepts((request) => isToken(request) && request.method === 'DELETE'),
  },
  {
    name: 'revokes with status 200',
    found: ['token-revoke', 'token-revoke-again'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return isToken(request) && reply.status === 204 ? { ...reply, status: 200 } : reply
    },
  },
]

const payments: readonly ServerFault[] = [
  {
    name: 'creates with status 200',
    found: ['incoming-create'],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return reply.status === 201 ? { ...reply, status: 200 } : reply
    },
  },
  {
    name: 'sends amounts as numbers',
    found: ['incoming-create', 'incoming-amount', 'incoming-public', 'list', 'quote-create'],
    create: rewrites((body) =>
      eachAmount(body, (amount) => ({ ...amount, value: Number(amount.value) })),
    ),
  },
  {
    name: 'keeps amounts as floating-point numbers',
    found: ['incoming-amount'],
    create: rewrites((body) =>
      eachAmount(body, (amount) => ({ ...amount, value: String(Number(amount.value)) })),
    ),
  },
  {
    name: 'accepts every amount and asset',
    found: [
      'incoming-amount-number',
      'incoming-amount-negative',
      'incoming-amount-fraction',
      'incoming-amount-more-than-64-bits',
      'incoming-asset',
      'resource-identifier',
      'incoming-large',
    ],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return isIncoming(request) && [400, 403, 413].includes(reply.status)
        ? { ...reply, status: 201 }
        : reply
    },
  },
  {
    name: 'loses metadata',
    found: ['incoming-metadata', 'incoming-get'],
    create: rewrites(
      ({ metadata: _, ...rest }: { metadata?: unknown }) => rest,
      ({ method, target }) => method === 'GET' && target.includes('/incoming-payments/'),
    ),
  },
  {
    name: 'shows metadata to everybody',
    found: ['incoming-public'],
    create: rewrites((body: object) => ({ ...body, metadata: { reference: 1 } }), isPublicView),
  },
  {
    name: 'names another authorization server in the public view',
    found: ['incoming-public'],
    create: rewrites(
      (body: object) => ({ ...body, authServer: 'https://other.example' }),
      isPublicView,
    ),
  },
  {
    name: 'caches what it read',
    found: ['incoming-complete'],
    create: () => {
      const kept = new Map<string, Reply>()
      return async (request, forward) => {
        if (request.method !== 'GET') return forward(request)
        const reply = kept.get(request.target) ?? (await forward(request))
        kept.set(request.target, reply)
        return reply
      }
    },
  },
  {
    name: 'lets shared caches store payments',
    found: ['incoming-private-cache'],
    create: headers((lines) => {
      lines['cache-control'] = 'public, max-age=60'
    }),
  },
  {
    name: 'names payments by the host behind a proxy',
    found: ['incoming-create'],
    create: rewrites((body: { id?: string }) => {
      return { ...body, id: body.id?.replace(/^http:\/\/[^/]+/, 'http://10.0.0.7') }
    }, isIncoming),
  },
  {
    name: 'leaves out the completion',
    found: ['incoming-complete'],
    create: rewrites((body: object) => ({ ...body, completed: false }), isIncoming),
  },
  {
    name: 'permits every action with every token',
    found: [
      'resource-action-missing',
      'list-action-missing',
      'outgoing-limit',
      'outgoing-limit-total',
    ],
    create: () => async (request, forward) => {
      const reply = await forward(request)
      return reply.status === 403 ? { ...reply, status: 201 } : reply
    },
  },
  {
    name: 'serves a page for methods that it does not know',
    found: ['resource-405-allow'],
    create: headers((lines) => delete lines['allow']),
  },
  {
    name: 'changes the encoding of the query',
    found: ['list', 'list-pages', 'outgoing-get'],
    create: () => async (request, forward) =>
      forward({ ...request, target: request.target.replaceAll('%3A', ':') }),
  },
  {
    name: 'ignores cursors',
    found: ['list-pages', 'list-backwards'],
    create: (sign) => async (request, forward) => {
      const target = request.target.replace(/&cursor=[^&]*/, '').replace('last=', 'first=')
      return forward(target === request.target ? request : sign(request, { target }))
    },
  },
]

const consents: readonly ServerFault[] = [
  {
    name: 'computes the hash with another URL',
    found: ['consent-hash'],
    create: headers((lines) => {
      lines['location'] = (lines['location'] ?? '').replace(/hash=[^&]*/, 'hash=AAAA')
    }),
  },
  {
    name: 'drops the query of the client',
    found: ['consent-finish'],
    create: headers((lines) => {
      lines['location'] = (lines['location'] ?? '').replace(/order=[^&]*&?/, '')
    }),
  },
  {
    name: 'continues with any reference',
    found: ['consent-reference'],
    create: issuing(isContinue),
  },
  {
    name: 'issues a token although the owner denied it',
    found: ['consent-denied'],
    create: issuing(isContinue),
  },
  {
    name: 'loses the amounts of quotes and payments',
    found: ['quote-create', 'quote-get', 'outgoing-create', 'outgoing-get'],
    create: rewrites(({ debitAmount: _, ...rest }: { debitAmount?: unknown }) => rest),
  },
  {
    name: 'reports spent amounts as numbers',
    found: ['outgoing-spent'],
    create: rewrites((body) =>
      eachAmount(body, (amount) => ({ ...amount, value: Number(amount.value) })),
    ),
  },
]

export const serverFaults: readonly ServerFault[] = [
  ...documents,
  ...proofs,
  ...grants,
  ...tokens,
  ...payments,
  ...consents,
]
