import {
  demand,
  demandJson,
  demandStatus,
  responded,
  type Token,
  textAt,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import { demandRefusal } from './expectations.js'
import { demandAccess, demandNoStore, demandToken } from './grant.js'
import type { ServerCaseDefinition, Session } from './session.js'

const rotation = 'OpenAPI post-token'

function rotate(session: Session, { manage: url, value: token }: Token): Promise<WireAnswer> {
  return session.send({ method: 'POST', url, token })
}

function revoke(
  session: Session,
  { manage: url, value: token }: Token,
  sign: WireRequest['sign'] = {},
): Promise<WireAnswer> {
  return session.send({ method: 'DELETE', url, token, sign })
}

export const tokenCases: readonly ServerCaseDefinition[] = [
  {
    id: 'token-rotate',
    name: 'a rotated token has a new value and the same access',
    rule: rotation,
    async check(session) {
      const item = {
        type: 'incoming-payment',
        actions: ['create', 'read'],
        identifier: session.walletAddress,
      }
      const issued = await session.askFor([item])
      const value = textAt(issued, 'access_token', 'value')
      const url = textAt(issued, 'access_token', 'manage')
      const answer = await session.send({ method: 'POST', url, token: value })
      demandJson(answer, 200)
      demandToken(answer)
      const rotated = textAt(answer, 'access_token', 'value')
      demand(rotated !== value, 'the rotated token has the value of the old one')
      demandAccess(answer, item)
      demandStatus(await session.requestIncoming(rotated), 201)
    },
  },
  {
    id: 'token-rotate-old',
    name: 'the old token is refused after a rotation',
    rule: 'RFC 9635 section 6.1',
    async check(session) {
      const token = await session.issue('create')
      demandStatus(await session.requestIncoming(token.value), 201)
      demandStatus(await rotate(session, token), 200)
      demandStatus(await session.requestIncoming(token.value), 401)
    },
  },
  {
    id: 'token-rotate-no-store',
    name: 'the response to a rotation must not be stored by caches',
    rule: 'RFC 9635 section 3',
    async check(session) {
      const answer = await rotate(session, await session.issue('create'))
      demandStatus(answer, 200)
      demandNoStore(answer)
    },
  },
  {
    id: 'token-rotate-other-key',
    name: 'a rotation with the signature of another key is refused',
    rule: 'RFC 9635 section 6.1',
    async check(session) {
      const { manage: url, value: token } = await session.issue('create')
      const sign = { key: session.otherKey }
      demandRefusal(await session.send({ method: 'POST', url, token, sign }), 400, 401, 404)
      demandStatus(await session.requestIncoming(token), 201)
    },
  },
  {
    id: 'token-rotate-other-token',
    name: 'a token is not rotated at the management URI of another one',
    rule: 'RFC 9635 section 6.1',
    async check(session) {
      const [one, two] = [await session.issue('create'), await session.issue('create')]
      const crossed = { ...one, manage: two.manage }
      demandRefusal(await rotate(session, crossed), 400, 401, 404)
    },
  },
  {
    id: 'token-revoke',
    name: 'a revoked token is refused',
    rule: 'OpenAPI delete-token',
    async check(session) {
      const token = await session.issue('create')
      demandStatus(await session.requestIncoming(token.value), 201)
      const answer = await revoke(session, token)
      demandStatus(answer, 204)
      demand(answer.text === '', () => `${responded(answer)} with a body; expected none`)
      demandStatus(await session.requestIncoming(token.value), 401)
    },
  },
  {
    id: 'token-revoke-other-key',
    name: 'a revocation with the signature of another key is refused',
    rule: 'RFC 9635 section 6.2',
    async check(session) {
      const token = await session.issue('create')
      const byOther = { key: session.otherKey }
      demandStatus(await revoke(session, token, byOther), 400, 401, 404)
      demandStatus(await session.requestIncoming(token.value), 201)
    },
  },
  {
    id: 'token-revoke-again',
    name: 'a repeated revocation succeeds',
    rule: 'RFC 9635 section 6.2',
    level: 'recommended',
    async check(session) {
      const token = await session.issue('create')
      for (let i = 0; i < 2; i++) demandStatus(await revoke(session, token), 204)
    },
  },
]
