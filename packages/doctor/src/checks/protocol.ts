import { randomUUID } from 'node:crypto'
import { pick } from 'open-payments-programs'
import { type CaseAdvice, type Check, caseCheck, type Explain } from '../check.js'
import { verifiedTarget } from './refusal.js'

const caching: Pick<CaseAdvice, 'fix' | 'cause'> = {
  cause: 'caching',
  fix: () => [
    'proxy_cache off;  # nginx, in the locations of both servers; in a CDN, a rule that bypasses its cache',
    '# and no expires or add_header Cache-Control, which replace the header of the server',
  ],
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
    fix: () => ['# nginx: remove proxy_hide_header WWW-Authenticate'],
    cause: 'challenge',
  }),
  caseCheck('grant-error-body', {
    ...atGrants,
    why: 'Clients branch on the code of the error.',
    fix: () => ['# nginx: remove proxy_intercept_errors on and error_page for these locations'],
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
  return isCached
    ? { what: `a cache answers ${request} with the payment as it was earlier` }
    : undefined
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
    explain: cached,
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
    fix: () => [
      'proxy_pass http://127.0.0.1:3000;  # nginx: without a path, it passes the target on unchanged',
      '# and no rewrite of the query: %3A and : are different bytes, and signatures cover them',
    ],
    explain: changedQuery,
  }),
  caseCheck('token-rotate-old', {
    ...atPayments,
    ...caching,
    why: 'A client rotates a token that leaked. The old one must not give access any more.',
  }),
  caseCheck('token-revoke', {
    after: ['incoming-get', 'token-rotate-old'],
    ...caching,
    why: 'A revoked token must not give access any more.',
  }),
  caseCheck('grant-pending', {
    after: ['signed-request'],
    why: 'Clients lead the owner to the page that the response names.',
    fix: () => ["consentUrl: 'https://wallet.example/consent', // createAuthorizationServer"],
  }),
]
