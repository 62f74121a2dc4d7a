import { createHash } from 'node:crypto'
import fc from 'fast-check'
import {
  type AccessAction,
  type AccessItem,
  accessActions,
  type GrantedItem,
  itemsOf,
  type Limits,
  labelsOf,
  publicItem,
  type TokenItem,
} from '../../src/core/access.js'
import type { AmendedItem, AmendGrant, ConditionChanges } from '../../src/core/grant/amendment.js'
import type { ApproveGrant } from '../../src/core/grant/consent.js'
import type {
  FinishMethod,
  Grant,
  GrantClient,
  GrantEvent,
  GrantPolicy,
  StoredReference,
  SubjectId,
} from '../../src/core/grant/record.js'
import { type RequestGrant, requestGrant } from '../../src/core/grant/request.js'
import { derivationsOf } from '../../src/core/grant/version.js'
import {
  decideGrant,
  type GrantCommand,
  type GrantDecision,
  type GrantRefusals,
} from '../../src/core/grant.js'
import type { Instant } from '../../src/core/instant.js'
import type { GrantConditions } from '../../src/core/limits.js'
import { startOfTests } from './clock.js'
import { deepFreeze } from './frozen.js'

export const alice = 'https://wallet.example/alice'
export const bob = 'https://wallet.example/bob'
/** Another account of Alice, in euros. */
export const savings = 'https://wallet.example/savings'

/** The accounts of Alice with their assets. */
export const accounts: NonNullable<ApproveGrant['accounts']> = [
  { url: alice, assetCode: 'USD', assetScale: 2 },
  { url: savings, assetCode: 'EUR', assetScale: 2 },
]

/** Every duration is different, so that a test notices any confusion between them. */
export const grantPolicy: GrantPolicy = {
  waitMs: 5_000,
  retryMs: 60_000,
  interactionLifetimeMs: 300_000,
  accessTokenLifetimeMs: 600_000,
  unusedLifetimeMs: 86_400_000,
  retentionMs: 7 * 86_400_000,
  intervalCounting: 'occurrences',
}

export const shop: GrantClient = {
  walletAddress: 'https://shop.example',
  kid: 'key-of-the-shop',
  x: 'shop',
  thumbprint: 'thumbprint-of-the-shop',
}

export const finish: FinishMethod = {
  uri: 'https://shop.example/back',
  nonce: 'nonce-of-the-shop',
  hashMethod: 'sha-256',
}

export const outgoing: AccessItem = {
  type: 'outgoing-payment',
  actions: ['create', 'read'],
  identifier: alice,
  limits: { debitAmount: { value: '2500', assetCode: 'USD', assetScale: 2 } },
}

export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** The interaction reference of decision number n, as the store has it. */
export function referenceOf(n: number | string): StoredReference {
  return { refHash: hashOf(`ref ${n}`), refSalt: `salt of ref ${n}` }
}

/**
 * How a grant begins: with consent that ends with a redirect, with consent that the client polls
 * for, or without consent.
 */
export type Kind = 'redirect' | 'poll' | 'at once'

export function requestOf(kind: Kind, more: Partial<RequestGrant> = {}): RequestGrant {
  const { access = [outgoing] } = more
  return {
    commandId: 'command-0',
    id: 'namespac-grant',
    client: shop,
    access,
    needsConsent: kind !== 'at once',
    needsFinish: kind === 'redirect',
    ...(kind === 'at once' ? {} : { interact: kind === 'redirect' ? { finish } : {} }),
    interaction: { pathHash: hashOf('interaction'), nonce: 'nonce-of-the-server' },
    continuation: { path: 'path-of-continuation', tokenHash: hashOf('continuation') },
    tokens: nextTokensOf(0, access).nextTokens,
    ...more,
  }
}

/** A token as its client presents it. */
export interface PresentedToken {
  readonly hash: string
  readonly manage: string
}

/** Token number n of a grant, as the client presents it. Number 0 is issued without consent, or never. */
export function managed(n: number, label = ''): PresentedToken {
  return { hash: hashOf(`token ${n}${label}`), manage: `manage-${n}${label}` }
}

/** The tokens of continuation number n, one for each label of the requested access. */
export function nextTokensOf(n: number, access: readonly TokenItem[] = [outgoing]) {
  const nextTokens = labelsOf(access).map((label) => ({
    ...(label === undefined ? {} : { label }),
    ...managed(n, label),
  }))
  return { salt: `salt-${n}`, nextTokens }
}

/** Returns the access as that of tokens with these labels, one after another. */
export function labelled(
  access: readonly AccessItem[],
  labels: readonly string[],
): readonly TokenItem[] {
  return access.map((item, index) => ({ label: labels[index % labels.length] ?? '', ...item }))
}

export interface LifeOptions {
  readonly kind?: Kind
  readonly access?: readonly TokenItem[]
  readonly subject?: SubjectId
  readonly policy?: Partial<GrantPolicy>
}

export interface ApproveOptions {
  readonly owner?: string
  readonly walletAddresses?: readonly string[]
  readonly account?: string
  readonly accounts?: NonNullable<ApproveGrant['accounts']>
  readonly access?: readonly TokenItem[]
  readonly subject?: SubjectId
  readonly conditions?: GrantConditions
  readonly listName?: string
  readonly clientName?: string
}

/** One grant from its request on, with its own clock. Commits each decision. */
export function grantLife({
  kind = 'redirect',
  access = [outgoing],
  subject,
  ...options
}: LifeOptions = {}) {
  const policy: GrantPolicy = { ...grantPolicy, ...options.policy }
  const created = requestGrant(
    requestOf(kind, { access, ...(subject && { subject }) }),
    startOfTests,
    policy,
  )
  if (created.outcome === 'refused') throw new Error(created.reason)
  let grant = deepFreeze(created.record)
  let now = startOfTests
  let commands = 0
  let refs = 0
  let tokens = 0
  const events: GrantEvent[] = [...created.events]

  function decide<Type extends keyof GrantRefusals>(
    command: Extract<GrantCommand, { readonly type: Type }>,
  ): GrantDecision<Type> {
    const decision = decideGrant<Type>(grant, deepFreeze(command), now, policy)
    if (decision.outcome === 'changed') {
      grant = deepFreeze(decision.record)
      events.push(...decision.events)
    }
    return decision
  }

  const commandId = () => `command-${++commands}`

  /** The call consumes the next token, whether or not it is issued. */
  function nextToken() {
    const n = ++tokens
    return { ...managed(n), salt: `salt-${n}` }
  }

  const nextTokens = () => nextTokensOf(++tokens, access)

  return {
    policy,
    events,
    decide,
    grant: () => grant,
    now: () => now,
    /** The hash of the reference of the n-th attempted decision. */
    refHash: (n = refs) => hashOf(`ref ${n}`),
    /** The current token with this label, as its client presents it. */
    token(label?: string) {
      const token = grant.tokens?.find((each) => each.label === label)
      if (token === undefined) throw new Error('no token has been issued')
      return { hash: token.hash, manage: token.manage }
    },
    advance(ms: number) {
      now += ms
    },
    set(instant: Instant) {
      now = instant
    },
    approve({ owner = 'alice', walletAddresses = [alice], ...more }: ApproveOptions = {}) {
      refs++
      return decide<'approve'>({
        type: 'approve',
        commandId: commandId(),
        resourceOwner: owner,
        walletAddresses,
        ...more,
        ...referenceOf(refs),
      })
    },
    deny() {
      refs++
      return decide<'deny'>({ type: 'deny', commandId: commandId(), ...referenceOf(refs) })
    },
    poll: () => decide<'continue'>({ type: 'continue', commandId: commandId(), ...nextTokens() }),
    present: (refHash = hashOf(`ref ${refs}`)) =>
      decide<'continue'>({
        type: 'continue',
        commandId: commandId(),
        refHash,
        ...nextTokens(),
      }),
    rotate: (presented: PresentedToken) =>
      decide<'rotate'>({
        type: 'rotate',
        commandId: commandId(),
        presented,
        nextToken: nextToken(),
      }),
    revokeToken: (presented: PresentedToken) =>
      decide<'revoke-token'>({ type: 'revoke-token', commandId: commandId(), presented }),
    cancel: () => decide<'cancel'>({ type: 'cancel', commandId: commandId() }),
    revoke: () => decide<'revoke'>({ type: 'revoke', commandId: commandId() }),
    amend: (changes: Omit<AmendGrant, 'type' | 'commandId'>) =>
      decide<'amend'>({ type: 'amend', commandId: commandId(), ...changes }),
  }
}

export type GrantLife = ReturnType<typeof grantLife>

const amountText = fc.oneof(
  fc.constantFrom('0', '1', '9', '10', '18446744073709551615'),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
)

const amount = fc.record({
  value: amountText,
  assetCode: fc.constantFrom('USD', 'EUR'),
  assetScale: fc.constantFrom(0, 2, 255),
})

/** Intervals by the end of their last window: never, long ago, or during a history. */
export const lastWindowEndsAt: Readonly<Record<string, Instant | undefined>> = {
  'R/2025-05-20T13:00:00Z/P1M': undefined,
  'R3/2025-05-20T13:00:00Z/P1D': Date.UTC(2025, 4, 23, 13),
  'R2/2026-11-21T12:00:00Z/PT10M': startOfTests + 20 * 60_000,
}

const limits: fc.Arbitrary<Limits> = fc
  .record(
    {
      receiver: fc.constantFrom(`${bob}/incoming-payments/1`, `${bob}/incoming-payments/2`),
      interval: fc.constantFrom(...Object.keys(lastWindowEndsAt)),
      debitAmount: amount,
      receiveAmount: amount,
    },
    { requiredKeys: [] },
  )
  .map(({ receiveAmount, ...one }) =>
    one.debitAmount === undefined && receiveAmount !== undefined ? { ...one, receiveAmount } : one,
  )

function actionsOf(type: AccessItem['type']): fc.Arbitrary<AccessAction[]> {
  return fc.shuffledSubarray<AccessAction>([...accessActions[type]], { minLength: 1 })
}

/** An item that a client may request. */
export const accessItem: fc.Arbitrary<AccessItem> = fc.oneof(
  fc.record(
    {
      type: fc.constant('incoming-payment' as const),
      actions: actionsOf('incoming-payment'),
      identifier: fc.constantFrom(alice, bob),
    },
    { requiredKeys: ['type', 'actions'] },
  ),
  fc.record(
    {
      type: fc.constant('outgoing-payment' as const),
      actions: actionsOf('outgoing-payment'),
      identifier: fc.constantFrom(alice, bob),
      limits,
    },
    { requiredKeys: ['type', 'actions'] },
  ),
  fc.record({ type: fc.constant('quote' as const), actions: actionsOf('quote') }),
)

/** What an owner, or a faulty consent page, may make of the requested access. */
const offers = {
  all: (items) => items,
  'but the last': (items) => items.slice(0, -1),
  'one action of each': (items) =>
    items.map((item) => ({ ...item, actions: item.actions.slice(0, 1) })),
  'read for read-all': (items) =>
    items.map((item) => ({
      ...item,
      actions: item.actions.map((action) => (action === 'read-all' ? ('read' as const) : action)),
    })),
  'for alice only': (items) =>
    items.map((item) => ({ ...item, identifier: item.identifier ?? alice })),
  'half of each amount': (items) => withAmounts(items, (value) => value / 2n),
  'one receiver': (items) =>
    withLimits(items, (limits) => ({
      receiver: `${bob}/incoming-payments/1`,
      ...limits,
    })),
  'one unit more of each amount': (items) => withAmounts(items, (value) => value + 1n),
  'no amounts': (items) =>
    withLimits(items, ({ debitAmount: _debit, receiveAmount: _receive, ...limits }) => limits),
  'no interval': (items) => withLimits(items, ({ interval: _interval, ...limits }) => limits),
  'an interval': (items) =>
    withLimits(items, (limits) => ({ interval: 'R/2025-05-20T13:00:00Z/P1Y', ...limits })),
  'no limits': (items) => items.map(({ limits: _limits, ...item }) => item),
  'everything twice': (items) => [...items, ...items],
  'every action': (items) => items.map((item) => ({ ...item, actions: accessActions[item.type] })),
  'for bob': (items) => items.map((item) => ({ ...item, identifier: bob })),
  'for everybody': (items) => items.map(({ identifier: _identifier, ...item }) => item),
  'swapped tokens': (items) =>
    items.map((item, index) => withLabel(item, items[items.length - 1 - index]?.label)),
  'without labels': (items) => items.map(({ label: _label, ...item }) => item),
  'only the first token': (items) => itemsOf(items, items[0]?.label),
  nothing: () => [],
} as const satisfies Record<string, (items: readonly TokenItem[]) => readonly TokenItem[]>

function withLabel({ label: _label, ...item }: TokenItem, label: string | undefined): TokenItem {
  return label === undefined ? item : { label, ...item }
}

export type Offer = keyof typeof offers

export const offer = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Offer>('all') },
  { weight: 2, arbitrary: fc.constantFrom(...(Object.keys(offers) as Offer[])) },
)

export function offered(how: Offer, items: readonly TokenItem[]): readonly TokenItem[] {
  return offers[how](items)
}

function withLimits(items: readonly TokenItem[], change: (limits: Limits) => Limits) {
  return items.map((item) =>
    item.type === 'outgoing-payment' ? { ...item, limits: change(item.limits ?? {}) } : item,
  )
}

function withAmounts(items: readonly TokenItem[], change: (value: bigint) => bigint) {
  return withLimits(items, ({ debitAmount, receiveAmount, ...rest }) => ({
    ...rest,
    ...(debitAmount && {
      debitAmount: { ...debitAmount, value: change(BigInt(debitAmount.value)).toString() },
    }),
    ...(receiveAmount && {
      receiveAmount: { ...receiveAmount, value: change(BigInt(receiveAmount.value)).toString() },
    }),
  }))
}

/** What a consent page says about the accounts of Alice: she has one, or two of which she chooses one, or not. */
export const choices = {
  only: { walletAddresses: [alice] },
  first: { walletAddresses: [alice, savings], accounts, account: alice },
  second: { walletAddresses: [alice, savings], accounts, account: savings },
  none: { walletAddresses: [alice, savings] },
  'of Bob': { walletAddresses: [alice, savings], account: bob },
} as const satisfies Record<string, Partial<ApproveGrant>>

export type Chosen = keyof typeof choices

export const chosen = fc.constantFrom(...(Object.keys(choices) as Chosen[]))

/** An instant near the end of a period: mistakes occur at the exact millisecond. */
export interface Moment {
  readonly of: 'wait' | 'interaction' | 'retry' | 'token' | 'unused' | 'expiry'
  readonly offsetMs: -1 | 0 | 1
}

export type RefChoice = 'none' | 'current' | 'previous' | 'foreign'
export type TokenChoice = 'live' | 'replaced' | 'older' | 'foreign' | 'at another URI'

/** An event in the life of a grant. The affected reference or token is looked up when the event is played. */
export type Step =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'reach'; readonly moment: Moment }
  | {
      readonly do: 'approve'
      readonly owner: string
      readonly offer: Offer
      readonly chosen: Chosen
    }
  | { readonly do: 'continue'; readonly ref: RefChoice }
  | {
      readonly do: 'rotate' | 'revoke-token'
      readonly token: TokenChoice
      /** Which of the grant's tokens is affected, modulo their number. */
      readonly which: number
    }
  | { readonly do: 'amend'; readonly offer: Offer; readonly conditions?: ConditionChanges }
  | { readonly do: 'deny' | 'cancel' | 'revoke' }

/** A command with its decision, and the grant before and after it. */
export interface Turn {
  readonly at: Instant
  readonly before: Grant
  readonly command: GrantCommand
  readonly decision: GrantDecision<keyof GrantRefusals>
  readonly after: Grant
}

export interface HistoricToken extends PresentedToken {
  readonly label?: string
}

export interface History {
  readonly kind: Kind
  readonly created: Grant
  readonly turns: readonly Turn[]
  /** All access tokens in the order of issue. */
  readonly tokens: readonly HistoricToken[]
  /** Every hash, salt and nonce of the history. */
  readonly secrets: readonly string[]
  readonly events: readonly GrantEvent[]
  readonly endedAt: Instant
  /** How a failing history is printed. */
  readonly [fc.toStringMethod]: () => string
}

const moment: fc.Arbitrary<Moment> = fc.record({
  of: fc.constantFrom('wait', 'interaction', 'retry', 'token', 'unused', 'expiry'),
  offsetMs: fc.constantFrom(-1, 0, 1),
})

/** What an owner, or a faulty page, may make of the conditions. */
export const conditionChanges: fc.Arbitrary<ConditionChanges> = fc
  .record(
    {
      paymentMax: amount.filter(({ assetScale }) => assetScale === 2),
      receivers: fc.subarray([alice, bob, shop.walletAddress ?? ''], { minLength: 1 }),
      pausedUntil: fc.constantFrom(null, 0, startOfTests + 60_000, startOfTests + 86_400_000),
      data: fc.constantFrom(null, { level: 1 }, { level: 2, of: ['trust'] }),
    },
    { requiredKeys: [] },
  )
  .map((changes) => structuredClone(changes))

/** Weighted so that grants often reach the later states. */
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 1, 4_999, 5_000, 59_999, 60_000, 299_999),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reach' as const), moment }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('approve' as const),
      owner: fc.constantFrom('alice', 'alice', 'alice', 'mallory'),
      offer,
      chosen: fc.oneof({ weight: 3, arbitrary: fc.constant<Chosen>('only') }, chosen),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('continue' as const),
      ref: fc.constantFrom<RefChoice>('none', 'none', 'current', 'current', 'previous', 'foreign'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('rotate' as const),
      token: fc.constantFrom<TokenChoice>(
        'live',
        'live',
        'replaced',
        'older',
        'foreign',
        'at another URI',
      ),
      which: fc.nat({ max: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('revoke-token' as const),
      token: fc.constantFrom<TokenChoice>('live', 'replaced', 'older', 'foreign', 'at another URI'),
      which: fc.nat({ max: 2 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record(
      { do: fc.constant('amend' as const), offer, conditions: conditionChanges },
      { requiredKeys: ['do', 'offer'] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('deny' as const, 'cancel' as const, 'revoke' as const),
    }),
  },
)

const kinds = fc.constantFrom<Kind>('redirect', 'redirect', 'poll', 'at once')

/** The labels of the tokens: none for a single token. */
const someLabels = fc.constantFrom<readonly string[]>([], [], ['a'], ['a', 'b'], ['a', 'b', 'c'])

function historyOf(item: fc.Arbitrary<AccessItem>): fc.Arbitrary<History> {
  return fc
    .record({
      kind: kinds,
      access: fc.array(item, { minLength: 1, maxLength: 3 }),
      labels: someLabels,
      steps: fc.array(step, { maxLength: 30, size: '+1' }),
    })
    .map(({ kind, access, labels, steps }) => {
      const items = structuredClone(access)
      // Nothing is granted at once to pay from an account that the request does not name.
      const waits = kind === 'at once' && items.some(isAccountless)
      return play(
        waits ? 'redirect' : kind,
        labels.length === 0 ? items : labelled(items, labels),
        steps,
      )
    })
}

/** Whether an item is for outgoing payments of an account that the owner has yet to choose. */
export function isAccountless({ type, identifier }: AccessItem): boolean {
  return type === 'outgoing-payment' && identifier === undefined
}

/** Grants with an arbitrary history: some with a single token, others with a set of one to three. */
export const history: fc.Arbitrary<History> = historyOf(accessItem)

/** Grants whose windows end. */
export const endingHistory: fc.Arbitrary<History> = historyOf(
  accessItem.filter(
    ({ limits }) =>
      limits?.interval !== undefined && lastWindowEndsAt[limits.interval] !== undefined,
  ),
)

/** Grants with two tokens, of which one is revoked while the grant may go on. */
export const partlyRevoked: fc.Arbitrary<History> = fc
  .record({
    before: fc.array(step, { maxLength: 5 }),
    which: fc.nat({ max: 1 }),
    after: fc.array(step, { maxLength: 10 }),
  })
  .map(({ before, which, after }) => {
    const revokes = { do: 'revoke-token', token: 'live', which } as const
    return play('at once', labelled([outgoing, outgoing], ['a', 'b']), [
      ...before,
      revokes,
      ...after,
    ])
  })

/** Plays steps on a new grant. */
export function play(kind: Kind, access: readonly TokenItem[], steps: readonly Step[]): History {
  const life = grantLife({ kind, access })
  const created = life.grant()
  const turns: Turn[] = []
  const issued: HistoricToken[] = (created.tokens ?? []).map(presentedOf)
  const refs: string[] = []
  const secrets = [hashOf('continuation'), 'nonce-of-the-server', finish.nonce]

  for (const [index, step] of steps.entries()) {
    if (step.do === 'pass') {
      life.advance(step.ms)
      continue
    }
    if (step.do === 'reach') {
      const instant = instantOf(step.moment, life.grant())
      if (instant !== undefined && instant > life.now()) life.set(instant)
      continue
    }
    const command = commandOf(step, index, { access, granted: life.grant().granted, issued, refs })
    secrets.push(...secretsOf(command))
    if (command.type === 'approve') secrets.push(command.refHash, command.refSalt)
    const before = life.grant()
    const decision = life.decide<keyof GrantRefusals>(command)
    const after = life.grant()
    turns.push({ at: life.now(), before, command, decision, after })
    if (decision.outcome !== 'changed') continue
    if (command.type === 'approve') refs.push(command.refHash)
    issued.push(...newTokensOf(before, after).map(presentedOf))
  }
  return {
    kind,
    created,
    turns,
    tokens: issued,
    secrets,
    events: life.events,
    endedAt: life.now(),
    [fc.toStringMethod]: () => told(kind, access, turns),
  }
}

function presentedOf({ label, hash, manage }: HistoricToken): HistoricToken {
  return label === undefined ? { hash, manage } : { label, hash, manage }
}

/** Returns the tokens of a grant that it did not have before. */
function newTokensOf(before: Grant, after: Grant) {
  const known = (before.tokens ?? []).map(({ hash }) => hash)
  return (after.tokens ?? []).filter(({ hash }) => !known.includes(hash))
}

function secretsOf(command: GrantCommand): readonly string[] {
  if (command.type === 'rotate') return [command.nextToken.hash, command.nextToken.salt]
  if (command.type !== 'continue') return []
  return [command.salt, ...command.nextTokens.map(({ hash }) => hash)]
}

function told(kind: Kind, access: readonly TokenItem[], turns: readonly Turn[]): string {
  const lines = turns.map(({ at, before, command, decision }) => {
    const outcome = decision.outcome === 'refused' ? decision.refusal : decision.outcome
    return `${at - before.createdAt} ms: ${JSON.stringify(command)} -> ${outcome}`
  })
  return [`a grant (${kind}) of ${JSON.stringify(access)}`, ...lines].join('\n')
}

interface Known {
  readonly access: readonly TokenItem[]
  readonly granted: readonly GrantedItem[] | undefined
  readonly issued: readonly HistoricToken[]
  readonly refs: readonly string[]
}

function commandOf(
  step: Exclude<Step, { readonly do: 'pass' | 'reach' }>,
  index: number,
  { access, granted, issued, refs }: Known,
): GrantCommand {
  const commandId = `command-${index + 1}`
  const nextToken = { ...managed(index + 1), salt: `salt-${index + 1}` }
  switch (step.do) {
    case 'approve':
      return {
        type: 'approve',
        commandId,
        resourceOwner: step.owner,
        ...choices[step.chosen],
        ...(step.offer === 'all' ? {} : { access: offered(step.offer, access) }),
        ...referenceOf(index),
      }
    case 'continue': {
      const refHash = chosenRef(step.ref, refs)
      const ref = refHash === undefined ? {} : { refHash }
      return { type: 'continue', commandId, ...ref, ...nextTokensOf(index + 1, access) }
    }
    case 'rotate':
      return {
        type: 'rotate',
        commandId,
        presented: chosenToken(step, issued),
        nextToken,
      }
    case 'revoke-token':
      return { type: 'revoke-token', commandId, presented: chosenToken(step, issued) }
    case 'amend': {
      // The items that an offer makes of granted ones keep their ids.
      const items = offered(step.offer, granted ?? []) as readonly AmendedItem[]
      return {
        type: 'amend',
        commandId,
        ...(step.offer === 'all' ? {} : { access: items }),
        ...(step.conditions && { conditions: step.conditions }),
      }
    }
    case 'deny':
      return { type: 'deny', commandId, ...referenceOf(index) }
    default:
      return { type: step.do, commandId }
  }
}

function chosenRef(choice: RefChoice, refs: readonly string[]): string | undefined {
  if (choice === 'none') return undefined
  const known = choice === 'current' ? refs.at(-1) : choice === 'previous' ? refs.at(-2) : undefined
  return known ?? hashOf('a reference of another grant')
}

/** A token of another label is one at another URI, as the token that was replaced is. */
function chosenToken(
  { token: choice, which }: { readonly token: TokenChoice; readonly which: number },
  all: Known['issued'],
): PresentedToken {
  const foreign = { hash: hashOf('a token of another grant'), manage: 'manage-of-another-grant' }
  const labels = [...new Set(all.map(({ label }) => label))]
  const issued = all
    .filter(({ label }) => label === labels[which % labels.length])
    .map(({ hash, manage }) => ({ hash, manage }))
  const others = all.filter(({ hash }) => hash !== issued.at(-1)?.hash)
  const live = issued.at(-1) ?? foreign
  switch (choice) {
    case 'live':
      return live
    case 'replaced':
      return issued.at(-2) ?? foreign
    case 'older':
      return issued.at(-3) ?? foreign
    case 'foreign':
      return { hash: foreign.hash, manage: live.manage }
    case 'at another URI':
      return { hash: live.hash, manage: others.at(-1)?.manage ?? foreign.manage }
  }
}

function instantOf({ of, offsetMs }: Moment, grant: Grant): Instant | undefined {
  const { continuation, interaction, tokens = [] } = grant
  const [token] = tokens
  const derivation = derivationsOf(grant).at(-1)
  const instants = {
    wait: continuation.acceptedAt + grantPolicy.waitMs,
    interaction: interaction?.expiresAt,
    retry: derivation?.until,
    token: token?.expiresAt,
    unused: token && token.expiresAt + grantPolicy.unusedLifetimeMs,
    expiry: grant.expiresAt,
  }
  const instant = instants[of]
  return instant === undefined ? undefined : instant + offsetMs
}

/**
 * Returns whether the granted items of each token are within its requested ones: an independent implementation of
 * the narrowing rules that tries every pairing.
 */
export function isAttenuated(
  requested: readonly TokenItem[],
  granted: readonly TokenItem[],
): boolean {
  return labelsOf(granted).every((label) =>
    areWithin(itemsOf(requested, label), itemsOf(granted, label)),
  )
}

function areWithin(requested: readonly AccessItem[], granted: readonly AccessItem[]): boolean {
  const [first, ...rest] = granted.map(publicItem)
  if (first === undefined) return true
  return requested.some(
    (item, index) =>
      isNarrower(item, first) &&
      areWithin(
        requested.filter((_, other) => other !== index),
        rest,
      ),
  )
}

export function isNarrower(asked: AccessItem, given: AccessItem): boolean {
  const allowed = new Set<string>(asked.actions)
  if (allowed.has('read-all')) allowed.add('read')
  if (allowed.has('list-all')) allowed.add('list')
  if (asked.type !== given.type || given.actions.some((action) => !allowed.has(action)))
    return false
  if (asked.identifier !== undefined && given.identifier !== asked.identifier) return false
  const from = asked.limits ?? {}
  const to = given.limits ?? {}
  if (from.receiver !== undefined && to.receiver !== from.receiver) return false
  // An interval added to an amount would renew it; beside no amount it allows nothing more.
  const isLimited = from.debitAmount !== undefined || from.receiveAmount !== undefined
  const isAdded = from.interval === undefined && !isLimited
  if (from.interval !== to.interval && !isAdded) return false
  return (['debitAmount', 'receiveAmount'] as const).every((kind) => {
    const [max, now] = [from[kind], to[kind]]
    if (max === undefined) return true
    if (now === undefined) return false
    const sameUnit = max.assetCode === now.assetCode && max.assetScale === now.assetScale
    return sameUnit && BigInt(now.value) <= BigInt(max.value)
  })
}
