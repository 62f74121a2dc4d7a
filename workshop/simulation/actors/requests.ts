import type { AccessItem, Limits, TokenItem } from '../../../src/index.js'
import type { KeyPair } from '../../../test/support/keys.js'
import { usd } from '../../../test/support/spending.js'
import { alice, bob, finishUri, grantEndpoint } from '../../../test/support/world.js'
import type { Draw } from '../draw.js'
import { count, type GrantEntry, type TokenEntry } from '../journal.js'
import type { Answer, Caller } from './caller.js'

type Granted = Answer & { readonly key: KeyPair }

const limits: readonly (Limits | undefined)[] = [
  { debitAmount: usd(1_000) },
  { receiveAmount: usd(800) },
  { debitAmount: usd(500), interval: 'R/2026-11-21T12:00:00Z/PT1H' },
  { receiveAmount: usd(700), interval: 'R3/2026-11-21T12:00:00Z/P1D' },
  undefined,
]

function payingAccess(draw: Draw): readonly AccessItem[] {
  const item = (): AccessItem => {
    const picked = draw.pick(limits)
    return {
      type: 'outgoing-payment',
      actions: ['create', 'read', 'read-all', 'list-all'],
      identifier: alice,
      ...(picked && { limits: picked }),
    }
  }
  const quotes: AccessItem = { type: 'quote', actions: ['create', 'read'] }
  const first = item()
  const second = item()
  const isSame = JSON.stringify(first) === JSON.stringify(second)
  return draw.chance(30) && !isSame ? [first, second, quotes] : [first, quotes]
}

const receivingAccess: readonly AccessItem[] = [
  { type: 'incoming-payment', actions: ['create', 'read', 'complete', 'list'], identifier: bob },
]

/** The same access for each of two tokens, or for a single one. */
function perToken(draw: Draw, access: () => readonly AccessItem[]): readonly TokenItem[] {
  if (!draw.chance(30)) return access()
  return ['a', 'b'].flatMap((label) => access().map((item) => ({ label, ...item })))
}

/** Requests a grant to receive, which needs no consent. */
export async function requestReceiving(caller: Caller): Promise<void> {
  const access = perToken(caller.world.scheduler.draw, () => receivingAccess)
  const answer = await request(caller, access)
  if (answer !== undefined) noteTokens(caller, begin(caller, 'incoming', access, answer), answer)
}

/** Requests a grant to pay, which its owner has to approve. */
export async function requestPaying(caller: Caller): Promise<void> {
  const { draw } = caller.world.scheduler
  const access = perToken(draw, () => payingAccess(draw))
  const finish = { method: 'redirect', uri: finishUri, nonce: caller.unique() }
  const interact = { start: ['redirect'], ...(draw.chance(70) && { finish }) }
  const answer = await request(caller, access, interact)
  if (answer !== undefined) begin(caller, 'outgoing', access, answer, 'finish' in interact)
}

/** Sends a grant request, and resolves to its response and the key that signed it. */
async function request(
  { ask, entry }: Caller,
  access: readonly TokenItem[],
  interact?: object,
): Promise<Granted | undefined> {
  const { key } = entry
  const body = {
    client: entry.walletAddress,
    access_token: requestedTokens(access),
    ...(interact && { interact }),
  }
  const answer = await ask({ method: 'POST', url: grantEndpoint, body, key })
  return answer?.status === 200 ? { ...answer, key } : undefined
}

/** A single token, or one for each label. */
function requestedTokens(access: readonly TokenItem[]): object {
  if (access.every(({ label }) => label === undefined)) return { access }
  return [...new Set(access.map(({ label }) => label))].map((label) => ({
    label,
    access: access.filter((item) => item.label === label).map(({ label: _, ...item }) => item),
  }))
}

function begin(
  { world, entry }: Caller,
  type: GrantEntry['type'],
  requested: readonly TokenItem[],
  { body, key }: Granted,
  hasFinish = false,
): GrantEntry {
  const { uri, access_token: continuation } = body.continue
  const redirect: string | undefined = body.interact?.redirect
  const [id = ''] = uri.slice(uri.lastIndexOf('/') + 1).split('.')
  const grant: GrantEntry = {
    id,
    client: entry,
    // It may have been replaced since the request.
    key: world.keyBinding === 'published' ? entry.key : key,
    type,
    requested,
    continuation: { uri, value: continuation.value },
    hasFinish,
    ...(redirect !== undefined && { interaction: redirect.slice(redirect.lastIndexOf('/') + 1) }),
    references: [],
    tokens: [],
    successors: new Map(),
    decided: { approving: 0, approved: false, denied: false },
    unknown: 0,
    over: false,
  }
  world.journal.secrets.add(continuation.value.split('.')[1])
  world.journal.grants.push(grant)
  // A response that arrives late can be that of a grant which a sweep has removed.
  if (!world.database.wasWritten('grant', id)) {
    world.journal.breaches.push(`the grant ${id} was acknowledged, and is not stored`)
  }
  return grant
}

/**
 * Records the tokens of a response, and that they replaced what was presented.
 *
 * @param from the token or interaction reference that was presented.
 */
export function noteTokens(caller: Caller, grant: GrantEntry, { body }: Answer, from = ''): void {
  for (const token of [body.access_token].flat()) noteToken(caller, grant, token, from)
}

function noteToken(
  caller: Caller,
  grant: GrantEntry,
  { label, value, manage }: Pick<TokenEntry, 'label' | 'value' | 'manage'>,
  from: string,
): void {
  const { journal, scheduler } = caller.world
  const request = `${from} ${label}`
  const earlier = grant.successors.get(request)
  if (earlier !== undefined && earlier !== value) {
    journal.breaches.push(`the same request got two tokens of the grant ${grant.id}`)
  }
  grant.successors.set(request, value)
  journal.secrets.add(value.split('.')[1] ?? '')
  if (grant.tokens.some((token) => token.value === value)) return
  count(journal, 'tokens')
  const replaced = grant.tokens.find((token) => token.value === from)
  const named = label === undefined ? {} : { label }
  const token = { ...named, value, manage, receivedAt: scheduler.now() }
  // A response that was under way for long brings a token that may have been replaced or revoked since.
  const isRevoked = grant.tokens.some((each) => each.label === label && each.dead === 'revoked')
  const isDead = grant.over || isRevoked || grant.key !== grant.client.key
  grant.tokens.push(isDead ? { ...token, dead: 'ended before it arrived' } : token)
  if (replaced !== undefined) replaced.dead ??= 'replaced'
}
