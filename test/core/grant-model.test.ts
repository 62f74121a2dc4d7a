import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccessItem } from '../../src/core/access.js'
import type { Grant } from '../../src/core/grant/record.js'
import { requestGrant } from '../../src/core/grant/request.js'
import { isActive } from '../../src/core/grant/rotation.js'
import { decideGrant, type GrantCommand, type GrantRefusals } from '../../src/core/grant.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
  alice,
  grantPolicy,
  hashOf,
  type Kind,
  managed,
  nextTokensOf,
  outgoing,
  requestOf,
} from '../support/grants.js'
import { runs } from '../support/runs.js'

const { waitMs, retryMs, interactionLifetimeMs, accessTokenLifetimeMs, unusedLifetimeMs } =
  grantPolicy

/** The state of a grant as an observer would record it. */
interface Model {
  readonly kind: Kind
  now: Instant
  readonly interactionEndsAt: Instant
  waitEndsAt: Instant
  decision: { readonly commandId: string; readonly share: Share } | 'denied' | undefined
  /** Why no command can succeed any more, apart from expiry. */
  end: 'cancelled' | 'revoked' | 'token given up' | undefined
  /** References are numbered in the order of issue; only the latest is valid. */
  refs: number
  /** Tokens are numbered from 1 in the order of issue; only the latest is active, until `tokenEndsAt`. */
  tokens: number
  tokenEndsAt: Instant
  /** The call that yielded the last token; the client may repeat it if the response was lost. */
  lastIssue: { readonly call: string; readonly retryEndsAt: Instant } | undefined
}

/** The grant under test, and the values behind the numbers in the model. */
interface Real {
  grant: Grant
  commands: number
  readonly refHashes: string[]
  readonly tokens: { readonly hash: string; readonly manage: string }[]
}

type Share = 'all' | 'half'

const half: AccessItem = {
  ...outgoing,
  limits: { debitAmount: { value: '1250', assetCode: 'USD', assetScale: 2 } },
}

/** Counts each outcome, to verify that the search reaches all of them. */
const met = new Map<string, number>()

/** Sends a command to the grant and returns its outcome as one word. */
function send(model: Model, real: Real, command: (commandId: string) => GrantCommand): string {
  const sent = deepFreeze(command(`command-${++real.commands}`))
  const decision = decideGrant<keyof GrantRefusals>(real.grant, sent, model.now, grantPolicy)
  if (decision.outcome === 'changed') {
    expect(decision.record.version).toBe(real.grant.version + 1)
    real.grant = deepFreeze(decision.record)
  } else if (decision.outcome === 'unchanged') {
    expect(decision.record).toBe(real.grant)
  }
  const outcome = decision.outcome === 'refused' ? decision.refusal : decision.outcome
  const name = `${sent.type}: ${outcome}`
  met.set(name, (met.get(name) ?? 0) + 1)
  return outcome
}

function nextToken(real: Real) {
  const n = real.commands + 1
  return { ...managed(n), salt: `salt-${n}` }
}

/** The interaction expired without a decision. */
function timedOut(model: Model): boolean {
  return (
    model.decision === undefined && model.kind !== 'at once' && model.now >= model.interactionEndsAt
  )
}

/** The grant had no consent and expired unused. */
function unused(model: Model): boolean {
  return model.kind === 'at once' && model.now >= model.tokenEndsAt + unusedLifetimeMs
}

function isOpen(model: Model): boolean {
  return model.end === undefined && model.decision !== 'denied'
}

/** Verifies everything that is observable about the grant, after each command. */
function check(model: Model, real: Real): void {
  const lives =
    isOpen(model) && model.tokens > 0 && model.now < model.tokenEndsAt ? [model.tokens] : []
  const active = real.tokens
    .map(({ hash }, index) => ({ hash, number: index + 1 }))
    .filter(({ hash }) => isActive(real.grant, hash, model.now, grantPolicy))
    .map(({ number }) => number)
  expect(active).toEqual(lives)
  expect(real.tokens).toHaveLength(model.tokens)
  const { resourceOwner } = real.grant.consent ?? {}
  expect(resourceOwner).toBe(
    typeof model.decision === 'object' ? model.decision.commandId : undefined,
  )
  const share = real.grant.granted?.[0]?.limits?.debitAmount?.value
  const shares = { all: '2500', half: '1250' }
  const granted = typeof model.decision === 'object' ? model.decision.share : 'all'
  const nothing =
    model.decision === undefined ? model.kind !== 'at once' : model.decision === 'denied'
  expect(share).toBe(nothing ? undefined : shares[granted])
}

type Command = fc.Command<Model, Real>

class LetTimePass implements Command {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  check() {
    return true
  }
  run(model: Model, real: Real) {
    model.now += this.ms
    check(model, real)
  }
  toString() {
    return `let ${this.ms} ms pass`
  }
}

type End = 'wait' | 'interaction' | 'retry' | 'token' | 'life'

class WaitFor implements Command {
  readonly end: End
  readonly offsetMs: number
  constructor(end: End, offsetMs: number) {
    this.end = end
    this.offsetMs = offsetMs
  }
  private instant(model: Model): Instant {
    const ends: Record<End, Instant> = {
      wait: model.waitEndsAt,
      interaction: model.interactionEndsAt,
      retry: model.lastIssue?.retryEndsAt ?? 0,
      token: model.tokenEndsAt,
      life: model.tokenEndsAt + unusedLifetimeMs,
    }
    return ends[this.end] + this.offsetMs
  }
  check(model: Readonly<Model>) {
    return this.instant(model) > model.now
  }
  run(model: Model, real: Real) {
    model.now = this.instant(model)
    check(model, real)
  }
  toString() {
    const when = this.offsetMs < 0 ? 'just before' : this.offsetMs > 0 ? 'just after' : 'at'
    return `come back ${when} the end of the ${this.end}`
  }
}

class Approve implements Command {
  readonly owner: string
  readonly share: Share
  constructor(owner: string, share: Share) {
    this.owner = owner
    this.share = share
  }
  check() {
    return true
  }
  /** The order of these refusals is not specified; any applicable one is correct. */
  private refusals(model: Model): string[] {
    const { decision } = model
    const other =
      decision === 'denied' ||
      (decision !== undefined &&
        (decision.commandId !== this.owner || decision.share !== this.share))
    return [
      ...(model.kind === 'at once' ? ['interaction_unknown'] : []),
      ...(other ? ['decided_otherwise'] : []),
      ...(model.end !== undefined || model.tokens > 0 ? ['interaction_over'] : []),
      ...(model.now >= model.interactionEndsAt ? ['interaction_expired'] : []),
    ]
  }
  run(model: Model, real: Real) {
    const refHash = hashOf(`ref of command ${real.commands + 1}`)
    const outcome = send(model, real, (commandId) => ({
      type: 'approve',
      commandId,
      resourceOwner: this.owner,
      walletAddresses: [alice],
      ...(this.share === 'all' ? {} : { access: [half] }),
      refHash,
    }))
    const refusals = this.refusals(model)
    const again = model.decision !== undefined
    if (refusals.length > 0) expect(refusals).toContain(outcome)
    else if (again && model.kind === 'poll') expect(outcome).toBe('unchanged')
    else {
      expect(outcome).toBe('changed')
      model.decision = { commandId: this.owner, share: this.share }
      if (model.kind === 'redirect') {
        model.refs++
        real.refHashes.push(refHash)
      }
    }
    check(model, real)
  }
  toString() {
    return `${this.owner} approves ${this.share}`
  }
}

class Deny implements Command {
  check() {
    return true
  }
  private refusals(model: Model): string[] {
    if (model.decision === 'denied') return []
    return [
      ...(model.kind === 'at once' ? ['interaction_unknown'] : []),
      ...(model.decision !== undefined ? ['decided_otherwise'] : []),
      ...(model.end !== undefined || model.tokens > 0 ? ['interaction_over'] : []),
      ...(model.now >= model.interactionEndsAt ? ['interaction_expired'] : []),
    ]
  }
  run(model: Model, real: Real) {
    const outcome = send(model, real, (commandId) => ({ type: 'deny', commandId }))
    const refusals = this.refusals(model)
    if (refusals.length > 0) expect(refusals).toContain(outcome)
    else expect(outcome).toBe(model.decision === 'denied' ? 'unchanged' : 'changed')
    if (outcome === 'changed') model.decision = 'denied'
    check(model, real)
  }
  toString() {
    return 'the owner denies'
  }
}

/** The expected outcome of a client call that would yield a token. */
function continued(model: Model, call: string, isRight: boolean): string {
  const undecided = model.decision === undefined && model.kind !== 'at once'
  if (undecided && model.end === undefined && model.now < model.waitEndsAt) return 'too_fast'
  if (call === 'poll' && model.kind === 'redirect') return 'poll_with_finish'
  if (model.end !== undefined || unused(model)) return 'grant_gone'
  if (model.decision === 'denied') return 'grant_denied'
  if (timedOut(model)) return 'interaction_timed_out'
  if (model.tokens > 0) {
    const { lastIssue } = model
    if (lastIssue?.call === call && model.now < lastIssue.retryEndsAt) return 'unchanged'
    return call === 'poll' ? 'already_issued' : 'interact_ref_used'
  }
  return isRight ? 'changed' : 'interact_ref_wrong'
}

function tokenIssued(model: Model, real: Real, call: string): void {
  const [token] = real.grant.tokens ?? []
  if (token === undefined) throw new Error('there is no token')
  real.tokens.push({ hash: token.hash, manage: token.manage })
  model.tokens++
  model.tokenEndsAt = model.now + accessTokenLifetimeMs
  const repeatableMs = call.startsWith('token ') ? accessTokenLifetimeMs : retryMs
  model.lastIssue = { call, retryEndsAt: model.now + repeatableMs }
}

class Poll implements Command {
  check() {
    return true
  }
  run(model: Model, real: Real) {
    const expected = continued(model, 'poll', true)
    const outcome = send(model, real, (commandId) => ({
      type: 'continue',
      commandId,
      ...nextTokensOf(real.commands + 1),
    }))
    expect(outcome).toBe(expected)
    if (outcome === 'changed') {
      if (model.decision === undefined) model.waitEndsAt = model.now + waitMs
      else tokenIssued(model, real, 'poll')
    }
    check(model, real)
  }
  toString() {
    return 'the client polls'
  }
}

/** The latest reference, the one before it, or one that was never issued. */
class Present implements Command {
  readonly ref: 'last' | 'last but one' | 'made-up'
  constructor(ref: 'last' | 'last but one' | 'made-up') {
    this.ref = ref
  }
  private number(model: Model): number {
    return this.ref === 'made-up' ? 0 : this.ref === 'last' ? model.refs : model.refs - 1
  }
  check(model: Readonly<Model>) {
    return this.ref === 'made-up' || this.number(model) > 0
  }
  run(model: Model, real: Real) {
    const n = this.number(model)
    const refHash = real.refHashes[n - 1] ?? hashOf('a reference of another grant')
    const expected = continued(model, `ref ${n}`, n > 0 && n === model.refs)
    const outcome = send(model, real, (commandId) => ({
      type: 'continue',
      commandId,
      refHash,
      ...nextTokensOf(real.commands + 1),
    }))
    expect(outcome).toBe(expected)
    if (outcome === 'changed') tokenIssued(model, real, `ref ${n}`)
    check(model, real)
  }
  toString() {
    return `the client comes with the ${this.ref} reference`
  }
}

type Which = 'last' | 'last but one' | 'last but two' | 'made-up' | 'last at a foreign URI'

function generation(which: Which): number {
  return ['last', 'last but one', 'last but two'].indexOf(which)
}

function hasToken(model: Model, which: Which): boolean {
  if (which === 'made-up') return true
  return model.tokens > (which === 'last at a foreign URI' ? 0 : generation(which))
}

function presentedToken(model: Model, real: Real, which: Which) {
  const made = { hash: hashOf('a token of another grant'), manage: 'manage-of-another-grant' }
  const last = real.tokens[model.tokens - 1] ?? made
  if (which === 'made-up') return { ...made, manage: last.manage }
  if (which === 'last at a foreign URI') return { ...made, hash: last.hash }
  return real.tokens[model.tokens - 1 - generation(which)] ?? made
}

class Rotate implements Command {
  readonly which: Which
  constructor(which: Which) {
    this.which = which
  }
  check(model: Readonly<Model>) {
    return hasToken(model, this.which)
  }
  private expected(model: Model): string {
    const { lastIssue, tokens, now } = model
    const isRetry =
      this.which === 'last but one' &&
      lastIssue?.call === `token ${tokens - 1}` &&
      now < lastIssue.retryEndsAt
    if (this.which !== 'last' && !isRetry) return 'token_not_managed_here'
    if (model.end === 'token given up') return 'token_revoked'
    if (model.end !== undefined || unused(model)) return 'grant_over'
    return isRetry ? 'unchanged' : 'changed'
  }
  run(model: Model, real: Real) {
    const presented = presentedToken(model, real, this.which)
    const expected = this.expected(model)
    const outcome = send(model, real, (commandId) => ({
      type: 'rotate',
      commandId,
      presented,
      nextToken: nextToken(real),
    }))
    expect(outcome).toBe(expected)
    if (outcome === 'changed') tokenIssued(model, real, `token ${model.tokens}`)
    check(model, real)
  }
  toString() {
    return `the client rotates the ${this.which} token`
  }
}

class GiveUp implements Command {
  readonly which: Which
  constructor(which: Which) {
    this.which = which
  }
  check(model: Readonly<Model>) {
    return hasToken(model, this.which) && !unused(model)
  }
  run(model: Model, real: Real) {
    const presented = presentedToken(model, real, this.which)
    const expected =
      this.which !== 'last' ? 'token_not_managed_here' : isOpen(model) ? 'changed' : 'unchanged'
    const outcome = send(model, real, (commandId) => ({
      type: 'revoke-token',
      commandId,
      presented,
    }))
    expect(outcome).toBe(expected)
    if (outcome === 'changed') model.end = 'token given up'
    check(model, real)
  }
  toString() {
    return `the client gives the ${this.which} token up`
  }
}

/** The terminal law covers what a command does to a grant that has expired. */
class Cancel implements Command {
  check(model: Readonly<Model>) {
    return !timedOut(model) && !unused(model)
  }
  run(model: Model, real: Real) {
    const expected = isOpen(model) ? 'changed' : 'grant_finalized'
    expect(send(model, real, (commandId) => ({ type: 'cancel', commandId }))).toBe(expected)
    if (expected === 'changed') model.end = 'cancelled'
    check(model, real)
  }
  toString() {
    return 'the client cancels'
  }
}

class Revoke implements Command {
  check(model: Readonly<Model>) {
    return !timedOut(model) && !unused(model)
  }
  run(model: Model, real: Real) {
    const expected = isOpen(model) ? 'changed' : 'unchanged'
    expect(send(model, real, (commandId) => ({ type: 'revoke', commandId }))).toBe(expected)
    if (expected === 'changed') model.end = 'revoked'
    check(model, real)
  }
  toString() {
    return 'the owner revokes'
  }
}

const which = fc.constantFrom<Which>(
  'last',
  'last',
  'last',
  'last but one',
  'last but one',
  'last but two',
  'made-up',
  'last at a foreign URI',
)

function times(weight: number, arbitrary: fc.Arbitrary<Command>): fc.Arbitrary<Command>[] {
  return Array.from({ length: weight }, () => arbitrary)
}

const commands = fc.commands<Model, Real>(
  [
    ...times(
      3,
      fc.constantFrom(0, 1, 1_000, waitMs, retryMs, 200_000).map((ms) => new LetTimePass(ms)),
    ),
    ...times(
      2,
      fc
        .tuple(
          fc.constantFrom<End>('wait', 'wait', 'interaction', 'retry', 'retry', 'token', 'life'),
          fc.constantFrom(-1, 0, 1),
        )
        .map(([end, offsetMs]) => new WaitFor(end, offsetMs)),
    ),
    ...times(
      3,
      fc
        .tuple(
          fc.constantFrom('alice', 'alice', 'alice', 'mallory'),
          fc.constantFrom<Share>('all', 'all', 'half'),
        )
        .map(([owner, share]) => new Approve(owner, share)),
    ),
    ...times(2, fc.constant(new Poll())),
    ...times(
      3,
      fc
        .constantFrom('last' as const, 'last' as const, 'last but one' as const, 'made-up' as const)
        .map((ref) => new Present(ref)),
    ),
    ...times(
      4,
      which.map((which) => new Rotate(which)),
    ),
    // Commands that end a grant are rare, so that the search covers its whole lifetime.
    fc
      .tuple(fc.nat({ max: 3 }), which)
      .map(
        ([dice, which]) =>
          [new Deny(), new Cancel(), new Revoke(), new GiveUp(which)][dice] ?? new Deny(),
      ),
  ],
  { maxCommands: 40, size: '+1' },
)

function newGrant(kind: Kind): { model: Model; real: Real } {
  const now = startOfTests
  const decision = requestGrant(requestOf(kind), now, grantPolicy)
  if (decision.outcome === 'refused') throw new Error(decision.reason)
  const issued = kind === 'at once'
  return {
    model: {
      kind,
      now,
      interactionEndsAt: now + interactionLifetimeMs,
      waitEndsAt: now + waitMs,
      decision: undefined,
      end: undefined,
      refs: 0,
      tokens: issued ? 1 : 0,
      tokenEndsAt: issued ? now + accessTokenLifetimeMs : 0,
      lastIssue: undefined,
    },
    real: {
      grant: deepFreeze(decision.record),
      commands: 0,
      refHashes: [],
      tokens: issued ? [managed(0)] : [],
    },
  }
}

function search(kind: Kind, parameters: { readonly numRuns: number; readonly seed?: number }) {
  fc.assert(
    fc.property(commands, (commands) => {
      fc.modelRun(() => newGrant(kind), commands)
    }),
    parameters,
  )
}

describe('a grant behaves as the model predicts', () => {
  test.each<readonly [how: string, kind: Kind, numRuns: number]>([
    ['when consent ends with a redirect', 'redirect', 1500],
    ['when consent is polled for', 'poll', 700],
    ['when it needs no consent', 'at once', 700],
  ])('%s', (_, kind, numRuns) => {
    search(kind, { numRuns: runs(numRuns) })
  })

  test('reaches every outcome many times', () => {
    met.clear()
    for (const kind of ['redirect', 'poll', 'at once'] as const) {
      search(kind, { numRuns: 500, seed: 1 })
    }
    const everywhere = [
      'approve: changed',
      'approve: unchanged',
      'approve: interaction_over',
      'approve: interaction_expired',
      'approve: decided_otherwise',
      'deny: changed',
      'continue: changed',
      'continue: unchanged',
      'continue: too_fast',
      'continue: poll_with_finish',
      'continue: grant_gone',
      'continue: grant_denied',
      'continue: interaction_timed_out',
      'continue: interact_ref_wrong',
      'continue: interact_ref_used',
      'continue: already_issued',
      'rotate: changed',
      'rotate: unchanged',
      'rotate: token_not_managed_here',
      'rotate: token_revoked',
      'rotate: grant_over',
      'revoke-token: changed',
      'revoke-token: token_not_managed_here',
      'cancel: changed',
      'cancel: grant_finalized',
      'revoke: changed',
      'revoke: unchanged',
    ]
    for (const name of everywhere) expect(met.get(name) ?? 0, name).toBeGreaterThanOrEqual(10)
  })
})
