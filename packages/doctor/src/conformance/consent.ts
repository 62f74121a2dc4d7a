import { createHash } from 'node:crypto'
import { type GrantRequest, verifyFinish } from 'open-payments-client'
import {
  type AccessItem,
  demand,
  demandJson,
  pick,
  show,
  textAt,
  type WireAnswer,
} from 'open-payments-programs'
import { demandNoToken, demandRefusal } from './expectations.js'
import { demandAccess, demandNoStore, demandToken, outgoing } from './grant.js'
import {
  type ConsentDecision,
  requestConsent,
  type ServerCaseDefinition,
  type Session,
  taken,
} from './session.js'

type Item = GrantRequest['access'][number]

/** A grant after the owner's decision, and the URL to which the browser was redirected. */
interface Decided {
  readonly requested: WireAnswer
  readonly nonce: string
  readonly returned: URL
}

/** Requests access and lets the owner decide. */
async function decided(
  session: Session,
  item: AccessItem,
  decision: ConsentDecision = 'approve',
): Promise<Decided> {
  const { answer, nonce } = await requestConsent(session, item)
  demandJson(answer, 200)
  const url = await session.consent?.(textAt(answer, 'interact', 'redirect'), decision)
  demand(url !== undefined && URL.canParse(String(url)), 'consent must resolve to an absolute URL')
  return { requested: answer, nonce, returned: new URL(url) }
}

/** Continues a grant, and waits if the authorization server asks for it. */
async function continued(
  session: Session,
  { requested, returned }: Decided,
  interactRef = returned.searchParams.get('interact_ref'),
): Promise<WireAnswer> {
  const request = {
    method: 'POST',
    url: textAt(requested, 'continue', 'uri'),
    token: textAt(requested, 'continue', 'access_token', 'value'),
    // After a denial there may be no reference.
    body: interactRef === null ? undefined : { interact_ref: interactRef },
  }
  const answer = await session.send(request)
  if (pick(answer.body, 'error', 'code') !== 'too_fast') return answer
  const waitS = Number(pick(requested.body, 'continue', 'wait') ?? 5)
  await new Promise((resolve) => setTimeout(resolve, waitS * 1000))
  return session.send(request)
}

/** Gets an access token that the owner approved. */
export async function approvedToken(session: Session, item: AccessItem): Promise<string> {
  const { steps, walletAddress, finishUri, consent } = session
  const access = [item as unknown as Item]
  const asked = taken(await steps.requestGrant({ walletAddress, access, interact: { finishUri } }))
  if (asked.status === 'issued') return asked.grant.token
  const { pending } = asked
  const returned = await consent?.(pending.redirect ?? '', 'approve')
  demand(returned !== undefined, 'consent must resolve to an absolute URL')
  const { interactRef } = taken(await verifyFinish(pending, new URL(returned).searchParams))
  const continued = taken(await steps.continueGrant(pending, { interactRef }))
  demand(continued.status === 'issued', 'the grant is still pending after consent')
  return continued.grant.token
}

function hashOf({ requested, nonce, returned }: Decided, authServer: string) {
  const base = [
    nonce,
    textAt(requested, 'interact', 'finish'),
    returned.searchParams.get('interact_ref'),
    authServer,
  ].join('\n')
  return createHash('sha256').update(base)
}

export const consentCases: readonly ServerCaseDefinition[] = [
  {
    id: 'consent-finish',
    name: 'after consent, the browser returns to the client with a reference and its own query',
    rule: 'RFC 9635 section 4.2.1',
    needs: 'consent',
    async check(session) {
      const { returned } = await decided(session, outgoing(session))
      const finish = new URL(session.finishUri)
      const [place, expected] = [returned, finish].map(({ origin, pathname }) => origin + pathname)
      demand(place === expected, `the browser returned to ${place}; expected ${expected}`)
      for (const [name, value] of finish.searchParams) {
        const kept = returned.searchParams.get(name)
        demand(kept === value, `the parameter ${name} is ${show(kept)}; expected ${show(value)}`)
      }
      const reference = returned.searchParams.get('interact_ref') ?? ''
      demand(/^[\w.~-]+$/.test(reference), `interact_ref is ${show(reference)}`)
    },
  },
  {
    id: 'consent-hash',
    name: 'the hash proves that the redirect comes from the authorization server',
    rule: 'RFC 9635 section 4.2.3',
    needs: 'consent',
    async check(session) {
      const found = await decided(session, outgoing(session))
      const { authServer } = await session.wallet()
      const given = found.returned.searchParams.get('hash')
      // Deployed clients compare standard base64; the RFC says base64url.
      const expected = (['base64', 'base64url'] as const).map((encoding) =>
        hashOf(found, authServer).digest(encoding),
      )
      const holds = given !== null && expected.includes(given)
      demand(holds, `hash is ${show(given)}; expected ${expected.join(' or ')}`)
    },
  },
  {
    id: 'consent-continue',
    name: 'a grant is continued with the reference, and its token states access and limits',
    rule: 'OpenAPI post-continue',
    needs: 'consent',
    async check(session) {
      const { asset } = await session.wallet()
      const limits = { debitAmount: { value: '1000', ...asset } }
      const item = outgoing(session, { limits })
      const answer = await continued(session, await decided(session, item))
      demandJson(answer, 200)
      demandToken(answer)
      demandNoStore(answer)
      demandAccess(answer, item)
    },
  },
  {
    id: 'consent-reference',
    name: 'the interaction reference of another grant does not continue a grant',
    rule: 'RFC 9635 section 5.1',
    needs: 'consent',
    async check(session) {
      const one = await decided(session, outgoing(session))
      const two = await decided(session, outgoing(session))
      const reference = one.returned.searchParams.get('interact_ref')
      demandRefusal(await continued(session, two, reference), 400, 401, 403, 404)
      demandJson(await continued(session, one), 200)
    },
  },
  {
    id: 'consent-denied',
    name: 'a denied grant has no token',
    rule: 'RFC 9635 section 4.2',
    needs: 'consent',
    async check(session) {
      const found = await decided(session, outgoing(session), 'deny')
      const answer = await continued(session, found)
      demandNoToken(answer)
      demandRefusal(answer, 400, 401, 403, 404)
    },
  },
]
