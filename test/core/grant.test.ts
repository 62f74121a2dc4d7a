import { describe, expect, test } from 'vitest'
import type { AccessAction, AccessItem } from '../../src/core/access.js'
import { clientId, clientKeyOf, type Grant, type GrantClient } from '../../src/core/grant/record.js'
import { requestGrant } from '../../src/core/grant/request.js'
import { grantStatus, isActive } from '../../src/core/grant/status.js'
import { derivationsOf } from '../../src/core/grant/version.js'
import { decideGrant } from '../../src/core/grant.js'
import { startOfTests } from '../support/clock.js'
import {
  accounts,
  alice,
  bob,
  finish,
  type GrantLife,
  grantLife,
  grantPolicy,
  hashOf,
  type Kind,
  type LifeOptions,
  labelled,
  managed,
  nextTokensOf,
  outgoing,
  referenceOf,
  requestOf,
  savings,
  shop,
} from '../support/grants.js'
import { dollars } from '../support/spending-life.js'

const { waitMs, retryMs, interactionLifetimeMs, accessTokenLifetimeMs } = grantPolicy
const { unusedLifetimeMs, retentionMs } = grantPolicy
const start = startOfTests

const changed = { ok: true, outcome: 'changed' }
const unchanged = { ok: true, outcome: 'unchanged' }
const refusedWith = (refusal: string) => ({ ok: false, outcome: 'refused', refusal })

/** A grant whose wait is over and whose owner has not decided. */
function pending(options: LifeOptions = {}): GrantLife {
  const life = grantLife(options)
  life.advance(waitMs)
  return life
}

function approved(options: LifeOptions = {}): GrantLife {
  const life = pending(options)
  life.approve()
  return life
}

function issued(options: LifeOptions = {}): GrantLife {
  const life = approved(options)
  if (options.kind === 'poll') life.poll()
  else if (options.kind !== 'at once') life.present()
  return life
}

function isLive(life: GrantLife, token: { readonly hash: string } = life.token()): boolean {
  return isActive(life.grant(), token.hash, life.now())
}

function status(life: GrantLife) {
  return grantStatus(life.grant(), life.now())
}

function requested(...parameters: Parameters<typeof requestOf>): Grant {
  const decision = requestGrant(requestOf(...parameters), start, grantPolicy)
  if (decision.outcome === 'refused') throw new Error(decision.reason)
  return decision.record
}

describe('requesting a grant', () => {
  const byKey: GrantClient = { kid: 'k', thumbprint: 't', x: 'public-key' }

  test('issues its token immediately when no consent is needed', () => {
    const decision = requestGrant(requestOf('at once'), start, grantPolicy)
    expect(decision).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: {
        version: 1,
        issuedAt: start,
        requested: [outgoing],
        granted: [{ ...outgoing, itemId: expect.any(String) }],
        tokens: [{ ...managed(0), issuedAt: start, expiresAt: start + accessTokenLifetimeMs }],
      },
      events: [
        { type: 'grant.requested', at: start },
        { type: 'grant.issued', at: start },
      ],
    })
    expect(requested('at once')).not.toHaveProperty('interaction')
    expect(requested('at once')).not.toHaveProperty('consent')
  })

  test('is pending, grants nothing and has no token when consent is needed', () => {
    const decision = requestGrant(requestOf('redirect'), start, grantPolicy)
    expect(decision).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: {
        version: 1,
        interaction: { finish, expiresAt: start + interactionLifetimeMs },
        continuation: { waitMs, acceptedAt: start },
      },
      events: [{ type: 'grant.requested', at: start }],
    })
    for (const missing of ['granted', 'tokens', 'consent', 'derivation']) {
      expect(requested('redirect')).not.toHaveProperty(missing)
    }
  })

  test('issues its token immediately when the client offers an unnecessary interaction', () => {
    const grant = requested('at once', { interact: { finish } })
    expect(grant.tokens).toHaveLength(1)
    expect(grant).not.toHaveProperty('interaction')
  })

  test('is in the list of its client, if that has a name', () => {
    const listed = requested('redirect', { listName: 'grants of the shop' })
    expect(listed.lists).toEqual([{ list: 'grants of the shop', at: start }])
    expect(requested('redirect')).not.toHaveProperty('lists')
  })

  test('stores no finish method on the interaction when the request has none', () => {
    expect(requested('poll').interaction).not.toHaveProperty('finish')
  })

  test.each([
    [
      'consent is needed, but the client offers no interaction',
      { needsConsent: true },
      'interaction_required',
    ],
    [
      'consent is needed and the client is identified by its key alone',
      { needsConsent: true, interact: { finish }, client: byKey },
      'interaction_by_key',
    ],
    [
      'a finish method is required, but not offered',
      { needsConsent: true, needsFinish: true, interact: {} },
      'finish_required',
    ],
    [
      'the request has neither an interaction nor a wallet address',
      { needsConsent: true, needsFinish: true, client: byKey },
      'interaction_required',
    ],
    [
      'the request has neither a wallet address nor a finish method',
      { needsConsent: true, needsFinish: true, interact: {}, client: byKey },
      'interaction_by_key',
    ],
  ] as const)('is refused when %s', (_, request, refusal) => {
    const decision = requestGrant(requestOf('at once', request), start, grantPolicy)
    expect(decision).toMatchObject(refusedWith(refusal))
  })

  test('accepts a client that is identified by its key alone, if no consent is needed', () => {
    const grant = requested('at once', { client: byKey })
    expect(grant.client).toEqual(byKey)
    expect(clientId(grant.client)).toBe('urn:ietf:params:oauth:jwk-thumbprint:sha-256:t')
  })

  test('identifies a client with a wallet address by that address', () => {
    expect(clientId(shop)).toBe('https://shop.example')
  })

  test('has a key that hosts know by its kid and its thumbprint', () => {
    const client = { walletAddress: 'https://shop.example', kid: 'key-1', x: 'x', thumbprint: 't' }
    expect(clientKeyOf({ client })).toStrictEqual({ kid: 'key-1', thumbprint: 't' })
  })
})

describe('consenting', () => {
  test('grants what was requested on behalf of the owner', () => {
    const life = pending()
    const decision = life.approve({ owner: 'alice' })
    expect(decision).toMatchObject({
      ok: true,
      outcome: 'changed',
      events: [{ type: 'grant.approved', at: start + waitMs, resourceOwner: 'alice' }],
    })
    expect(life.grant()).toMatchObject({
      version: 2,
      granted: [outgoing],
      consent: { resourceOwner: 'alice', at: start + waitMs },
      interaction: referenceOf(1),
    })
    expect(life.grant()).not.toHaveProperty('tokens')
  })

  test('denying stores who denied it, if that is known', () => {
    const denied = (resourceOwner: object) => {
      const life = pending()
      life.decide<'deny'>({
        type: 'deny',
        commandId: 'denial',
        ...referenceOf(1),
        ...resourceOwner,
      })
      return life.grant().finalized
    }
    expect(denied({ resourceOwner: 'alice' })).toStrictEqual({
      reason: 'denied',
      by: 'host',
      at: start + waitMs,
      resourceOwner: 'alice',
    })
    expect(denied({})).toStrictEqual({ reason: 'denied', by: 'host', at: start + waitMs })
  })

  test('does not depend on the wait, which applies to clients only', () => {
    expect(grantLife().approve()).toMatchObject(changed)
    expect(grantLife().deny()).toMatchObject(changed)
  })

  test('issues no reference when the request has no finish method', () => {
    const life = pending({ kind: 'poll' })
    life.approve()
    expect(life.grant().interaction).not.toHaveProperty('refHash')
  })

  test('denying ends the grant', () => {
    const life = pending()
    expect(life.deny()).toMatchObject({
      ok: true,
      outcome: 'changed',
      events: [{ type: 'grant.denied' }],
    })
    expect(life.grant()).toMatchObject({ finalized: { reason: 'denied' } })
    expect(life.grant()).not.toHaveProperty('granted')
  })

  test('is possible until the last millisecond of the interaction, but not at its end', () => {
    const inTime = grantLife()
    inTime.advance(interactionLifetimeMs - 1)
    expect(inTime.approve()).toMatchObject(changed)

    const late = grantLife()
    late.advance(interactionLifetimeMs)
    expect(late.approve()).toMatchObject(refusedWith('interaction_expired'))
    expect(late.deny()).toMatchObject(refusedWith('interaction_expired'))

    const deniedInTime = grantLife()
    deniedInTime.advance(interactionLifetimeMs - 1)
    expect(deniedInTime.deny()).toMatchObject(changed)
  })

  test.each<readonly [when: string, life: () => GrantLife, refusal: string]>([
    ['the grant needed no consent', () => issued({ kind: 'at once' }), 'interaction_unknown'],
    ['the request has been denied', () => followedBy(pending(), 'deny'), 'decided_otherwise'],
    ['the grant has been cancelled', () => followedBy(pending(), 'cancel'), 'interaction_over'],
    ['the grant has been revoked', () => followedBy(approved(), 'revoke'), 'interaction_over'],
    ['its token has been issued', () => issued(), 'interaction_over'],
    ['its token has been revoked', () => followedBy(issued(), 'give up'), 'interaction_over'],
  ])('is refused when %s', (_, made, refusal) => {
    const life = made()
    const before = life.grant()
    expect(life.approve()).toMatchObject(refusedWith(refusal))
    expect(life.grant()).toBe(before)
  })

  test.each<readonly [when: string, life: () => GrantLife, refusal: string]>([
    ['the grant needed no consent', () => issued({ kind: 'at once' }), 'interaction_unknown'],
    ['the request has been approved', () => approved(), 'decided_otherwise'],
    ['the grant has been cancelled', () => followedBy(pending(), 'cancel'), 'interaction_over'],
    ['the grant has been revoked', () => followedBy(approved(), 'revoke'), 'interaction_over'],
    ['its token has been issued', () => issued(), 'interaction_over'],
  ])('denying is refused when %s', (_, made, refusal) => {
    const life = made()
    const before = life.grant()
    expect(life.deny()).toMatchObject(refusedWith(refusal))
    expect(life.grant()).toBe(before)
  })

  test('denying twice has the effect of denying once', () => {
    const life = followedBy(pending(), 'deny')
    life.advance(interactionLifetimeMs)
    const before = life.grant()
    expect(life.deny()).toMatchObject(unchanged)
    expect(life.grant()).toBe(before)
  })
})

describe('repeating a decision', () => {
  test('keeps the reference of the first approval, and accepts no other', () => {
    const life = pending()
    life.approve()
    const first = life.refHash()
    const before = life.grant()
    expect(life.approve()).toMatchObject(unchanged)
    expect(life.grant()).toBe(before)
    expect(life.present()).toMatchObject(refusedWith('interact_ref_wrong'))
    expect(life.present(first)).toMatchObject(changed)
  })

  test('keeps the reference of the first denial', () => {
    const life = pending()
    life.deny()
    expect(life.grant().interaction).toMatchObject(referenceOf(1))
    expect(life.deny()).toMatchObject(unchanged)
    expect(life.grant().interaction).toMatchObject(referenceOf(1))
  })

  test('leaves the granted access, the owner and the time of approval unchanged', () => {
    const life = approved()
    const { granted, consent } = life.grant()
    life.advance(1000)
    life.approve()
    expect(life.grant()).toMatchObject({ granted, consent })
  })

  test('changes nothing when there is no reference', () => {
    const life = approved({ kind: 'poll' })
    const before = life.grant()
    expect(life.approve()).toMatchObject(unchanged)
    expect(life.grant()).toBe(before)
  })

  test('is recognized when it spells out the access that was granted before', () => {
    const half = [withDebit('1250')]
    const life = pending()
    life.approve({ access: half })
    expect(life.approve({ access: half })).toMatchObject(unchanged)
  })

  test('is recognized when the only wallet address was filled in as the identifier', () => {
    const access = [incoming(['list-all'])]
    const life = pending({ access })
    life.approve()
    expect(life.approve()).toMatchObject(unchanged)
    expect(life.grant().granted).toMatchObject([{ identifier: alice }])
  })

  test.each<readonly [how: string, again: Parameters<GrantLife['approve']>[0]]>([
    ['by another owner', { owner: 'mallory' }],
    ['by another owner of the same wallet address', { owner: 'mallory', walletAddresses: [alice] }],
    ['to less access', { access: [withDebit('1')] }],
    ['to fewer actions', { access: [{ ...outgoing, actions: ['read'] }] }],
    ['to no access', { access: [] }],
    ['to more access', { access: [withDebit('2501')] }],
    ['to the same item twice', { access: [outgoing, outgoing] }],
  ])('is refused as a different decision when it is %s', (_, again) => {
    const life = approved()
    const before = life.grant()
    expect(life.approve(again)).toMatchObject(refusedWith('decided_otherwise'))
    expect(life.grant()).toBe(before)
    expect(life.present(hashOf('ref 1'))).toMatchObject(changed)
  })

  test('is refused after the interaction has ended, and the reference stays valid', () => {
    const life = approved()
    life.set(start + interactionLifetimeMs)
    expect(life.approve()).toMatchObject(refusedWith('interaction_expired'))
    expect(life.present(hashOf('ref 1'))).toMatchObject(changed)
  })
})

function withDebit(value: string): AccessItem {
  return { ...outgoing, limits: { debitAmount: { value, assetCode: 'USD', assetScale: 2 } } }
}

function incoming(actions: readonly AccessAction[], identifier?: string): AccessItem {
  const item = { type: 'incoming-payment', actions } as const
  return identifier === undefined ? item : { ...item, identifier }
}

describe('the access that an owner grants', () => {
  const quote: AccessItem = { type: 'quote', actions: ['create'] }

  test.each<readonly [what: string, requested: AccessItem[], granted: AccessItem[]]>([
    ['everything', [outgoing, quote], [outgoing, quote]],
    ['one of two items', [outgoing, quote], [quote]],
    ['a smaller amount', [outgoing], [withDebit('1')]],
    ['fewer actions', [outgoing], [{ ...outgoing, actions: ['create'] }]],
    [
      'the same items with an identifier added',
      [incoming(['create'])],
      [incoming(['create'], alice)],
    ],
    ['read instead of read-all', [incoming(['read-all'], alice)], [incoming(['read'], alice)]],
  ])('can be %s', (_, requested, granted) => {
    const life = pending({ access: requested })
    expect(life.approve({ access: granted })).toMatchObject(changed)
    expect(life.grant()).toMatchObject({ requested, granted })
    expect(life.grant().granted).toHaveLength(granted.length)
  })

  test.each<readonly [what: string, granted: AccessItem[]]>([
    ['a larger amount', [withDebit('2501')]],
    ['no amount', [{ type: 'outgoing-payment', actions: ['create', 'read'], identifier: alice }]],
    ['another action', [{ ...outgoing, actions: ['create', 'read', 'list'] }]],
    ['another type', [incoming(['create'], alice)]],
    ['the same item twice', [outgoing, outgoing]],
    [
      'an interval',
      [{ ...outgoing, limits: { ...outgoing.limits, interval: 'R/2025-05-20T13:00:00Z/P1M' } }],
    ],
    [
      'a limit by both amounts',
      [
        {
          ...outgoing,
          limits: {
            debitAmount: { value: '1', assetCode: 'USD', assetScale: 2 },
            receiveAmount: { value: '1', assetCode: 'USD', assetScale: 2 },
          },
        },
      ],
    ],
  ])('cannot be %s', (_, access) => {
    const life = pending()
    const before = life.grant()
    expect(life.approve({ access })).toMatchObject(refusedWith('access_widened'))
    expect(life.grant()).toBe(before)
    expect(life.approve()).toMatchObject(changed)
  })

  test.each([
    ['words', 'twenty'],
    ['a decimal number, as a page may send it', '25.00'],
    ['nothing', ''],
    ['a negative number', '-1'],
    ['hexadecimal', '0x10'],
    ['a number with leading zeros', '0025'],
  ])('rejects an invalid amount: %s', (_, value) => {
    const life = pending()
    expect(life.approve({ access: [withDebit(value)] })).toMatchObject({
      ok: false,
      outcome: 'refused',
    })
    expect(status(life)).toBe('pending')
  })

  test('must belong to the owner: an identifier of another owner is refused', () => {
    const life = pending()
    const decision = life.approve({ owner: 'bob', walletAddresses: [bob] })
    expect(decision).toMatchObject(refusedWith('not_the_owner'))
    expect(life.approve({ walletAddresses: [] })).toMatchObject(refusedWith('not_the_owner'))
    expect(life.approve({ walletAddresses: [`${alice}/`] })).toMatchObject(
      refusedWith('not_the_owner'),
    )
    expect(life.approve({ walletAddresses: [bob, alice] })).toMatchObject(changed)
  })

  test('must belong to the owner, also when the identifier was added by narrowing', () => {
    const life = pending({ access: [incoming(['create'])] })
    const foreign = { access: [incoming(['create'], bob)], walletAddresses: [alice] }
    expect(life.approve(foreign)).toMatchObject(refusedWith('not_the_owner'))
  })

  test('must belong to the owner completely: one foreign identifier is refused', () => {
    const life = pending({ access: [outgoing, incoming(['create'], bob)] })
    expect(life.approve()).toMatchObject(refusedWith('not_the_owner'))
  })

  test('gets the owner’s only wallet address as the identifier of list-all', () => {
    const life = pending({ access: [incoming(['create', 'read-all', 'list-all'])] })
    expect(life.approve()).toMatchObject(changed)
    expect(life.grant().granted).toMatchObject([{ identifier: alice }])
  })

  test.each([
    ['several wallet addresses', [alice, bob]],
    ['no wallet address', []],
  ])(
    'is refused for list-all without an identifier when the owner has %s',
    (_, walletAddresses) => {
      const life = pending({ access: [incoming(['list-all'])] })
      expect(life.approve({ walletAddresses })).toMatchObject(refusedWith('identifier_required'))
      const named = { walletAddresses: [alice, bob], access: [incoming(['list-all'], bob)] }
      expect(life.approve(named)).toMatchObject(changed)
    },
  )

  test.each<readonly [what: string, item: AccessItem]>([
    ['the client’s own payments', incoming(['create', 'read', 'list', 'complete'])],
    ['incoming payments by their URL', incoming(['read-all'])],
    ['the client’s own quotes', { type: 'quote', actions: ['create', 'read-all'] }],
  ])('needs no identifier for %s', (_, item) => {
    const life = pending({ access: [outgoing, item] })
    expect(life.approve({ walletAddresses: [alice, bob] })).toMatchObject(changed)
    expect(life.grant().granted?.[1]).not.toHaveProperty('identifier')
  })
})

function followedBy(
  life: GrantLife,
  what: 'approve' | 'deny' | 'cancel' | 'revoke' | 'give up',
): GrantLife {
  if (what === 'give up') life.revokeToken(life.token())
  else life[what]()
  return life
}

describe('continuing', () => {
  test('issues the token for the reference', () => {
    const life = approved()
    const now = life.now()
    expect(life.present()).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: {
        issuedAt: now,
        tokens: [{ ...managed(1), issuedAt: now, expiresAt: now + accessTokenLifetimeMs }],
        derivation: { from: life.refHash(), salt: 'salt-1', until: now + retryMs },
      },
      events: [{ type: 'grant.issued', at: now, resourceOwner: 'alice' }],
    })
    expect(isLive(life)).toBe(true)
  })

  test('issues the token for a poll when there is no finish method', () => {
    const life = approved({ kind: 'poll' })
    expect(life.poll()).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: { tokens: [managed(1)], derivation: { from: hashOf('continuation') } },
    })
    expect(isLive(life)).toBe(true)
  })

  test.each<readonly [when: string, life: () => GrantLife, refHash: string]>([
    ['before the owner has decided', () => pending(), hashOf('ref 1')],
    ['where there is no finish method', () => approved({ kind: 'poll' }), hashOf('ref 1')],
    ['that is empty', () => approved({ kind: 'poll' }), ''],
    ['that is truncated', () => approved(), hashOf('ref 1').slice(0, -1)],
    ['that is empty, before the owner has decided', () => pending(), ''],
    ['that is the continuation token', () => approved(), hashOf('continuation')],
    ['that is the AS token of the finish hash', () => approved(), 'nonce-of-the-server'],
  ])('refuses a reference %s', (_, made, refHash) => {
    expect(made().present(refHash)).toMatchObject(refusedWith('interact_ref_wrong'))
  })
})

describe('a lost response', () => {
  test.each([
    ['continuation', 'grant_gone'],
    ['rotation', 'grant_over'],
  ] as const)('of a %s that a revocation followed is refused for it', (what, refusal) => {
    const life = what === 'continuation' ? approved() : issued()
    const nextToken = { ...managed(9), salt: 'salt-9' }
    const presented = what === 'rotation' ? life.token() : managed(0)
    const refHash = what === 'continuation' ? life.refHash() : ''
    const decide = (commandId: string) =>
      what === 'continuation'
        ? life.decide<'continue'>({ commandId, type: 'continue', refHash, ...nextTokensOf(9) })
        : life.decide<'rotate'>({ commandId, type: 'rotate', presented, nextToken })
    expect(decide('lost')).toMatchObject(changed)
    life.revoke()
    expect(decide('lost')).toMatchObject(refusedWith(refusal))
    expect(decide('another')).toMatchObject(refusedWith(refusal))
  })

  test('of a rotation is not repeated for a continuation that presents the old token as its reference', () => {
    const life = issued()
    const old = life.token()
    life.rotate(old)
    expect(life.present(old.hash)).toMatchObject(refusedWith('interact_ref_used'))
  })

  test('of a rotation is repeated for the retry time if that is longer than the life of the token', () => {
    const life = issued({ policy: { retryMs: accessTokenLifetimeMs + 1 } })
    const old = life.token()
    life.rotate(old)
    life.advance(accessTokenLifetimeMs)
    expect(life.rotate(old)).toMatchObject(unchanged)
    life.advance(1)
    expect(life.rotate(old)).toMatchObject(refusedWith('token_not_managed_here'))
  })

  test('of a rotation is not repeated if the retry time is 0', () => {
    const life = issued({ kind: 'at once', policy: { retryMs: 0 } })
    const old = life.token()
    life.rotate(old)
    expect(life.rotate(old)).toMatchObject(refusedWith('token_not_managed_here'))
  })

  test('of a rotation is not repeated once its token has been rotated', () => {
    const life = issued()
    const old = life.token()
    life.rotate(old)
    life.rotate(life.token())
    expect(life.rotate(old)).toMatchObject(refusedWith('token_not_managed_here'))
  })

  test('of a rotation is not repeated at any URI other than the old one', () => {
    const life = issued()
    const old = life.token()
    life.rotate(old)
    const live = life.token()
    const atNewUri = { hash: old.hash, manage: live.manage }
    const atOldUri = { hash: live.hash, manage: old.manage }
    expect(life.rotate(atNewUri)).toMatchObject(refusedWith('token_not_managed_here'))
    expect(life.rotate(atOldUri)).toMatchObject(refusedWith('token_not_managed_here'))
  })

  test('keeps its salt through a commit within the retry time', () => {
    const life = issued()
    life.advance(retryMs - 1)
    life.revoke()
    expect(life.grant().derivation).toMatchObject({ salt: 'salt-1' })
  })

  test('loses its salt in the first commit after the retry time', () => {
    const life = issued()
    life.advance(retryMs)
    life.revoke()
    expect(life.grant()).not.toHaveProperty('derivation')
  })

  test.each<readonly [how: string, kind: Kind, refusal: string]>([
    ['with an interaction reference', 'redirect', 'interact_ref_used'],
    ['of a poll', 'poll', 'already_issued'],
  ])('of a continuation %s is repeated until the retry time ends', (_, kind, refusal) => {
    const life = issued({ kind })
    const again = () => (kind === 'poll' ? life.poll() : life.present())
    life.advance(retryMs - 1)
    expect(again()).toMatchObject(unchanged)
    life.advance(1)
    expect(again()).toMatchObject(refusedWith(refusal))
  })

  test('of a rotation loses its salt in the first commit after its token expires, not before', () => {
    const life = issued({ kind: 'poll', access: labelled([outgoing, outgoing], ['a', 'b']) })
    life.rotate(life.token('a'))
    const salts = () => life.grant().tokens?.map(({ derivation }) => derivation?.salt)
    const [salt] = salts() ?? []
    expect(salt).toBeDefined()
    life.advance(accessTokenLifetimeMs - 1)
    life.rotate(life.token('b'))
    expect(salts()).toEqual([salt, expect.any(String)])
    life.advance(1)
    life.rotate(life.token('b'))
    expect(salts()).toEqual([undefined, expect.any(String)])
  })

  test.each<readonly [how: string, life: () => GrantLife]>([
    ['a continuation', () => issued({ policy: { retryMs: 0 } })],
    ['a poll', () => issued({ kind: 'poll', policy: { retryMs: 0 } })],
    [
      'a rotation',
      () => {
        const life = issued({ kind: 'at once', policy: { retryMs: 0 } })
        life.rotate(life.token())
        return life
      },
    ],
  ])(
    'cannot be repeated without a retry time, but the first response to %s can still be sent',
    (_, made) => {
      // The response derives the token from the salt that is stored with the outcome.
      expect(derivationsOf(made().grant())).toMatchObject([{ salt: expect.any(String) }])
    },
  )
})

describe('rotating', () => {
  test('replaces the token and its URI, and keeps the access', () => {
    const life = issued()
    const old = life.token()
    const { granted } = life.grant()
    life.advance(1000)
    const now = life.now()
    expect(life.rotate(old)).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: { tokens: [{ issuedAt: now, expiresAt: now + accessTokenLifetimeMs }], granted },
      events: [{ type: 'grant.rotated', at: now }],
    })
    expect(life.token().hash).not.toBe(old.hash)
    expect(life.token().manage).not.toBe(old.manage)
    expect(isLive(life)).toBe(true)
    expect(isLive(life, old)).toBe(false)
  })

  test.each<
    readonly [what: string, presented: (life: GrantLife) => { hash: string; manage: string }]
  >([
    ['another token', (life) => ({ ...life.token(), hash: hashOf('another') })],
    ['a token at another URI', (life) => ({ ...life.token(), manage: 'manage-of-another' })],
    ['the continuation token', (life) => ({ ...life.token(), hash: hashOf('continuation') })],
    ['the interaction reference', (life) => ({ ...life.token(), hash: life.refHash() })],
    ['nothing', () => ({ hash: '', manage: '' })],
    ['a truncated token hash', (life) => ({ ...life.token(), hash: life.token().hash.slice(1) })],
  ])('refuses %s', (_, presented) => {
    const life = issued()
    const before = life.grant()
    expect(life.rotate(presented(life))).toMatchObject(refusedWith('token_not_managed_here'))
    expect(life.revokeToken(presented(life))).toMatchObject(refusedWith('token_not_managed_here'))
    expect(life.grant()).toBe(before)
  })
})

describe('ending', () => {
  test.each<readonly [end: 'cancel' | 'revoke', reason: string, event: string]>([
    ['cancel', 'cancelled', 'grant.cancelled'],
    ['revoke', 'revoked', 'grant.revoked'],
  ])('by the command "%s" is possible at any time before the end', (end, reason, event) => {
    for (const life of [pending(), approved(), issued(), issued({ kind: 'at once' })]) {
      const { version } = life.grant()
      expect(life[end]()).toMatchObject({ ok: true, outcome: 'changed', events: [{ type: event }] })
      expect(life.grant()).toMatchObject({
        version: version + 1,
        finalized: { reason, at: life.now() },
      })
      expect(status(life)).toBe(reason)
    }
  })

  test('revoking the token ends its grant', () => {
    const life = issued()
    expect(life.revokeToken(life.token())).toMatchObject({
      ok: true,
      outcome: 'changed',
      events: [{ type: 'grant.revoked' }],
    })
    expect(life.grant()).toMatchObject({ finalized: { reason: 'revoked' } })
  })

  test('revoking an expired token is accepted', () => {
    const life = issued()
    life.advance(accessTokenLifetimeMs)
    expect(life.revokeToken(life.token())).toMatchObject(changed)
  })

  test('after the retry time, a rotated token cannot be used to revoke its replacement', () => {
    const life = issued()
    const old = life.token()
    life.rotate(old)
    life.advance(retryMs)
    expect(life.revokeToken(old)).toMatchObject(refusedWith('token_not_managed_here'))
    expect(isLive(life)).toBe(true)
  })

  test.each<readonly ['cancel' | 'revoke' | 'give up' | 'deny', () => GrantLife, object]>([
    ['cancel', () => issued(), unchanged],
    ['revoke', () => issued(), refusedWith('grant_finalized')],
    ['give up', () => issued(), unchanged],
    ['deny', () => pending(), refusedWith('grant_finalized')],
  ])('after "%s", cancelling and revoking change nothing', (end, made, cancelled) => {
    const life = followedBy(made(), end)
    const before = life.grant()
    life.advance(1)
    for (const _ of ['once', 'twice']) expect(life.cancel()).toMatchObject(cancelled)
    expect(life.revoke()).toMatchObject(unchanged)
    expect(life.grant()).toBe(before)
  })

  test.each<readonly ['cancel' | 'revoke' | 'give up']>([['cancel'], ['revoke'], ['give up']])(
    'after the command "%s" revoking the token is accepted and changes nothing',
    (end) => {
      const life = followedBy(issued(), end)
      const before = life.grant()
      expect(life.revokeToken(life.token())).toMatchObject(unchanged)
      expect(life.grant()).toBe(before)
    },
  )
})

describe('the lifetime of a grant', () => {
  test('is shorter than the retention of its record', () => {
    const asked = grantLife()
    expect(asked.grant().retainUntil).toBe(start + interactionLifetimeMs + retentionMs)
    expect(approved().grant()).not.toHaveProperty('retainUntil')
    expect(issued().grant()).not.toHaveProperty('retainUntil')

    const atOnce = issued({ kind: 'at once' })
    const end = accessTokenLifetimeMs + unusedLifetimeMs + retentionMs
    expect(atOnce.grant().retainUntil).toBe(start + end)
    atOnce.set(start + 1000)
    atOnce.rotate(atOnce.token())
    expect(atOnce.grant().retainUntil).toBe(start + 1000 + end)
    atOnce.cancel()
    expect(atOnce.grant().retainUntil).toBe(start + 1000 + retentionMs)
  })
})

describe('the lifetime of a grant with intervals', () => {
  const minute = 60_000
  /** Two windows of ten minutes, starting with the tests. */
  const twice = withInterval('R2/2026-11-21T12:00:00Z/PT10M')
  const end = start + 20 * minute
  const quote: AccessItem = { type: 'quote', actions: ['create'] }

  function withInterval(interval: string): AccessItem {
    return { ...outgoing, limits: { ...outgoing.limits, interval } }
  }

  test.each<readonly [what: string, access: readonly AccessItem[]]>([
    ['one item', [twice]],
    ['several items', [withInterval('R1/2026-11-21T12:00:00Z/PT1M'), twice]],
    ['an item beside a quote', [twice, quote]],
  ])('of %s ends with the last window', (_, access) => {
    const life = issued({ access })
    expect(life.grant().expiresAt).toBe(end)
    life.set(end - 1)
    expect(status(life)).toBe('approved')
    expect(life.rotate(life.token())).toMatchObject(changed)
    expect(isLive(life)).toBe(true)
    life.set(end)
    expect(status(life)).toBe('expired')
    expect(isLive(life)).toBe(false)
    expect(life.rotate(life.token())).toMatchObject(refusedWith('grant_over'))
    expect(life.present()).toMatchObject(refusedWith('grant_gone'))
    expect(life.cancel()).toMatchObject(refusedWith('grant_finalized'))
  })

  test.each<readonly [what: string, access: readonly AccessItem[]]>([
    ['an interval without an end', [withInterval('R/2026-11-21T12:00:00Z/PT10M')]],
    ['an interval beside an item without one', [twice, outgoing]],
    ['no interval', [outgoing]],
  ])('of %s lasts until it is revoked', (_, access) => {
    const life = issued({ access })
    expect(life.grant()).not.toHaveProperty('expiresAt')
    expect(life.grant()).not.toHaveProperty('retainUntil')
    life.advance(100 * 366 * 86_400_000)
    expect(status(life)).toBe('approved')
  })

  test('has no end before its owner has decided what to grant', () => {
    expect(pending({ access: [twice] }).grant()).not.toHaveProperty('expiresAt')
  })

  test('ends with the granted access, not with the requested access', () => {
    const life = pending({ access: [twice, outgoing] })
    life.approve({ access: [twice] })
    expect(life.grant().expiresAt).toBe(end)
  })

  const unusedAt = start + accessTokenLifetimeMs + unusedLifetimeMs
  test.each([
    ['when it is unused', withInterval('R9/2026-11-21T12:00:00Z/P1M'), unusedAt],
    ['with its last window', twice, end],
  ])('without consent ends %s, if that comes first', (_, item, over) => {
    const life = issued({ kind: 'at once', access: [item] })
    expect(life.grant().retainUntil).toBe(over + retentionMs)
    life.set(over - 1)
    expect(status(life)).toBe('approved')
    life.set(over)
    expect(status(life)).toBe('expired')
  })

  // Such a request is accepted: it is useless but harmless.
  test('that had ended before the request is created as ended and retained as usual', () => {
    const past = withInterval('R3/2025-05-20T13:00:00Z/P1M')
    const consented = approved({ access: [past] })
    expect(consented.grant()).toMatchObject({
      expiresAt: Date.UTC(2025, 7, 20, 13),
    })
    expect(consented.grant().retainUntil).toBe(consented.now() + retentionMs)
    expect(consented.present()).toMatchObject(refusedWith('grant_gone'))

    const atOnce = issued({ kind: 'at once', access: [past] })
    expect(isLive(atOnce)).toBe(false)
    expect(atOnce.rotate(atOnce.token())).toMatchObject(refusedWith('grant_over'))
    expect(atOnce.grant().retainUntil).toBe(start + retentionMs)
  })

  test.each<Kind>(['redirect', 'poll', 'at once'])(
    'uses the interval counting of the policy at creation: %s',
    (kind) => {
      const counted = { occurrences: end, repetitions: end + 10 * minute } as const
      for (const intervalCounting of ['occurrences', 'repetitions'] as const) {
        const { granted, expiresAt } = issued({
          kind,
          access: [twice],
          policy: { intervalCounting },
        }).grant()
        expect(expiresAt).toBe(counted[intervalCounting])
        expect(granted).toMatchObject([{ itemId: '1', intervalCounting }])
      }
    },
  )

  test('does not change when the policy changes', () => {
    const life = issued({ access: [twice] })
    const policy = { ...life.policy, intervalCounting: 'repetitions' as const }
    const presented = life.token()
    const nextToken = { ...managed(99), salt: 'salt-99' }
    const command = { type: 'rotate', commandId: 'command-99', presented, nextToken } as const
    const decision = decideGrant<'rotate'>(life.grant(), command, life.now(), policy)
    const { granted, expiresAt } = life.grant()
    expect(decision).toMatchObject({ ok: true, outcome: 'changed', record: { granted, expiresAt } })
    expect(grantStatus(life.grant(), end)).toBe('expired')
  })

  test('accepts the same decision again, whatever the current interval counting is', () => {
    const life = approved({ access: [twice] })
    const { expiresAt } = life.grant()
    expect(life.approve()).toMatchObject(unchanged)
    expect(life.grant().expiresAt).toBe(expiresAt)
  })
})

describe('the events of a grant', () => {
  test('contain the grant and the client, in chronological order', () => {
    const life = issued()
    life.rotate(life.token())
    life.cancel()
    expect(life.events.map(({ type }) => type)).toEqual([
      'grant.requested',
      'grant.approved',
      'grant.issued',
      'grant.rotated',
      'grant.cancelled',
    ])
    for (const event of life.events) {
      expect(event).toMatchObject({ grantId: 'namespac-grant', client: 'https://shop.example' })
    }
  })

  test('contain nothing else: no hash, no salt, no nonce and no path', () => {
    const life = issued()
    life.rotate(life.token())
    life.revoke()
    const allowed = ['at', 'client', 'grantId', 'resourceOwner', 'type']
    for (const event of life.events) {
      expect(allowed).toEqual(expect.arrayContaining(Object.keys(event)))
    }
  })
})

const setOfThree = labelled([outgoing, outgoing, outgoing], ['one', 'two', 'three'])

/** The labels of the tokens that can be used. */
function live(life: GrantLife): readonly (string | undefined)[] {
  const { tokens = [] } = life.grant()
  return tokens.filter((token) => isLive(life, token)).map(({ label }) => label)
}

describe('a grant with several tokens', () => {
  test('issues one for each label', () => {
    expect(live(issued({ access: setOfThree }))).toEqual(['one', 'two', 'three'])
  })

  test('keeps the others when one is revoked', () => {
    const life = issued({ access: setOfThree })
    const two = life.token('two')
    life.advance(1)
    expect(life.revokeToken(two)).toMatchObject({
      outcome: 'changed',
      events: [{ type: 'grant.token-revoked', label: 'two', at: life.now() }],
    })
    expect(live(life)).toEqual(['one', 'three'])
    expect(status(life)).toBe('approved')
    expect(life.grant().tokens?.map(({ revokedAt }) => revokedAt)).toEqual([
      undefined,
      life.now(),
      undefined,
    ])
  })

  test('changes nothing when a revoked token is revoked again', () => {
    const life = issued({ access: setOfThree })
    const two = life.token('two')
    life.revokeToken(two)
    const before = life.grant()
    life.advance(1)
    expect(life.revokeToken(two)).toMatchObject({ outcome: 'unchanged' })
    expect(life.grant()).toBe(before)
  })

  test('does not rotate a revoked token, and still rotates the others', () => {
    const life = issued({ access: setOfThree })
    const two = life.token('two')
    life.revokeToken(two)
    expect(life.rotate(two)).toMatchObject({ refusal: 'token_revoked' })
    const three = life.token('three')
    expect(life.rotate(three)).toMatchObject({
      outcome: 'changed',
      events: [{ type: 'grant.rotated', label: 'three' }],
    })
    expect(life.token('three')).not.toEqual(three)
    expect(live(life)).toEqual(['one', 'three'])
  })

  test('ends when its last token is revoked', () => {
    const life = issued({ access: setOfThree })
    for (const label of ['one', 'three']) life.revokeToken(life.token(label))
    expect(live(life)).toEqual(['two'])
    expect(life.revokeToken(life.token('two'))).toMatchObject({
      outcome: 'changed',
      events: [{ type: 'grant.revoked' }],
    })
    expect(status(life)).toBe('revoked')
    expect(live(life)).toEqual([])
  })

  test('changes nothing when a token is revoked after the grant has ended', () => {
    const life = issued({ access: setOfThree })
    const one = life.token('one')
    life.revoke()
    const before = life.grant()
    expect(life.revokeToken(one)).toMatchObject({ outcome: 'unchanged' })
    expect(life.grant()).toBe(before)
  })

  test('keeps the salt of a rotation only for its token', () => {
    const life = issued({ access: setOfThree })
    life.rotate(life.token('one'))
    life.advance(retryMs)
    life.rotate(life.token('two'))
    const derived = life.grant().tokens?.map(({ derivation }) => derivation?.salt)
    expect(derived).toEqual([expect.any(String), expect.any(String), undefined])
  })

  test('without consent lasts until unusedLifetimeMs after its last token has expired', () => {
    const life = grantLife({
      kind: 'at once',
      access: labelled([outgoing, outgoing], ['one', 'two']),
    })
    life.advance(1_000)
    life.rotate(life.token('two'))
    life.advance(accessTokenLifetimeMs + unusedLifetimeMs - 1)
    expect(status(life)).toBe('approved')
    life.advance(1)
    expect(status(life)).toBe('expired')
  })
})

describe('the key that signs', () => {
  const key = { kid: 'new', x: 'new-key', thumbprint: 'thumbprint-of-the-new-key' }
  const continued = (client: GrantClient) => {
    const grant = requested('at once', { client })
    const [token] = grant.tokens ?? []
    if (token === undefined) throw new Error('a token has been issued')
    return decideGrant<'rotate'>(
      grant,
      {
        type: 'rotate',
        commandId: 'command-1',
        presented: { hash: token.hash, manage: token.manage },
        nextToken: { ...managed(1), salt: 'salt-1' },
        key,
      },
      start,
      grantPolicy,
    )
  }
  const byKey: GrantClient = { kid: 'k', thumbprint: 't', x: 'public-key' }

  test('is recorded when a grant of a wallet address changes', () => {
    const decision = continued(shop)
    expect(decision).toMatchObject({ ...changed, record: { client: { ...shop, ...key } } })
    expect(decision).toMatchObject({ events: [{ type: 'grant.key-changed' }, {}] })
  })

  test('is recorded with the same kid if it is another key, and not again', () => {
    const decision = continued({ ...shop, kid: key.kid })
    if (decision.outcome !== 'changed') throw new Error('the token is rotated')
    const { client } = decision.record
    expect(client).toEqual({ walletAddress: shop.walletAddress, ...key })
    expect(decision).toMatchObject({ events: [{ type: 'grant.key-changed' }, {}] })
    expect(continued(client)).toMatchObject({ events: [{ type: 'grant.rotated' }] })
  })

  test('is not recorded for a client that is identified by its key', () => {
    const decision = continued(byKey)
    expect(decision).toMatchObject({ ...changed, record: { client: byKey } })
    expect(decision).toMatchObject({ events: [{ type: 'grant.rotated' }] })
  })
})

describe('an account in another asset', () => {
  test('is refused with both assets', () => {
    const { debitAmount } = outgoing.limits ?? {}
    const { identifier: _identifier, ...open } = outgoing
    const life = pending({ access: [open] })
    expect(debitAmount).toMatchObject({ assetCode: 'USD' })
    const choice = { walletAddresses: [alice, savings], accounts, account: savings }
    expect(life.approve(choice)).toMatchObject({
      ...refusedWith('asset_mismatch'),
      reason: `debitAmount is in USD with scale 2, but ${savings} is in EUR with scale 2`,
    })
    expect(life.approve({ ...choice, account: alice })).toMatchObject(changed)
  })

  test('is refused if a limit of the owner is in another asset, for outgoing payments alone', () => {
    const { limits: _limits, identifier: _identifier, ...unlimited } = outgoing
    const limits = [{ debitAmount: dollars(5) }]
    const choice = { walletAddresses: [alice, savings], accounts, conditions: { limits } }
    const life = pending({ access: [unlimited] })
    expect(life.approve({ ...choice, account: savings })).toMatchObject({
      ...refusedWith('asset_mismatch'),
      reason: `a limit of the conditions is not in EUR with scale 2, the asset of ${savings}`,
    })
    expect(life.approve({ ...choice, account: alice })).toMatchObject(changed)
    const item = { type: 'incoming-payment', actions: ['create'], identifier: savings } as const
    expect(pending({ access: [item] }).approve(choice)).toMatchObject(changed)
  })
})

describe('an approval', () => {
  test('records the name of the client that the owner saw, if there was one', () => {
    const named = pending()
    named.approve({ clientName: 'Shoe shop' })
    expect(named.grant().consent).toMatchObject({ clientName: 'Shoe shop' })
    const unnamed = pending()
    unnamed.approve()
    expect(unnamed.grant().consent).not.toHaveProperty('clientName')
  })
})

describe('cancelling', () => {
  test('is not done yet when the host revoked a grant of which the client revoked one token', () => {
    const life = issued({ kind: 'poll', access: labelled([outgoing, outgoing], ['a', 'b']) })
    life.revokeToken(life.token('a'))
    life.revoke()
    expect(life.cancel()).toMatchObject(refusedWith('grant_finalized'))
  })
})
