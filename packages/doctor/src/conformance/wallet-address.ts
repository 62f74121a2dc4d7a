import { randomUUID } from 'node:crypto'
import {
  demand,
  demandJson,
  demandStatus,
  demandUrl,
  isScale,
  joined,
  pick,
  show,
  textAt,
} from 'open-payments-programs'
import type { ServerCaseDefinition, Session } from './session.js'

const document = 'OpenAPI get-wallet-address'
const keySet = 'OpenAPI get-wallet-address-keys'

function read(session: Session) {
  return session.send({ method: 'GET', url: session.walletAddress, sign: false })
}

export const walletAddressCases: readonly ServerCaseDefinition[] = [
  {
    id: 'wallet-document',
    name: 'a wallet address is a JSON document with the asset of the account',
    rule: document,
    async check(session) {
      const answer = await read(session)
      demandJson(answer, 200)
      textAt(answer, 'assetCode')
      const scale = pick(answer.body, 'assetScale')
      demand(isScale(scale), `assetScale must be an integer from 0 to 255 but is ${show(scale)}`)
    },
  },
  {
    id: 'wallet-id',
    name: 'the id of a wallet address is its URL',
    rule: document,
    async check(session) {
      const id = textAt(await read(session), 'id')
      const expected = session.walletAddress
      demand(id === expected, `the id is ${show(id)}; expected ${show(expected)}`)
    },
  },
  {
    id: 'wallet-urls',
    name: 'a wallet address names its authorization server and resource server by absolute https URLs',
    rule: document,
    async check(session) {
      const { body } = await read(session)
      for (const name of ['authServer', 'resourceServer']) demandUrl(pick(body, name), name)
    },
  },
  {
    id: 'wallet-unknown',
    name: 'a URL without an account is not found',
    rule: document,
    async check(session) {
      const url = `${session.walletAddress.replace(/\/$/, '')}-${randomUUID()}`
      demandStatus(await session.send({ method: 'GET', url, sign: false }), 404)
    },
  },
  {
    id: 'wallet-keys',
    name: 'the key set of a wallet address contains public Ed25519 keys only',
    rule: keySet,
    async check(session) {
      const url = joined(session.walletAddress, '/jwks.json')
      const answer = await session.send({ method: 'GET', url, sign: false })
      demandStatus(answer, 200, 404)
      if (answer.status === 404) return
      demandJson(answer, 200)
      const keys = pick(answer.body, 'keys')
      demand(Array.isArray(keys), 'keys must be an array')
      keys.forEach(demandPublicKey)
    },
  },
  {
    id: 'wallet-cors',
    name: 'pages of every origin may read a wallet address',
    rule: 'Fetch standard, CORS protocol',
    level: 'recommended',
    async check(session) {
      const headers = [['Origin', 'https://page.example']] as const
      const url = session.walletAddress
      const answer = await session.send({ method: 'GET', url, headers, sign: false })
      const allowed = answer.headers.get('access-control-allow-origin')
      demand(
        allowed === '*' || allowed === 'https://page.example',
        `Access-Control-Allow-Origin is ${show(allowed)}; expected "*"`,
      )
    },
  },
]

function demandPublicKey(key: unknown): void {
  demand(pick(key, 'd') === undefined, 'the key set contains the private member d')
  const fixed = { alg: 'EdDSA', kty: 'OKP', crv: 'Ed25519' }
  for (const [name, value] of Object.entries(fixed)) {
    demand(pick(key, name) === value, `${name} of a key must be ${value}`)
  }
  const [kid, x] = [pick(key, 'kid'), pick(key, 'x')]
  demand(typeof kid === 'string' && kid !== '', 'a key must have a kid')
  demand(typeof x === 'string' && /^[\w-]{43}$/.test(x), 'x of a key must be 32 bytes in base64url')
}

async function discover(session: Session) {
  const { authServer: url } = await session.wallet()
  return session.send({ method: 'OPTIONS', url, sign: false })
}

export const discoveryCases: readonly ServerCaseDefinition[] = [
  {
    id: 'discovery',
    name: 'OPTIONS at the grant endpoint says what the authorization server supports',
    rule: 'RFC 9635 section 9',
    level: 'recommended',
    async check(session) {
      demandJson(await discover(session), 200)
    },
  },
  {
    id: 'discovery-endpoint',
    name: 'the discovery document, if there is one, names the URL at which it is served',
    rule: 'RFC 9635 section 9',
    async check(session) {
      const answer = await discover(session)
      const endpoint = pick(answer.body, 'grant_request_endpoint')
      if (answer.status !== 200 || answer.body === undefined) return
      const { authServer } = await session.wallet()
      demand(
        endpoint === authServer,
        `grant_request_endpoint is ${show(endpoint)}; expected ${show(authServer)}`,
      )
    },
  },
]
