import {
  type AccessItem,
  demand,
  demandJson,
  demandStatus,
  demandUrl,
  pick,
  responded,
  show,
  textAt,
  tokenIn,
  type WireAnswer,
} from 'open-payments-programs'
import {
  demandCode,
  demandErrorBody,
  demandNoToken,
  demandRefusal,
  demandSame,
} from './expectations.js'
import { requestConsent, type ServerCaseDefinition, type Session } from './session.js'

const request = 'OpenAPI post-request'

function incoming({ walletAddress: identifier }: Session) {
  return { type: 'incoming-payment', actions: ['create', 'read'], identifier }
}

export function outgoing({ walletAddress: identifier }: Session, more: object = {}) {
  return { type: 'outgoing-payment', actions: ['create', 'read', 'list'], identifier, ...more }
}

export function demandNoStore({ headers, request }: WireAnswer): void {
  const control = headers.get('cache-control') ?? 'none'
  const holds = /(^|,)\s*no-store\s*(,|$)/i.test(control)
  demand(holds, `${request} responded with Cache-Control ${show(control)}; expected no-store`)
}

/** Fails unless the response has the token that the OpenAPI documents describe. */
export function demandToken(answer: WireAnswer): void {
  const value = textAt(answer, 'access_token', 'value')
  demand(/^[\w.~+/-]+=*$/.test(value), 'the access token must fit in the Authorization header')
  const manage = textAt(answer, 'access_token', 'manage')
  demandUrl(manage, 'manage')
  demand(!manage.includes(value), 'manage must not contain the access token')
  const expires = pick(answer.body, 'access_token', 'expires_in')
  const isSeconds = expires === undefined || (Number.isInteger(expires) && Number(expires) > 0)
  demand(isSeconds, `expires_in must be a positive integer but is ${show(expires)}`)
}

/** Fails unless the token states exactly this access, with its actions in any order. */
export function demandAccess(answer: WireAnswer, item: AccessItem): void {
  const access = pick(answer.body, 'access_token', 'access')
  demand(Array.isArray(access) && access.length === 1, 'access_token.access must have one item')
  const [granted] = access
  const actionsOf = (one: unknown) => {
    const actions = pick(one, 'actions')
    return Array.isArray(actions) ? actions.map(String).sort() : actions
  }
  demandSame(actionsOf(granted), actionsOf(item), 'the actions of the token')
  for (const name of ['type', 'identifier', 'limits']) {
    const wanted = pick(item, name)
    if (wanted !== undefined) demandSame(pick(granted, name), wanted, `${name} of the token`)
  }
}

const requestCases: readonly ServerCaseDefinition[] = [
  {
    id: 'grant-incoming',
    name: 'access to incoming payments is granted without an interaction',
    rule: request,
    async check(session) {
      const answer = await session.askFor([incoming(session)])
      tokenIn(answer)
      demandToken(answer)
      demandUrl(pick(answer.body, 'continue', 'uri'), 'continue.uri')
      const interact = pick(answer.body, 'interact')
      demand(interact === undefined, 'a granted request must not contain interact')
    },
  },
  {
    id: 'grant-access',
    name: 'a token states the access that was granted',
    rule: request,
    async check(session) {
      const item = incoming(session)
      const answer = await session.askFor([item])
      demandAccess(answer, item)
    },
  },
  {
    id: 'grant-no-store',
    name: 'a response with a token must not be stored by caches',
    rule: 'RFC 9635 section 3',
    async check(session) {
      const answer = await session.askFor([incoming(session)])
      demandStatus(answer, 200)
      demandNoStore(answer)
    },
  },
  {
    id: 'grant-new-tokens',
    name: 'two grants have different tokens',
    rule: 'RFC 9635 section 3.2.1',
    async check(session) {
      const [one, two] = [await session.issue('create'), await session.issue('create')]
      demand(one.value !== two.value, 'two grants have the same access token')
      demand(one.manage !== two.manage, 'two grants have the same management URI')
    },
  },
  {
    id: 'grant-not-json',
    name: 'a signed body that is not JSON is refused',
    rule: request,
    async check(session) {
      const { authServer: url } = await session.wallet()
      const answer = await session.send({ method: 'POST', url, body: '{"access_token":' })
      demandRefusal(answer, 400)
      demandCode(answer, 'invalid_request', 'invalid_client')
    },
  },
  {
    id: 'grant-type-unknown',
    name: 'access of an unknown type is refused',
    rule: 'RFC 9635 section 8',
    async check(session) {
      const answer = await session.askFor([{ ...incoming(session), type: 'Incoming-Payment' }])
      demandRefusal(answer, 400)
    },
  },
  {
    id: 'grant-action-unknown',
    name: 'access with an unknown action is refused',
    rule: request,
    async check(session) {
      demandRefusal(await session.askFor([{ ...incoming(session), actions: ['spend'] }]), 400)
    },
  },
  {
    id: 'grant-client-missing',
    name: 'a grant request without a client is refused',
    rule: 'RFC 9635 section 2.3',
    async check(session) {
      const answer = await session.askFor([incoming(session)], { client: undefined })
      demandRefusal(answer, 400, 401)
    },
  },
  {
    id: 'grant-error-body',
    name: 'a refusal has a code and a description',
    rule: 'RFC 9635 section 3.6',
    async check(session) {
      demandErrorBody(await session.askFor([incoming(session)], {}, false))
    },
  },
  {
    id: 'grant-401-challenge',
    name: 'a response of the grant endpoint with status 401 has a challenge',
    rule: 'RFC 9110 section 15.5.2',
    async check(session) {
      for (const sign of [false, { key: session.otherKey }] as const) {
        demandChallenge(await session.askFor([incoming(session)], {}, sign))
      }
    },
  },
  {
    id: 'grant-needs-consent',
    name: 'access to outgoing payments is not granted without the consent of the owner',
    rule: 'RFC 9635 section 2.5',
    async check(session) {
      const answer = await session.askFor([outgoing(session)])
      demandNoToken(answer)
      demandRefusal(answer, 400, 401, 403)
    },
  },
]

function demandChallenge(answer: WireAnswer): void {
  const challenge = answer.headers.get('www-authenticate')
  demand(
    answer.status !== 401 || challenge !== null,
    () => `${responded(answer)} without WWW-Authenticate`,
  )
}

const continuationCases: readonly ServerCaseDefinition[] = [
  {
    id: 'grant-pending',
    name: 'a request that needs consent is answered with an interaction and no token',
    rule: request,
    needs: 'client',
    async check(session) {
      const { answer } = await requestConsent(session, outgoing(session))
      demandJson(answer, 200)
      demandNoToken(answer)
      demandUrlWithQuery(textAt(answer, 'interact', 'redirect'))
      textAt(answer, 'interact', 'finish')
      textAt(answer, 'continue', 'access_token', 'value')
      demandUrl(pick(answer.body, 'continue', 'uri'), 'continue.uri')
    },
  },
  {
    id: 'continue-before-consent',
    name: 'a grant is not continued before the owner consents',
    rule: 'RFC 9635 section 5',
    needs: 'client',
    async check(session) {
      const { answer } = await requestConsent(session, outgoing(session))
      const url = textAt(answer, 'continue', 'uri')
      const token = textAt(answer, 'continue', 'access_token', 'value')
      for (const body of [undefined, { interact_ref: 'guessed-0123456789' }]) {
        demandNoToken(await session.send({ method: 'POST', url, token, body }))
      }
    },
  },
  {
    id: 'continue-other-key',
    name: 'a continuation with the signature of another key is refused',
    rule: 'RFC 9635 section 5',
    async check(session) {
      const { continueUri: url, continueToken: token } = await session.issue('create')
      const sign = { key: session.otherKey }
      demandRefusal(await session.send({ method: 'POST', url, token, sign }), 400, 401)
      demandStatus(await session.send({ method: 'DELETE', url, token, sign }), 400, 401)
    },
  },
  {
    id: 'continue-without-token',
    name: 'a continuation without its token is refused',
    rule: 'RFC 9635 section 5',
    async check(session) {
      const { continueUri: url } = await session.issue('create')
      demandRefusal(await session.send({ method: 'POST', url }), 400, 401, 404)
    },
  },
  {
    id: 'continue-token-at-resource',
    name: 'a continuation token gives no access at the resource server',
    rule: 'RFC 9635 section 5',
    async check(session) {
      const { continueToken: token } = await session.issue('create')
      demandStatus(await session.requestIncoming(token), 401)
    },
  },
  {
    id: 'grant-cancel',
    name: 'a cancelled grant cannot be continued',
    rule: 'OpenAPI delete-continue',
    async check(session) {
      const { continueUri: url, continueToken: token } = await session.issue('create')
      demandStatus(await session.send({ method: 'DELETE', url, token }), 204)
      demandRefusal(await session.send({ method: 'POST', url, token }), 400, 401, 404)
    },
  },
]

function demandUrlWithQuery(url: string): void {
  demand(URL.canParse(url), `interact.redirect must be an absolute URL but is ${show(url)}`)
  demandUrl(url.split('?')[0], 'interact.redirect')
}

export const grantCases = [...requestCases, ...continuationCases]
