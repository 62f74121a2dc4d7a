import { refused } from '../../src/core/decision.js'
import type { AmendGrant } from '../../src/core/grant/amendment.js'
import type { Derivation, Grant, GrantKey, GrantPolicy } from '../../src/core/grant/record.js'
import { requestGrant } from '../../src/core/grant/request.js'
import { grantStatus, grantTime, isActive } from '../../src/core/grant/status.js'
import type { NextToken } from '../../src/core/grant/token.js'
import {
  decideGrant,
  type GrantCommand,
  type GrantDecision,
  type GrantRefusals,
} from '../../src/core/grant.js'
import type { Instant } from '../../src/core/instant.js'
import type { Stored } from '../../src/core/stored.js'
import { startOfTests } from '../../test/support/clock.js'
import { deepFreeze } from '../../test/support/frozen.js'
import {
  alice,
  isAttenuated,
  type Kind,
  labelled,
  newTokensOf,
  outgoing,
  requestOf,
} from '../../test/support/grants.js'
import type { Attempt, Change, Machine, Noted, Operation, Process, World } from './processes.js'
import { remembered } from './search.js'

/** The time between two instants of the model: with these periods each one is an end, or next to one. */
const tick = 1_000

export const policy: GrantPolicy = {
  waitMs: tick,
  retryMs: tick,
  interactionLifetimeMs: 2 * tick,
  accessTokenLifetimeMs: 2 * tick,
  unusedLifetimeMs: tick,
  retentionMs: tick,
  intervalCounting: 'occurrences',
}

/** Time passes by making everything older. */
const now = startOfTests

/** A hash and a management path, as presented or as issued. */
interface TokenAt {
  readonly hash: string
  readonly manage: string
}

interface GrantOp extends Operation {
  readonly command: GrantCommand
  /** The secret that the client presents, from which its next token is derived. */
  readonly presented?: string
  /** The id of the record that makes the request count once. */
  readonly nonce?: { readonly id: string; readonly of: 'signature' | 'nonce' }
}

/** What an observer knows of the token with one label. */
interface TokenFacts {
  readonly label?: string
  /** The token that was issued last. */
  readonly live: TokenAt & { readonly expiresAt: Instant }
  /** The token that it replaced. */
  readonly replaced?: TokenAt
  /** Whether the client has revoked it. */
  readonly isRevoked?: boolean
}

/** What an observer knows from the commits and answers alone. */
interface GrantFacts {
  readonly tokens: readonly TokenFacts[]
  /** The interaction reference that was used. */
  readonly spentRef?: string
  readonly over: boolean
  /** A signed request that somebody recorded. */
  readonly captured?: Pick<GrantOp, 'command' | 'presented' | 'nonce' | 'label'>
  /** Who succeeded with the recorded request. */
  readonly succeeded?: string
}

type GrantWorld = World<GrantOp, GrantFacts>

/** What the library decides with. A test replaces a part to plant a mistake. */
export interface GrantDecisions {
  decideGrant(
    grant: Grant,
    command: GrantCommand,
    now: Instant,
    policy: GrantPolicy,
  ): GrantDecision<keyof GrantRefusals>
  isActive: typeof isActive
  /** Whether an answer records that the request was used: signatures by successes only, nonces always. */
  isRecorded(of: 'signature' | 'nonce', isOk: boolean): boolean
}

export const grantDecisions: GrantDecisions = {
  decideGrant,
  isActive,
  isRecorded: (of, isOk) => isOk || of === 'nonce',
}

export interface GrantSetting {
  readonly kind: Kind
  /** Whether requests are recorded and repeated, and what identifies a request. */
  readonly replays?: 'signature' | 'nonce'
  /** The grant's windows end one tick after this many. */
  readonly windows?: number
  /** Whether the owner amends the grant: lowers a limit, removes an item, and pauses. */
  readonly amends?: boolean
  /** Whether the client signs with either of two keys. */
  readonly keys?: boolean
  /** The labels of the tokens that are requested. Default: a single token. */
  readonly labels?: readonly string[]
}

/** A grant, its clients and its owner. */
export function grantMachine(
  setting: GrantSetting,
  decisions: GrantDecisions = grantDecisions,
): Machine<GrantOp, GrantFacts> {
  const deps = { setting, decisions }
  return {
    name: nameOf(setting),
    begins: [{ label: `a client requests a grant (${setting.kind})`, world: newWorld(setting) }],
    starts: (world) => starts(deps, world),
    target: () => 'grant',
    retriesDiffer: ({ nonce }) => nonce !== undefined,
    nextLoad,
    decide: (op, seen) => decide(decisions, op, seen),
    committed: (before, after, op, attempt) => committed(deps, before, after, op, attempt),
    answered,
    mayRepeat,
    broken: (world) => broken(deps, world),
    passed,
    visible: ({ records, facts, processes }) => {
      const ids = [facts.captured, ...processes.map(({ op }) => op)].flatMap(
        (op) => op?.nonce?.id ?? [],
      )
      const used = ids.map((id) => `${id} ${records[id]?.commandId}`)
      return [recordText(records['grant'] as Grant), factsText(facts), used.join()]
    },
    textOf: recordText,
    operationText,
  }
}

/**
 * A poll that found no decision may find one when it is retried. A repeat that finds its own token consumes its
 * signature. An amendment that another one replaced may be committed again: the last one counts, as if it came later.
 */
function mayRepeat({ command: { type } }: GrantOp, before: GrantWorld, { changes }: Attempt) {
  if (changes.every(({ key }) => key !== 'grant')) return true
  if (type === 'amend') return true
  return type === 'continue' && grantOf(before).tokens === undefined
}

/** Running operations began now or one tick ago: an instant before that is over for each of them. */
const over = now - tick

const isOver = (instant: Instant) => instant <= over

/** An instant to which a period of one tick is added before it is compared. */
const clamped = (instant: Instant) => Math.max(instant, over - tick)

const end = (instant: Instant | undefined) =>
  instant === undefined ? undefined : Math.max(instant, over)

/**
 * The text of a grant. Of the instants at which something happened, decisions read only whether one is after their own
 * time; and once a grant is finalized, none.
 */
const grantText = remembered((grant: Grant): string => {
  const { id: _id, requested: _requested, createdAt: _createdAt, dueAt: _dueAt, ...rest } = grant
  const { retainUntil: _retainUntil, client, consent, issuedAt, finalized, ...kept } = rest
  const { continuation, interaction, tokens = [], derivation, expiresAt, ...others } = kept
  const isFinal = finalized !== undefined
  const text = {
    ...others,
    kid: client.kid,
    consent: consent?.resourceOwner,
    isIssued: issuedAt !== undefined,
    reason: finalized?.reason,
    ref: interaction?.refHash,
    tokens: tokens.map(({ issuedAt: _issuedAt, expiresAt, revokedAt, ...token }) => ({
      ...token,
      isRevoked: revokedAt !== undefined,
      ...(isFinal ? {} : { expiresAt: clamped(expiresAt) }),
    })),
    derivation,
    ...(!isFinal && {
      isNow: !isOver(grantTime(grant, over)),
      acceptedAt: clamped(continuation.acceptedAt),
      interaction: end(interaction?.expiresAt),
      expiresAt: end(expiresAt),
    }),
  }
  return JSON.stringify(text, (name, value) => (name === 'until' ? end(value) : value))
})

const recordText = (record: Stored) =>
  record.id === 'grant' ? grantText(record as Grant) : `${record.id} ${record.commandId}`

const factsText = remembered((facts: GrantFacts) =>
  JSON.stringify(facts, (name, value) => (name === 'expiresAt' ? end(value) : value)),
)

const operationText = remembered(({ now: at, command, presented, nonce }: GrantOp) =>
  JSON.stringify([at - now, command, presented, nonce?.id]),
)

interface Deps {
  readonly setting: GrantSetting
  readonly decisions: GrantDecisions
}

function nameOf({ kind, replays, windows, amends, keys, labels }: GrantSetting): string {
  const parts = [
    kind,
    ...(labels === undefined ? [] : [`${labels.length} tokens`]),
    ...(replays === undefined ? [] : [`requests repeated by ${replays}`]),
    ...(windows === undefined ? [] : ['with windows that end']),
    ...(amends ? ['amended by its owner'] : []),
    ...(keys ? ['signed with two keys'] : []),
  ]
  return `grant (${parts.join(', ')})`
}

/** The key that signed the request for the grant, and another one that the client publishes. */
const twoKeys: readonly GrantKey[] = [
  { kid: 'key-of-the-shop', x: 'shop', thumbprint: 'thumbprint-of-the-shop' },
  { kid: 'second-key', x: 'second', thumbprint: 'thumbprint-of-the-second-key' },
]

/** The operation signed with each of the two keys. */
function withEachKey(op: GrantOp): GrantOp[] {
  return twoKeys.map((key) => {
    const command = { ...op.command, key } as GrantCommand
    return { ...op, command, label: `${op.label}, with ${key.kid}` }
  })
}

function newWorld({ kind, windows, labels = [] }: GrantSetting): GrantWorld {
  const start = new Date(now).toISOString()
  const limits = { ...outgoing.limits, interval: `R${windows}/${start}/PT1S` }
  const item = windows === undefined ? outgoing : { ...outgoing, limits }
  const items = labels.map(() => item)
  const request = requestOf(kind, {
    id: 'grant',
    access: labels.length === 0 ? [item] : labelled(items, labels),
    continuation: { path: 'path-of-continuation', tokenHash: 'k' },
    tokens: newTokens(0, labels),
  })
  const created = requestGrant(request, now, policy)
  if (!created.ok) throw new Error(created.reason)
  const grant = deepFreeze(created.record)
  const tokens = (grant.tokens ?? []).map(({ label, hash, manage, expiresAt }) => ({
    ...(label === undefined ? {} : { label }),
    live: { hash, manage, expiresAt },
  }))
  const facts = { over: false, tokens }
  return { records: { grant }, processes: [], facts, serial: 1 }
}

/** The tokens of request number n. A token of a set has its label after the number. */
function newTokens(n: number, labels: readonly string[]) {
  if (labels.length === 0) return [{ hash: `t:${n}`, manage: `m:${n}` }]
  return labels.map((label) => ({ label, hash: `t:${n}:${label}`, manage: `m:${n}:${label}` }))
}

const grantOf = ({ records }: GrantWorld) => records['grant'] as Grant

function starts({ setting }: Deps, world: GrantWorld): GrantOp[] {
  const { serial: n, facts } = world
  const id = `c:${n}`
  const host = (label: string, command: GrantCommand): GrantOp => ({ id, label, now, command })
  const ops: GrantOp[] = [
    ...clientStarts(setting, world),
    host('the owner revokes', { type: 'revoke', commandId: id }),
    host('the client cancels', { type: 'cancel', commandId: id }),
    ...(setting.amends ? amendments(world) : []).map(([label, changes]) =>
      host(label, { type: 'amend', commandId: id, ...changes }),
    ),
  ]
  if (setting.kind !== 'at once') {
    const reference = { refHash: `r:${n}`, refSalt: `rs:${n}` }
    const consent = { resourceOwner: 'alice', walletAddresses: [alice], ...reference }
    ops.push(
      host('the owner approves', { type: 'approve', commandId: id, ...consent }),
      host('the owner denies', { type: 'deny', commandId: id, ...reference }),
    )
  }
  if (facts.captured === undefined) return ops
  const { command, label, ...rest } = facts.captured
  const again = { ...command, commandId: id } as GrantCommand
  return [...ops, { ...rest, id, now, command: again, label: `${label}, as recorded` }]
}

/** What an owner can amend: the limit of the first item, the other items, and a pause. */
function amendments(
  world: GrantWorld,
): (readonly [string, Omit<AmendGrant, 'type' | 'commandId'>])[] {
  const { granted = [], conditions } = grantOf(world)
  const [first, ...others] = granted
  if (first === undefined) return [['the owner amends', {}]]
  const limits = { ...first.limits, debitAmount: { value: '1', assetCode: 'USD', assetScale: 2 } }
  const pausedUntil = conditions?.pausedUntil === undefined ? now + tick : null
  return [
    ['the owner lowers a limit', { access: [{ ...first, limits }, ...others] }],
    ['the owner removes the other items', { access: [first] }],
    ['the owner pauses or resumes', { conditions: { pausedUntil } }],
  ]
}

/** Each request that a client can make with what it may have, whether that is valid or not. */
function clientStarts(setting: GrantSetting, world: GrantWorld): GrantOp[] {
  const { serial: n, facts } = world
  const id = `c:${n}`
  const { interaction } = grantOf(world)
  const refs = interaction?.refHash === undefined ? [] : [interaction.refHash]
  const signed = (
    label: string,
    presented: string,
    command: object,
    next: (salt: string) => object,
  ): GrantOp => {
    const of = setting.replays ?? 'signature'
    const salt = `s:${n}(${presented})`
    const sent = { ...command, ...next(salt), commandId: id } as GrantCommand
    return { id, label, now, command: sent, presented, nonce: { id: `g:${n}`, of } }
  }
  const all = (salt: string) => ({ salt, nextTokens: newTokens(n, setting.labels ?? []) })
  const continued = [
    ...(setting.kind === 'at once'
      ? []
      : [signed('the client polls', 'k', { type: 'continue' }, all)]),
    ...refs.map((refHash) =>
      signed(
        'the client continues with the reference',
        `k ${refHash}`,
        { type: 'continue', refHash },
        all,
      ),
    ),
  ]
  const managed = facts.tokens.flatMap(({ label, live, replaced }) => {
    const one = (salt: string) => {
      const { hash = '', manage = '' } = newTokens(n, label === undefined ? [] : [label])[0] ?? {}
      return { nextToken: { hash, manage, salt } satisfies NextToken }
    }
    return [live, replaced].flatMap((token) => {
      if (token === undefined) return []
      const presented: TokenAt = { hash: token.hash, manage: token.manage }
      const what = `the ${token === live ? 'live' : 'replaced'} token ${label ?? ''}`.trim()
      const command = { type: 'revoke-token' as const, commandId: id, presented }
      return [
        signed(`the client rotates ${what}`, presented.hash, { type: 'rotate', presented }, one),
        { id, label: `the client revokes ${what}`, now, command },
      ]
    })
  })
  const ops = [...continued, ...managed]
  if (!setting.keys) return ops
  return ops.flatMap((op) => (op.nonce === undefined ? [op] : withEachKey(op)))
}

/**
 * The loads of a signed write: a retry first looks whether it, or another request, has consumed its nonce, and a
 * refusal looks whether its signature was used before.
 */
function nextLoad({ nonce }: GrantOp, seen: Process<GrantOp>['seen'], again: boolean) {
  const key =
    again && nonce !== undefined ? [nonce.id, 'grant'][seen.length] : ['grant'][seen.length]
  return key
}

const repeated: Attempt = {
  changes: [],
  result: refused('repeated', 'used before'),
}

function decide(decisions: GrantDecisions, op: GrantOp, seen: Process<GrantOp>['seen']): Attempt {
  const { nonce, command, id } = op
  const [used, reloaded] = seen.length === 2 ? seen : [undefined, seen[0]]
  if (used !== undefined && used.commandId !== id) return repeated
  const grant = reloaded as Grant
  const decision = decisions.decideGrant(grant, command, op.now, policy)
  const result = { ...decision, presented: op.presented }
  const consumes =
    nonce !== undefined && used === undefined && decisions.isRecorded(nonce.of, decision.ok)
  const record: Stored | undefined = consumes
    ? { id: nonce.id, version: 1, commandId: id }
    : undefined
  const consumed: Change[] = record === undefined ? [] : [{ key: record.id, next: record }]
  if (decision.outcome !== 'changed') return { changes: consumed, result }
  const changed = { key: 'grant', next: decision.record }
  return { changes: [changed, ...consumed], result }
}

const ends: readonly string[] = [
  ...['denied', 'cancelled', 'revoked'],
  ...['interaction-expired', 'expired'],
]

function committed(
  { setting }: Deps,
  before: GrantWorld,
  after: GrantWorld,
  op: GrantOp,
  attempt: Attempt,
): Noted<GrantFacts> {
  const facts = recorded(setting, op, after.facts)
  const change = attempt.changes.find(({ key }) => key === 'grant')
  if (change === undefined) return { facts }
  const [was, is] = [grantOf(before), change.next as Grant]
  return { facts: factsAfter(facts, was, is), broken: brokenByCommit(facts, was, is, op) }
}

/** Somebody records the first signed request that takes effect. */
function recorded({ replays }: GrantSetting, op: GrantOp, facts: GrantFacts): GrantFacts {
  if (replays === undefined || facts.captured !== undefined || op.nonce === undefined) return facts
  const { command, presented = '', nonce, label } = op
  return { ...facts, captured: { command, presented, nonce, label } }
}

function factsAfter(facts: GrantFacts, was: Grant, is: Grant): GrantFacts {
  const tokens = (is.tokens ?? []).map((token): TokenFacts => {
    const { label, hash, manage, issuedAt, revokedAt } = token
    const before = facts.tokens.find((each) => each.label === label)
    const isRevoked = revokedAt === undefined ? {} : { isRevoked: true }
    if (before?.live.hash === hash) return { ...before, ...isRevoked }
    const live = { hash, manage, expiresAt: issuedAt + policy.accessTokenLifetimeMs }
    const replaced = before && { hash: before.live.hash, manage: before.live.manage }
    return { ...(label === undefined ? {} : { label }), live, ...(replaced && { replaced }) }
  })
  let next: GrantFacts = { ...facts, tokens }
  const ref = was.interaction?.refHash
  const isUsed = newTokensOf(was, is).length > 0
  if (ref !== undefined && isUsed) next = { ...next, spentRef: ref }
  return is.finalized === undefined ? next : { ...next, over: true }
}

function brokenByCommit(
  facts: GrantFacts,
  was: Grant,
  is: Grant,
  { command, now: at }: GrantOp,
): string | undefined {
  if (facts.over) return 'a grant that is over never changes'
  if (ends.includes(grantStatus(was, at))) return 'a grant that has expired never changes'
  if (!isAttenuated(is.requested, is.granted ?? [])) return 'no more is granted than was requested'
  if (was.granted !== undefined && !isAttenuated(was.granted, is.granted ?? [])) {
    return 'a grant never becomes wider'
  }
  if (!isSignedBy(is, was, command)) {
    return 'a grant records a key only with a request that this key has signed'
  }
  const ids = was.granted?.map(({ itemId }) => itemId)
  if (is.granted?.some(({ itemId }) => ids?.includes(itemId) === false)) {
    return 'an item keeps the id of its budget'
  }
  const [first, ...others] = newTokensOf(was, is)
  if (first === undefined) {
    // A poll that began before the last one is accepted, as on a server whose clock is behind.
    const { acceptedAt } = was.continuation
    const isEarly = at >= acceptedAt && at < acceptedAt + policy.waitMs
    return command.type === 'continue' && isEarly ? 'a client waits between two polls' : undefined
  }
  switch (command.type) {
    case 'continue': {
      if (was.tokens !== undefined) return 'a grant issues its first tokens once'
      if (was.consent === undefined) return 'a token is issued after consent only'
      const wanted = was.interaction?.finish === undefined ? undefined : was.interaction.refHash
      const isSpent = command.refHash !== undefined && command.refHash === facts.spentRef
      return command.refHash !== wanted || isSpent
        ? 'only the current reference yields a token, and once'
        : undefined
    }
    case 'rotate': {
      const { live, isRevoked } = facts.tokens.find(({ label }) => label === first.label) ?? {}
      const isLive =
        others.length === 0 &&
        isRevoked !== true &&
        command.presented.hash === live?.hash &&
        command.presented.manage === live.manage
      return isLive ? undefined : 'only the live token is rotated'
    }
    default:
      return 'a token changes by continuation and rotation only'
  }
}

/** Whether the grant has the key that signed the command, or else the one that it had. */
function isSignedBy(is: Grant, was: Grant, command: GrantCommand): boolean {
  const signed = command.type === 'continue' || command.type === 'rotate'
  const { kid, thumbprint } = (signed ? command.key : undefined) ?? was.client
  return is.client.kid === kid && is.client.thumbprint === thumbprint
}

/** The token that a client is told, derived from what it presented, the stored salt and the label. */
function toldToken(
  label: string | undefined,
  derivation: Derivation | undefined,
  presented: string,
): string {
  const [, number, from] = /^s:(\d+)\((.*)\)$/.exec(derivation?.salt ?? '') ?? []
  if (from !== presented) return 'no token'
  return label === undefined ? `t:${number}` : `t:${number}:${label}`
}

/** Whether the answer to a continuation or rotation has the tokens that the grant has. */
function isToldRight({ tokens = [], derivation }: Grant, { command, presented = '' }: GrantOp) {
  if (command.type === 'rotate') {
    const { manage } = command.presented
    const token = tokens.find((each) => each.derivation?.manage === manage)
    return token !== undefined && toldToken(token.label, token.derivation, presented) === token.hash
  }
  return tokens.every(({ label, hash }) => toldToken(label, derivation, presented) === hash)
}

interface Told {
  readonly ok: boolean
  readonly outcome: string
  readonly record: Grant
}

function answered(world: GrantWorld, op: GrantOp, { result }: Attempt): Noted<GrantFacts> {
  const { facts } = world
  const { ok, record } = result as Told
  const { type } = op.command
  if (!ok) return { facts }
  if (type === 'revoke' || type === 'revoke-token' || type === 'cancel') {
    const status = grantStatus(grantOf(world), op.now)
    const isEnded = ends.includes(status) || (type === 'revoke-token' && isRevoked(world, op))
    const broken = isEnded ? undefined : 'a revocation that is answered ends the grant or its token'
    return { facts, broken }
  }
  if (op.presented === undefined) return { facts }
  if (!isToldRight(record, op)) {
    return { facts, broken: 'a client is told the tokens that the grant has' }
  }
  if (op.nonce === undefined || op.nonce.id !== facts.captured?.nonce?.id) return { facts }
  return facts.succeeded === undefined || facts.succeeded === op.id
    ? { facts: { ...facts, succeeded: op.id } }
    : { facts, broken: 'a recorded request succeeds once' }
}

function isRevoked({ facts }: GrantWorld, { command }: GrantOp): boolean {
  if (command.type !== 'revoke-token') return false
  const { hash } = command.presented
  return facts.tokens.some(({ live, isRevoked }) => live.hash === hash && isRevoked === true)
}

function broken(deps: Deps, world: GrantWorld): string | undefined {
  const { decisions } = deps
  const { facts } = world
  const grant = grantOf(world)
  for (const hash of tokensIn(world)) {
    const own = facts.tokens.find(({ live }) => live.hash === hash)
    const lives =
      !facts.over &&
      own !== undefined &&
      own.isRevoked !== true &&
      now < endOfToken(grant, own.live.expiresAt)
    const isActive = decisions.isActive(grant, hash, now)
    if (isActive && !lives) return 'only the live token is active, until its end'
    if (!isActive && lives) return 'the live token is active until its end'
  }
  return brokenRetry(deps, grant)
}

const endOfToken = (grant: Grant, expiresAt: Instant) =>
  Math.min(expiresAt, grant.expiresAt ?? Number.MAX_VALUE)

/** Every token that was issued or may be issued, as far as anybody can still present it. */
function tokensIn({ records, processes, facts }: GrantWorld): Set<string> {
  const { tokens = [], derivation, interaction } = records['grant'] as Grant
  const known = [
    ...[derivation?.from, interaction?.refHash, 'k'],
    ...tokens.flatMap((token) => [token.hash, token.derivation?.from]),
    ...facts.tokens.flatMap(({ live, replaced }) => [live.hash, replaced?.hash]),
    ...processes.flatMap(({ op: { command } }) =>
      command.type === 'rotate' ? command.nextToken.hash : [],
    ),
    ...processes.flatMap(({ op: { command } }) =>
      command.type === 'continue' ? command.nextTokens.map(({ hash }) => hash) : [],
    ),
  ]
  return new Set(known.filter((hash) => hash !== undefined))
}

/** Within the retry window each request whose response was lost yields the same tokens again. */
function brokenRetry({ setting, decisions }: Deps, grant: Grant): string | undefined {
  const { derivation, tokens = [] } = grant
  if (grantStatus(grant, now) !== 'approved') return undefined
  const rest = { id: 'c:x', label: 'a repeat', now }
  const again = tokens
    .filter(({ revokedAt }) => revokedAt === undefined)
    .flatMap(({ derivation }) => derivation ?? [])
    .filter(({ until }) => now < until)
    .map(({ from, manage }): GrantOp => {
      const nextToken = { hash: 't:x', manage: 'm:x', salt: 's:x' }
      const presented = { hash: from, manage }
      const command = { type: 'rotate' as const, commandId: 'c:x', presented, nextToken }
      return { ...rest, command, presented: from }
    })
  if (derivation !== undefined && now < derivation.until) {
    const { from } = derivation
    const refHash = from === 'k' ? {} : { refHash: from }
    const next = { salt: 's:x', nextTokens: [] }
    const command = { type: 'continue' as const, commandId: 'c:x', ...refHash, ...next }
    again.push({ ...rest, command, presented: from === 'k' ? from : `k ${from}` })
  }
  const isRepeated = (op: GrantOp) =>
    decisions.decideGrant(grant, op.command, now, policy).outcome === 'unchanged' &&
    isToldRight(grant, op)
  const signed = setting.keys ? again.flatMap(withEachKey) : again
  return signed.every(isRepeated)
    ? undefined
    : 'a lost response can be repeated in the retry window'
}

/** One tick passes, unless an operation that began before the last tick is still running. */
function passed(world: GrantWorld) {
  if (world.processes.some(({ op }) => op.now < now)) return undefined
  const tokens = world.facts.tokens.map(({ live, ...rest }) => ({
    ...rest,
    live: { ...live, expiresAt: older(live.expiresAt) },
  }))
  const facts = { ...world.facts, tokens }
  const processes = world.processes.map((process) => ({
    ...process,
    op: { ...process.op, now: process.op.now - tick, command: aged(process.op.command) },
    seen: process.seen.map((record) => record && aged(record)),
    ...(process.attempt && { attempt: agedAttempt(process.attempt) }),
    ...(process.late && { late: agedAttempt(process.late) }),
  }))
  const records = { ...world.records, grant: aged(grantOf(world)) }
  return { label: 'time passes', world: { ...world, records, facts, processes } }
}

/** What ended this long ago has ended for every running operation, with every period added. */
const longAgo = now - 4 * tick

function older(instant: Instant): Instant {
  return Math.max(instant - tick, longAgo)
}

/** An interval whose windows began one tick earlier. */
function olderInterval(text: string): string {
  const [count, start = '', period] = text.split('/')
  return [count, new Date(older(Date.parse(start))).toISOString(), period].join('/')
}

const agedValues = new WeakMap<object, object>()

/** A record or a command one tick later: all its instants are further in the past. */
function aged<Value extends object>(value: Value): Value {
  const known = agedValues.get(value)
  if (known !== undefined) return known as Value
  const next = JSON.parse(JSON.stringify(value), (name, member) => {
    if (name === 'interval') return olderInterval(member)
    const isInstant = typeof member === 'number' && /(?:At|Until|until|at)$/.test(name)
    return isInstant ? older(member) : member
  })
  agedValues.set(value, deepFreeze(next))
  return next
}

function agedAttempt(attempt: Attempt): Attempt {
  const changes = attempt.changes.map(({ key, next }) => ({ key, next: aged(next) }))
  return { ...attempt, changes }
}
