import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { buffer } from 'node:stream/consumers'

const walletAddress = 'https://wallet.example/accounts/alice'
const authServer = 'https://auth.wallet.example/gnap'
const resourceServer = 'https://api.wallet.example/v2'

/** A response: status, body and header lines. */
type Answered = readonly [status: number, body?: object, headers?: Record<string, string>]

interface Incoming {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

interface Grant {
  readonly key: { readonly kid: string; readonly x: string }
  readonly actions: readonly string[]
}

interface Payment {
  readonly id: string
  readonly createdAt: string
  readonly owner: string
  completed: boolean
}

/**
 * A small wallet that shares no code with the library: it serves grants for incoming payments, with URLs, ids and error
 * texts of its own.
 */
export function otherWallet({ needsWalletAddress = false } = {}): Server {
  const grants = new Map<string, Grant>()
  const payments = new Map<string, Payment>()
  const random = () => randomBytes(12).toString('hex')

  const refusal = (status: number, code: string, description: string): Answered => [
    status,
    { error: { code, description } },
    status === 401 ? { 'www-authenticate': `GNAP as_uri="${authServer}"` } : {},
  ]
  const badProof = refusal(401, 'invalid_client', 'The proof of the key does not hold')

  function tokenOf(grant: Grant): object {
    const value = random()
    grants.set(value, grant)
    const access = [{ type: 'incoming-payment', actions: grant.actions, identifier: walletAddress }]
    return { value, manage: `${authServer}/tokens/${random()}`, expires_in: 600, access }
  }

  function granted(request: Incoming): Answered {
    const { access_token, client } = JSON.parse(String(request.body))
    if (needsWalletAddress) return refusal(400, 'invalid_client', 'Name your wallet address')
    if (!isProven(request, client.jwk)) return badProof
    const [{ type, actions }] = access_token.access
    if (type !== 'incoming-payment') return refusal(400, 'invalid_request', 'Who is the owner?')
    const uri = `${authServer}/grants/${random()}`
    const access = tokenOf({ key: client.jwk, actions })
    return [200, { access_token: access, continue: { uri, access_token: { value: random() } } }]
  }

  /** Rotates or revokes a token. */
  function managed(request: Incoming): Answered {
    const grant = grants.get(tokenIn(request))
    if (grant === undefined || !isProven(request, grant.key)) return badProof
    grants.delete(tokenIn(request))
    return request.method === 'DELETE' ? [204] : [200, { access_token: tokenOf(grant) }]
  }

  function shown({ id, createdAt, completed }: Payment): object {
    const receivedAmount = { value: '0', assetCode: 'JPY', assetScale: 0 }
    return { id, walletAddress, createdAt, completed, receivedAmount, methods: [] }
  }

  function atPayments(request: Incoming, path: string): Answered {
    const { method, headers } = request
    const found = payments.get(resourceServer + path.replace(/\/complete$/, ''))
    if (headers.authorization === undefined && method === 'GET' && found !== undefined) {
      return [200, { authServer, receivedAmount: { value: '0', assetCode: 'JPY', assetScale: 0 } }]
    }
    const grant = grants.get(tokenIn(request))
    if (grant === undefined) return refusal(401, 'unauthenticated', 'Show a token')
    if (!isProven(request, grant.key)) return refusal(401, 'unauthenticated', 'Prove your key')
    const own = [...payments.values()].filter(({ owner }) => owner === grant.key.x)
    if (method === 'GET' && path === '/incoming-payments') {
      const pagination = { hasNextPage: false, hasPreviousPage: false }
      return [200, { result: own.map(shown), pagination }]
    }
    if (method === 'POST' && path === '/incoming-payments') {
      const id = `${resourceServer}/incoming-payments/${random()}`
      const createdAt = new Date().toISOString()
      const payment = { id, createdAt, owner: grant.key.x, completed: false }
      const { metadata } = JSON.parse(String(request.body))
      metadataOf.set(id, metadata)
      payments.set(id, payment)
      return [201, { ...shown(payment), metadata }]
    }
    if (found === undefined) return refusal(404, 'nothing', 'There is no such payment')
    if (path.endsWith('/complete')) found.completed = true
    return [200, { ...shown(found), metadata: metadataOf.get(found.id) }]
  }
  const metadataOf = new Map<string, unknown>()

  function answerTo(request: Incoming): Answered {
    const { pathname } = new URL(request.url)
    if (request.url === walletAddress) {
      const asset = { assetCode: 'JPY', assetScale: 0 }
      const document = { id: walletAddress, ...asset, authServer, resourceServer }
      return [200, document, { 'access-control-allow-origin': '*' }]
    }
    if (request.url === authServer && request.method === 'POST') return granted(request)
    if (request.url === authServer) return [200, { grant_request_endpoint: authServer }]
    if (request.url.startsWith(`${authServer}/tokens/`)) return managed(request)
    if (pathname.startsWith('/v2/')) return atPayments(request, pathname.slice('/v2'.length))
    return [404, { message: 'Nothing here' }]
  }

  return createServer(async (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    const origin = [authServer, resourceServer, walletAddress]
      .map((each) => new URL(each))
      .find(({ pathname }) => url.startsWith(pathname.split('/', 2).join('/')))?.origin
    const request = { method, url: `${origin}${url}`, headers, body: await buffer(incoming) }
    const [status, body, more] = answerTo(request)
    const own = { 'content-type': 'application/json', 'cache-control': 'no-store', ...more }
    outgoing.writeHead(status, own).end(body && JSON.stringify(body))
  })
}

function tokenIn({ headers }: Incoming): string {
  return /^GNAP (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
}

/** Verifies a signature as RFC 9421 describes, with a key that the request or the token names. */
function isProven({ method, url, headers, body }: Incoming, key: Grant['key']): boolean {
  const [, label, parameters = '', list = ''] =
    /^(\w+)=((\([^)]*\));.*)$/.exec(String(headers['signature-input'])) ?? []
  const [, encoded = ''] = new RegExp(`^${label}=:(.*):$`).exec(String(headers['signature'])) ?? []
  const components = list.slice(1, -1).split(' ')
  const required = ['"@method"', '"@target-uri"']
  if (headers.authorization !== undefined) required.push('"authorization"')
  if (body.length > 0) required.push('"content-digest"')
  if (!required.every((one) => components.includes(one))) return false
  const created = Number(/;created=(\d+)/.exec(parameters)?.[1])
  if (!(Math.abs(Date.now() / 1000 - created) < 300)) return false
  const digest = `sha-512=:${createHash('sha512').update(body).digest('base64')}:`
  if (body.length > 0 && headers['content-digest'] !== digest) return false
  const values: Record<string, unknown> = { '@method': method, '@target-uri': url }
  const lines = components.map((one) => {
    const name = one.slice(1, -1)
    return `${one}: ${values[name] ?? headers[name]}`
  })
  const base = [...lines, `"@signature-params": ${parameters}`].join('\n')
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.x }
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
  return verify(null, Buffer.from(base), publicKey, Buffer.from(encoded, 'base64'))
}
