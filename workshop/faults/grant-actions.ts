import type { AccessItem } from '../../src/index.js'
import {
  type Answer,
  grantEndpoint,
  incomingAccess,
  interactionId,
  outgoingAccess,
  withFinish,
} from '../../test/support/world.js'
import type { Caller } from './caller.js'
import type { GrantEntry } from './journal.js'

interface Held {
  readonly entry: GrantEntry
  readonly access: 'incoming' | 'outgoing'
  token: { readonly value: string; readonly manage: string }
}

/** A customer's actions on grants. It rotates and revokes only its own. */
export function createGrantActions(caller: Caller) {
  const { name, wallet, journal, send, noted, insist, surprise, pick } = caller
  const held: Held[] = []

  /** A grant request without a response is dropped: nothing identifies it for a repeat. */
  async function requestGrant(access: AccessItem, interact?: object): Promise<Answer | undefined> {
    const client = `https://${name}.example`
    const body = { client, access_token: { access: [access] }, ...(interact && { interact }) }
    const answer = await send('POST', grantEndpoint, undefined, body)
    return noted('request a grant', answer, 200) ? answer : undefined
  }

  function begin({ body }: Answer, needsConsent: boolean): GrantEntry {
    const segment = interactionId(body.continue.uri)
    const id = segment.slice(0, segment.indexOf('.'))
    const entry = { id, needsConsent, tokens: [], approved: false, revoked: false }
    journal.grants.push(entry)
    return entry
  }

  function hold(entry: GrantEntry, access: Held['access'], { body }: Answer): void {
    const { value, manage } = body.access_token
    entry.tokens.push(value)
    held.push({ entry, access, token: { value, manage } })
  }

  async function requestToken(): Promise<void> {
    const answer = await requestGrant(incomingAccess)
    if (answer !== undefined) hold(begin(answer, false), 'incoming', answer)
  }

  async function requestWithConsent(): Promise<void> {
    const answer = await requestGrant(outgoingAccess, withFinish)
    if (answer === undefined) return
    const entry = begin(answer, true)
    const interaction = interactionId(answer.body.interact.redirect)
    entry.inFlight = 'approve'
    const approval = await insist('approve a grant', 200, () => wallet.approve(interaction))
    if (approval.body?.ok !== true) return surprise('approve a grant', approval)
    entry.approved = true
    entry.inFlight = 'continue'
    const { uri, access_token: continuation } = answer.body.continue
    const reference = new URL(approval.body.redirect).searchParams.get('interact_ref')
    const continued = await insist('continue a grant', 200, () =>
      send('POST', uri, continuation.value, { interact_ref: reference }),
    )
    delete entry.inFlight
    if (continued.status === 200) hold(entry, 'outgoing', continued)
  }

  function pickIdle(): Held | undefined {
    return pick(held.filter(({ entry }) => entry.inFlight === undefined))
  }

  /** Sends several concurrent rotations of one token. */
  async function rotate(times: number): Promise<void> {
    const grant = pickIdle()
    if (grant === undefined) return requestToken()
    const { value, manage } = grant.token
    grant.entry.inFlight = 'rotate'
    const rotations = Array.from({ length: times }, () =>
      insist('rotate a token', 200, () => send('POST', manage, value)),
    )
    const tokens = (await Promise.all(rotations)).flatMap(({ body }) => body?.access_token ?? [])
    const values = new Set<string>(tokens.map((token) => token.value))
    if (values.size > 1) journal.surprises.push(`${name}: a token was rotated to ${values.size}`)
    grant.entry.tokens.push(...values)
    grant.token = tokens[0] ?? grant.token
    delete grant.entry.inFlight
  }

  async function revoke(): Promise<void> {
    const grant = pickIdle()
    if (grant === undefined) return
    held.splice(held.indexOf(grant), 1)
    const { value, manage } = grant.token
    grant.entry.inFlight = 'revoke'
    const answer = await insist('revoke a token', 204, () => send('DELETE', manage, value))
    grant.entry.revoked = answer.status === 204
    delete grant.entry.inFlight
  }

  /**
   * Uses a token for incoming payments while no other action rotates or revokes it. Returns `undefined` if
   * there is none.
   */
  async function withToken<Result>(
    use: (token: string) => Promise<Result>,
  ): Promise<Result | undefined> {
    const usable = held.filter(
      ({ access, entry }) => access === 'incoming' && entry.inFlight === undefined,
    )
    const grant = pick(usable)
    return grant && use(grant.token.value)
  }

  return { requestToken, requestWithConsent, rotate, revoke, withToken }
}
