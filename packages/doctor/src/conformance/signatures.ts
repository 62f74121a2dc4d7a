import { randomUUID } from 'node:crypto'
import { demandStatus, type SignatureChanges } from 'open-payments-programs'
import { demandCode, demandRefusal } from './expectations.js'
import { incomingActions, type ServerCaseDefinition, type Session } from './session.js'

const dayS = 24 * 60 * 60
const proof = 'RFC 9635 section 7.3.1'

interface BadSignature {
  readonly id: string
  readonly name: string
  readonly rule: string
  readonly sign: (session: Session) => false | SignatureChanges
}

/** What the client covers in a request with a body and without a token. */
export const covered = [
  '"@method"',
  '"@target-uri"',
  '"content-digest"',
  '"content-length"',
  '"content-type"',
]

export function without(name: string): SignatureChanges {
  return { components: covered.filter((component) => component !== name) }
}

function inSeconds(session: Session, seconds: number): number {
  return Math.floor(session.now() / 1000) + seconds
}

/** Requests that a client did not make: each is refused with the code for its client. */
const bad: readonly BadSignature[] = [
  {
    id: 'grant-unsigned',
    name: 'a grant request without a signature is refused',
    rule: 'RFC 9635 section 2.3',
    sign: () => false,
  },
  {
    id: 'grant-other-key',
    name: 'a grant request signed with another key is refused',
    rule: 'RFC 9635 section 2.3',
    sign: ({ otherKey }) => ({ key: otherKey }),
  },
  {
    id: 'grant-other-target',
    name: 'a signature of another target URI is refused',
    rule: proof,
    sign: () => ({ override: { '"@target-uri"': 'https://other.example/' } }),
  },
  {
    id: 'grant-method-uncovered',
    name: 'a signature that does not cover the method is refused',
    rule: proof,
    sign: () => without('"@method"'),
  },
  {
    id: 'grant-target-uncovered',
    name: 'a signature that does not cover the target URI is refused',
    rule: proof,
    sign: () => without('"@target-uri"'),
  },
  {
    id: 'grant-digest-uncovered',
    name: 'a signature that does not cover the digest of the body is refused',
    rule: proof,
    sign: () => without('"content-digest"'),
  },
  {
    id: 'grant-digest-missing',
    name: 'a body without a digest is refused',
    rule: proof,
    sign: () => ({ digest: 'none', ...without('"content-digest"') }),
  },
  {
    id: 'grant-created-missing',
    name: 'a signature without the time of its creation is refused',
    rule: proof,
    sign: ({ key }) => ({ parameters: [`keyid="${key.kid}"`, `nonce="${randomUUID()}"`] }),
  },
  {
    id: 'grant-created-long-ago',
    name: 'a signature that was created a day ago is refused',
    rule: proof,
    sign: (session) => ({ created: inSeconds(session, -dayS) }),
  },
  {
    id: 'grant-created-in-future',
    name: 'a signature that is dated a day ahead is refused',
    rule: proof,
    sign: (session) => ({ created: inSeconds(session, dayS) }),
  },
]

const grantCases = bad.map(
  ({ id, name, rule, sign }): ServerCaseDefinition => ({
    id,
    name,
    rule,
    async check(session) {
      const item = accessOf(session)
      const answer = await session.askFor([item], {}, sign(session))
      demandRefusal(answer, 400, 401)
      demandCode(answer, 'invalid_client', ...(answer.status === 400 ? ['invalid_request'] : []))
      const good = await session.askFor([item])
      demandStatus(good, 200)
    },
  }),
)

function accessOf({ walletAddress: identifier }: Session) {
  return { type: 'incoming-payment', actions: [...incomingActions], identifier }
}

const grantMessageCases: readonly ServerCaseDefinition[] = [
  {
    id: 'grant-body-changed',
    name: 'a body that was changed after it was signed is refused',
    rule: 'RFC 9530 section 2',
    async check(session) {
      const { authServer: url } = await session.wallet()
      const body = { access_token: { access: [accessOf(session)] }, client: session.client }
      // The same JSON in other bytes: a server that parses before it verifies accepts it.
      const sentBody = JSON.stringify(body, undefined, 1)
      const answer = await session.send({ method: 'POST', url, body, sign: { sentBody } })
      demandRefusal(answer, 400, 401)
      demandCode(answer, 'invalid_client', 'invalid_request')
    },
  },
  {
    id: 'grant-replay',
    name: 'a repeated nonce is refused',
    rule: 'RFC 9635 section 7.3.1',
    async check(session) {
      const sign = { nonce: randomUUID(), created: inSeconds(session, 0) }
      const item = accessOf(session)
      demandStatus(await session.askFor([item], {}, sign), 200)
      // 409 says that the first copy was answered.
      demandRefusal(await session.askFor([item], {}, sign), 400, 401, 409)
    },
  },
]

/** Requests at the resource server that do not prove the key of the token. */
const misuses: readonly (BadSignature & { readonly token?: string })[] = [
  {
    id: 'resource-token-unknown',
    name: 'an unknown access token is refused',
    rule: 'OpenAPI create-incoming-payment, 401',
    token: 'unknown-0123456789abcdef',
    sign: () => ({}),
  },
  {
    id: 'resource-unsigned',
    name: 'an access token without a signature is refused',
    rule: 'RFC 9635 section 7.2',
    sign: () => false,
  },
  {
    id: 'resource-other-key',
    name: 'an access token with the signature of another key is refused',
    rule: 'RFC 9635 section 7.2',
    sign: ({ otherKey }) => ({ key: otherKey }),
  },
  {
    id: 'resource-token-uncovered',
    name: 'a signature that does not cover the access token is refused',
    rule: proof,
    sign: () => ({ components: covered }),
  },
  {
    id: 'resource-created-long-ago',
    name: 'an access token with a signature that was created a day ago is refused',
    rule: proof,
    sign: (session) => ({ created: inSeconds(session, -dayS) }),
  },
]

const resourceCases = misuses.map(
  ({ id, name, rule, token, sign }): ServerCaseDefinition => ({
    id,
    name,
    rule,
    async check(session) {
      const used = token ?? (await session.sharedToken())
      demandStatus(await session.requestIncoming(used, {}, sign(session)), 401)
      if (token === undefined) demandStatus(await session.createIncoming(), 201)
    },
  }),
)

export const signatureCases: readonly ServerCaseDefinition[] = [
  ...grantCases,
  ...grantMessageCases,
  ...resourceCases,
]
