import { resourceServer } from '../../../test/support/world.js'
import { bury, count, type GrantEntry, type TokenEntry } from '../journal.js'
import type { Answer, Caller } from './caller.js'
import { noteTokens } from './requests.js'

const ownGrants = ({ world, entry }: Caller) =>
  world.journal.grants.filter(({ client }) => client === entry)

/** Picks one of the client's grants, mostly one that may still be of use. */
export function pickGrant(
  caller: Caller,
  suits: (grant: GrantEntry) => boolean = () => true,
): GrantEntry | undefined {
  const { draw } = caller.world.scheduler
  const suitable = ownGrants(caller).filter(suits)
  const usable = suitable.filter(({ over, key }) => !over && key === caller.entry.key)
  return draw.pick(draw.chance(80) && usable.length > 0 ? usable : suitable)
}

/** Picks a token of a grant: mostly the latest one of a label, sometimes one that is dead. */
export function pickToken({ world }: Caller, { tokens }: GrantEntry): TokenEntry | undefined {
  const { draw } = world.scheduler
  return draw.chance(75) ? draw.pick(latestTokens({ tokens })) : draw.pick(tokens)
}

/** Returns the latest token of each label. */
export function latestTokens({ tokens }: Pick<GrantEntry, 'tokens'>): readonly TokenEntry[] {
  return [...new Map(tokens.map((token) => [token.label, token])).values()]
}

/** Continues a request after the interaction, or polls. */
export async function continueGrant(caller: Caller): Promise<void> {
  const { draw } = caller.world.scheduler
  const grant = pickGrant(caller, ({ interaction }) => interaction !== undefined)
  if (grant === undefined) return
  const { uri, value } = grant.continuation
  const reference = draw.chance(90) ? grant.references.at(-1) : draw.pick(grant.references)
  if (grant.hasFinish && reference === undefined) return
  const body = reference === undefined ? {} : { body: { interact_ref: reference } }
  const answer = await changing(grant, () =>
    caller.insist({ method: 'POST', url: uri, token: value, key: grant.key, ...body }),
  )
  if (answer?.status !== 200 || answer.body.access_token === undefined) return
  if (!grant.decided.approving) {
    caller.world.journal.breaches.push(`the grant ${grant.id} was issued without an approval`)
  }
  noteTokens(caller, grant, answer, reference)
}

/** Rotates a token, sometimes with two requests at the same time. */
export async function rotate(caller: Caller): Promise<void> {
  const { draw } = caller.world.scheduler
  const grant = pickGrant(caller, ({ tokens }) => tokens.length > 0)
  const token = grant && pickToken(caller, grant)
  if (grant === undefined || token === undefined) return
  const times = draw.chance(20) ? 2 : 1
  await Promise.all(Array.from({ length: times }, () => rotateOnce(caller, grant, token)))
}

async function rotateOnce(caller: Caller, grant: GrantEntry, token: TokenEntry): Promise<void> {
  const wasOver = grant.over
  const answer = await changing(grant, () =>
    caller.insist({ method: 'POST', url: token.manage, token: token.value, key: grant.key }),
  )
  if (answer?.status !== 200) return
  count(caller.world.journal, 'rotations')
  if (wasOver) {
    caller.world.journal.breaches.push(`a token of the ended grant ${grant.id} was rotated`)
  }
  token.dead ??= 'replaced'
  noteTokens(caller, grant, answer, token.value)
}

/** Revokes a token, or cancels the grant. */
export async function revoke(caller: Caller): Promise<void> {
  const { draw } = caller.world.scheduler
  const grant = pickGrant(caller)
  if (grant === undefined) return
  const token = draw.chance(60) ? pickToken(caller, grant) : undefined
  const { uri, value } = grant.continuation
  const url = token?.manage ?? uri
  const answer = await changing(grant, () =>
    caller.insist({ method: 'DELETE', url, token: token?.value ?? value, key: grant.key }),
  )
  if (answer?.status !== 204) return
  count(caller.world.journal, 'revocations')
  for (const each of grant.tokens) {
    if (token === undefined || each.label === token.label) each.dead ??= 'revoked'
  }
  grant.over = token === undefined || latestTokens(grant).every(({ dead }) => dead === 'revoked')
}

/** Counts a request whose outcome is unknown: an earlier attempt without a response may have taken effect. */
async function changing(
  grant: GrantEntry,
  ask: () => Promise<Answer | undefined>,
): Promise<Answer | undefined> {
  grant.unknown += 1
  const answer = await ask()
  if (answer !== undefined && (answer.status < 300 || answer.attempts === 1)) grant.unknown -= 1
  return answer
}

/**
 * Publishes another key in place of the client's key. It ends the grants that are bound to the old one, or signs for
 * them from now on; the old one signs nothing.
 */
export async function replaceKey(caller: Caller): Promise<void> {
  const { world, entry } = caller
  const { key: withdrawn } = entry
  await world.scheduler.turn('publishes another key', () => world.replaceKey(entry))
  const own = ownGrants(caller).filter(({ key }) => key !== entry.key)
  for (const grant of own) {
    if (world.keyBinding === 'published') grant.key = entry.key
    else bury(grant, 'bound to a withdrawn key')
  }
  const token = own.flatMap(({ tokens }) => latestTokens({ tokens })).at(-1)
  if (token === undefined) return
  const url = `${resourceServer}/outgoing-payment-grant`
  const answer = await caller.ask({ method: 'GET', url, token: token.value, key: withdrawn })
  if (answer === undefined || answer.status === 401 || answer.status >= 500) return
  world.journal.breaches.push(`${withdrawn.kid} signs, although it is withdrawn`)
}
