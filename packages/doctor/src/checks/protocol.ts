import { randomUUID } from 'node:crypto'
import { pick, responded, type WireRequest } from 'open-payments-programs'
import { recognised } from '../answer.js'
import { type CaseAdvice, type Check, caseCheck, type Explain } from '../check.js'
import type { Session } from '../conformance/session.js'
import { ownChallenge, ownErrors, uncached, unchangedTarget } from '../remedies.js'
import { verifiedTarget } from './refusal.js'

const caching: Pick<CaseAdvice, 'fix' | 'cause'> = {
  cause: 'caching',
  fix: () => uncached,
}

const verification: Pick<CaseAdvice, 'fix' | 'cause'> = {
  cause: 'verification',
  fix: () => [
    'npm install open-payments-server@latest',
    '// and no code of your own in front of the handler that responds or removes headers',
  ],
}

const atGrants = { after: ['signed-request'] } as const
const atPayments = { after: ['incoming-get'] } as const

/** Rules of the protocol that proxies, caches and middlewares break. */
export const grantChecks: readonly Check[] = [
  caseCheck('grant-unsigned', {
    ...atGrants,
    ...verification,
    why: 'An attacker could request access as any client.',
    fix: () => ["app.use('/auth', toExpress(auth.handle)) // the handler verifies every request"],
  }),
  caseCheck('grant-no-store', {
    ...atGrants,
    ...caching,
    why: 'A cache could store tokens, and return them to other clients.',
  }),
  caseCheck('grant-401-challenge', {
    ...atGrants,
    why: 'Some HTTP clients and proxies refuse a 401 without a challenge.',
    fix: () => ownChallenge,
    cause: 'challenge',
  }),
  caseCheck('grant-error-body', {
    ...atGrants,
    why: 'Clients branch on the code of the error.',
    fix: () => ownErrors,
    cause: 'replaced errors',
  }),
  caseCheck('grant-other-key', {
    ...atGrants,
    ...verification,
    why: 'An attacker could request access as any client.',
  }),
  caseCheck('grant-body-changed', {
    ...verification,
    after: ['body-bytes'],
    why: 'A request could be changed in transit.',
  }),
  caseCheck('grant-created-long-ago', {
    ...atGrants,
    ...verification,
    why: 'A captured request could be replayed at any time.',
  }),
  caseCheck('grant-needs-consent', {
    ...atGrants,
    ...verification,
    why: 'Clients could spend without the consent of the owner.',
  }),
]

/** Reads a payment again, at a URL that no cache knows. */
const cached: Explain = async ({ status, request, body }, { session }) => {
  if (status !== 200 || !request.startsWith('GET ')) return undefined
  const url = `${request.slice('GET '.length)}?fresh=${randomUUID()}`
  const fresh = await session.send({ method: 'GET', url, token: await session.sharedToken() })
  const isCached = pick(fresh.body, 'completed') === true && pick(body, 'completed') === false
  if (!isCached) return undefined
  const what = `a cache answers ${request} with the payment as it was earlier`
  return (await givesLists(session))
    ? {
        what: `${what}, and gives the list of a client to a request without a signature`,
        why: 'Everybody can read the payments of others, and clients wait for, or pay, one that has completed.',
      }
    : { what }
}

/** Tells whether a request without content arrived with some. */
const addedBody: Explain = async ({ status, request, hadContent, body }) => {
  const isUncovered = /content-digest/i.test(JSON.stringify(pick(body, 'error') ?? ''))
  if (hadContent !== false || !(status === 415 || (status === 401 && isUncovered))) return undefined
  return {
    what: `${request} is sent without content, and arrives with some (${status})`,
    why: 'Completion, rotation, revocation and cancellation have none, and the signature covers none.',
    fix: [
      '# Let the gateway write no body, such as {}, where it has received none:',
      "app.use('/auth', gateway) // before app.use(express.json()), and without fixRequestBody",
    ],
    cause: 'added body',
  }
}

/** Whether a list that a client has read is then given to a request without a signature. */
async function givesLists(session: Session): Promise<boolean> {
  const search = new URLSearchParams({ 'wallet-address': session.walletAddress })
  const url = `${await session.resource('/incoming-payments')}?${search}`
  await session.send({ method: 'GET', url, token: await session.sharedToken() })
  return (await session.send({ method: 'GET', url, sign: false })).status === 200
}

/** Tells whether the server verifies signatures of another query. */
const changedQuery: Explain = async ({ status, request }, { session }) => {
  if (status !== 401) return undefined
  const url = request.slice('GET '.length)
  const [path = '', query = ''] = url.split('?')
  const token = await session.sharedToken()
  const verified = await verifiedTarget(
    [`${path}?${decodeURIComponent(query)}`, `${path}?${query.replaceAll('%3A', ':')}`, path],
    (sign) => session.send({ method: 'GET', url, token, sign }),
    (answer) => answer.status !== 401,
  )
  if (verified === undefined) return undefined
  return { what: `the proxy ${verified === path ? 'removes' : 'decodes'} the query of ${request}` }
}

const keptQuery =
  '# and no rewrite of the query: %3A, %3a and : are different bytes, and signatures cover them'

/** What a proxy may make of an encoded text, such as `%7e`. */
const rewritten: readonly (readonly [how: string, rewrite: (text: string) => string])[] = [
  ['the hexadecimal digits in upper case', upperCased],
  ['unreserved characters decoded', withoutNeedless],
  ['unreserved characters decoded', (text) => upperCased(withoutNeedless(text))],
  ['decoded', decodeURIComponent],
]

function upperCased(text: string): string {
  return text.replace(/%[\da-f]{2}/gi, (escaped) => escaped.toUpperCase())
}

/** Decodes the characters that RFC 3986 section 2.3 calls unreserved. */
function withoutNeedless(text: string): string {
  return text.replace(/%[2-7][\da-f]/gi, (escaped) => {
    const character = decodeURIComponent(escaped)
    return /[\w.~-]/.test(character) ? character : escaped
  })
}

/** A list whose query has every character encoded, in lower case: some clients write `%7e` or `%2f`. */
const encodedList: Check = {
  name: 'list-encoded',
  after: ['list'],
  async run({ session }) {
    const encoded = [...Buffer.from(session.walletAddress)].map(
      (byte) => `%${byte.toString(16).padStart(2, '0')}`,
    )
    const url = `${await session.resource('/incoming-payments')}?wallet-address=${encoded.join('')}&first=1`
    const token = await session.sharedToken()
    const attempt = (sign: NonNullable<WireRequest['sign']>) =>
      session.send({ method: 'GET', url, token, sign })
    const answer = await attempt({})
    if (answer.status === 200) return undefined
    const known = recognised(answer)
    if (known !== undefined) return known
    const targets = rewritten.map(([, rewrite]) => rewrite(url))
    const verified = await verifiedTarget(targets, attempt, ({ status }) => status !== 401)
    const [how] = rewritten[targets.indexOf(verified ?? '')] ?? []
    return {
      what:
        how === undefined
          ? `${responded(answer)}, and accepted the same list in another encoding`
          : `the proxy writes the query of ${answer.request} anew: ${how}`,
      why: 'Signatures cover the query as it was sent. Lists of clients that encode it in another way are refused.',
      fix: [...unchangedTarget, keptQuery],
      cause: 'query',
    }
  },
}

export const paymentChecks: readonly Check[] = [
  caseCheck('resource-unsigned', {
    after: ['incoming-create'],
    ...verification,
    why: 'An attacker who learns a token could use it.',
  }),
  caseCheck('incoming-complete', {
    ...atPayments,
    ...caching,
    why: 'Clients would wait for, or pay, a payment that has completed.',
    explain: async (answer, context) =>
      (await addedBody(answer, context)) ?? cached(answer, context),
  }),
  caseCheck('incoming-public', {
    after: ['discovery', 'incoming-complete'],
    why: 'Payers read this view without a token. It must not contain what only the receiver may see.',
    fix: () => ['# Pass GET requests without a signature on to the resource server.'],
  }),
  caseCheck('incoming-private-cache', {
    ...atPayments,
    ...caching,
    why: 'Shared caches could show a payment to others.',
  }),
  caseCheck('list', {
    after: ['incoming-complete'],
    why: 'A signature covers the query. If a list is refused, a proxy changed the query.',
    fix: () => [...unchangedTarget, keptQuery],
    explain: changedQuery,
  }),
  encodedList,
  caseCheck('token-rotate-old', {
    ...atPayments,
    ...caching,
    why: 'A client rotates a token that leaked. The old one must not give access any more.',
    explain: addedBody,
  }),
  caseCheck('token-revoke', {
    after: ['incoming-get', 'token-rotate-old'],
    ...caching,
    why: 'A revoked token must not give access any more.',
    explain: addedBody,
  }),
  caseCheck('grant-pending', {
    after: ['signed-request'],
    why: 'Clients lead the owner to the page that the response names.',
    fix: () => ["consentUrl: 'https://wallet.example/consent', // createAuthorizationServer"],
  }),
]
