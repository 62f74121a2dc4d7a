import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccessItem } from '../../src/core/access.js'
import { type Grant, grantStatus, type SubjectId } from '../../src/core/grant/record.js'
import { requestGrant } from '../../src/core/grant/request.js'
import { isActive } from '../../src/core/grant/rotation.js'
import { decideGrant, type GrantCommand, type GrantRefusals } from '../../src/core/grant.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
  alice,
  bob,
  grantPolicy,
  hashOf,
  type Kind,
  managed,
  nextTokensOf,
  outgoing,
  requestOf,
} from '../support/grants.js'

const { waitMs, retryMs, interactionLifetimeMs, retentionMs } = grantPolicy
const asked: SubjectId = { id: alice, format: 'uri' }
const told: SubjectId = { id: 'https://wallet.example/pairwise/17', format: 'uri' }

interface Asking {
  readonly kind?: Exclude<Kind, 'at once'>
  readonly access?: readonly AccessItem[]
  readonly subject?: SubjectId
}

/** A grant and its clock. Commits each decision. */
function life({ kind = 'redirect', access = [], subject }: Asking) {
  const named = subject === undefined ? {} : { subject }
  const created = requestGrant(requestOf(kind, { access, ...named }), startOfTests, grantPolicy)
  if (created.outcome === 'refused') throw new Error(created.reason)
  let grant: Grant = deepFreeze(created.record)
  let now: Instant = startOfTests + waitMs
  let commands = 0

  function decide<Type extends keyof GrantRefusals>(
    command: (commandId: string) => Extract<GrantCommand, { readonly type: Type }>,
  ) {
    const sent = deepFreeze(command(`command-${++commands}`))
    const decision = decideGrant<Type>(grant, sent, now, grantPolicy)
    if (decision.outcome === 'changed') grant = deepFreeze(decision.record)
    return decision
  }

  return {
    grant: () => grant,
    status: () => grantStatus(grant, now, grantPolicy),
    now: () => now,
    pass: (ms: number) => {
      now += ms
    },
    decide,
    approve: (more: { subject?: SubjectId; access?: readonly AccessItem[]; owner?: string } = {}) =>
      decide<'approve'>((commandId) => {
        const { owner: resourceOwner = 'alice', ...rest } = more
        const walletAddresses = [alice]
        return { type: 'approve', commandId, resourceOwner, walletAddresses, refHash, ...rest }
      }),
    continue: (presented?: string) =>
      decide<'continue'>((commandId) => {
        const ref = presented === undefined ? {} : { refHash: presented }
        const next = nextTokensOf(commands, grant.requested)
        return { type: 'continue', commandId, ...ref, ...next }
      }),
  }
}

const refHash = hashOf('ref')

type Life = ReturnType<typeof life>

describe('a grant of only a subject', () => {
  function approved(kind: Asking['kind'] = 'redirect') {
    const made = life({ kind, subject: asked })
    expect(made.approve({ subject: told }).outcome).toBe('changed')
    return made
  }

  test('is pending without consent and does not disclose the owner', () => {
    const { grant, status } = life({ subject: asked })
    expect(grant()).toMatchObject({ requested: [], requestedSubject: asked })
    expect(grant()).not.toHaveProperty('subject')
    expect(status()).toBe('pending')
  })

  test('discloses the subject after consent, and has no access', () => {
    const { grant, status } = approved()
    expect(grant()).toMatchObject({ subject: told, granted: [] })
    expect(status()).toBe('approved')
  })

  test.each(['redirect', 'poll'] as const)('is issued without a token (%s)', (kind) => {
    const made = approved(kind)
    const decision = made.continue(kind === 'poll' ? undefined : refHash)
    expect(decision).toMatchObject({
      ok: true,
      outcome: 'changed',
      events: [{ type: 'grant.issued' }],
    })
    expect(made.grant()).toMatchObject({ issuedAt: made.now(), subject: told })
    expect(made.grant()).not.toHaveProperty('tokens')
    expect(made.status()).toBe('issued')
    for (const { hash } of [0, 1, 2].map((n) => managed(n))) {
      expect(isActive(made.grant(), hash, made.now(), grantPolicy)).toBe(false)
    }
  })

  test('repeats its response within the retry time, and then ends', () => {
    const made = approved()
    made.continue(refHash)
    made.pass(retryMs - 1)
    expect(made.continue(refHash)).toEqual({ ok: true, outcome: 'unchanged', record: made.grant() })
    expect(made.continue(hashOf('another'))).toMatchObject({ refusal: 'interact_ref_used' })
    made.pass(1)
    expect(made.status()).toBe('ended')
    expect(made.continue(refHash)).toMatchObject({ refusal: 'grant_gone' })
  })

  test('is retained as long as other ended grants, unlike a grant with access', () => {
    const made = approved()
    expect(made.grant()).not.toHaveProperty('retainUntil')
    made.continue(refHash)
    const retainUntil = made.now() + retryMs + retentionMs
    expect(made.grant()).toMatchObject({ retainUntil, dueAt: retainUntil })
  })

  test('is not approved when the owner withholds the subject, because nothing would be granted', () => {
    const made = life({ subject: asked })
    expect(made.approve()).toMatchObject({ refusal: 'nothing_granted' })
    expect(made.status()).toBe('pending')
  })

  test('can be cancelled and revoked like any other grant, before and after it was issued', () => {
    for (const type of ['cancel', 'revoke'] as const) {
      for (const first of [() => undefined, (made: Life) => made.continue(refHash)]) {
        const made = approved()
        first(made)
        expect(made.decide((commandId) => ({ type, commandId })).outcome).toBe('changed')
        expect(made.continue(refHash)).toMatchObject({ refusal: 'grant_gone' })
      }
    }
  })
})

describe('a grant of a subject with access', () => {
  const both = { access: [outgoing], subject: asked }

  test('is issued with a token and lasts like any grant with consent', () => {
    const made = life(both)
    made.approve({ subject: told })
    made.continue(refHash)
    expect(made.grant()).toMatchObject({ subject: told, granted: [outgoing] })
    expect(made.grant()).toHaveProperty('tokens')
    expect(made.grant()).not.toHaveProperty('endsAt')
    made.pass(retryMs)
    expect(made.status()).toBe('issued')
  })

  test('can be approved without the subject', () => {
    const made = life(both)
    expect(made.approve().outcome).toBe('changed')
    expect(made.grant()).not.toHaveProperty('subject')
    expect(made.grant()).toMatchObject({ granted: [outgoing] })
  })

  test('can be approved for the subject alone', () => {
    const made = life(both)
    expect(made.approve({ subject: told, access: [] }).outcome).toBe('changed')
    made.continue(refHash)
    expect(made.grant()).not.toHaveProperty('tokens')
    expect(made.status()).toBe('issued')
  })

  test('is not approved for nothing', () => {
    expect(life(both).approve({ access: [] })).toMatchObject({ refusal: 'nothing_granted' })
  })

  test('keeps the subject of its first approval when the owner approves it again', () => {
    const made = life(both)
    made.approve({ subject: told })
    expect(made.approve({ subject: { id: bob, format: 'uri' } }).outcome).toBe('changed')
    expect(made.grant().subject).toEqual(told)
  })

  test('rejects a repeated approval that adds or omits the subject', () => {
    const named = life(both)
    named.approve({ subject: told })
    expect(named.approve()).toMatchObject({ refusal: 'decided_otherwise' })
    const unnamed = life(both)
    unnamed.approve()
    expect(unnamed.approve({ subject: told })).toMatchObject({ refusal: 'decided_otherwise' })
  })
})

test('a grant without a subject request never discloses a subject, even if one is supplied', () => {
  const made = life({ access: [outgoing] })
  expect(made.approve({ subject: told }).outcome).toBe('changed')
  expect(made.grant()).not.toHaveProperty('subject')
  expect(made.approve().outcome).toBe('changed')
})

describe('the list of an owner’s grants', () => {
  test('contains a grant from its approval on, in order of approval time, whatever happens afterwards', () => {
    const made = life({ access: [outgoing] })
    expect(made.grant()).not.toHaveProperty('lists')
    const approval = { type: 'approve', resourceOwner: 'alice', walletAddresses: [alice] } as const
    const at = made.now()
    made.decide<'approve'>((commandId) => ({
      ...approval,
      commandId,
      refHash,
      listName: 'list of alice',
    }))
    const lists = [{ list: 'list of alice', at }]
    made.pass(1_000)
    made.decide<'approve'>((commandId) => ({
      ...approval,
      commandId,
      refHash,
      listName: 'list of alice',
    }))
    expect(made.grant().lists).toEqual(lists)
    made.continue(refHash)
    made.decide<'revoke'>((commandId) => ({ type: 'revoke', commandId }))
    expect(made.grant()).toMatchObject({ state: 'finalized', lists })
  })

  test('does not contain the grant when the approval was refused', () => {
    const made = life({ access: [outgoing] })
    made.decide<'approve'>((commandId) => ({
      type: 'approve',
      commandId,
      resourceOwner: 'bob',
      walletAddresses: [bob],
      listName: 'list of bob',
      refHash,
    }))
    expect(made.grant()).not.toHaveProperty('lists')
  })
})

/** The events of a grant's life, each with a different name for its owner. */
const moves = {
  approve: (made: Life, subject: SubjectId) => made.approve({ subject }),
  'approve unnamed': (made: Life) => made.approve(),
  'name alone': (made: Life, subject: SubjectId) => made.approve({ subject, access: [] }),
  present: (made: Life) => made.continue(refHash),
  poll: (made: Life) => made.continue(),
  cancel: (made: Life) => made.decide<'cancel'>((commandId) => ({ type: 'cancel', commandId })),
  wait: (made: Life) => made.pass(interactionLifetimeMs / 3),
}
const move = fc.constantFrom(...(Object.keys(moves) as (keyof typeof moves)[]))

test('no history discloses a subject before consent, without a request, or with two values', () => {
  const met = new Set<string>()
  const asking = fc.record(
    {
      kind: fc.constantFrom('redirect' as const, 'poll' as const),
      access: fc.constantFrom<readonly AccessItem[]>([], [outgoing]),
      subject: fc.constant(asked),
    },
    { requiredKeys: ['kind', 'access'] },
  )
  fc.assert(
    fc.property(asking, fc.array(move, { maxLength: 8 }), (how, happened) => {
      const made = life(how)
      const names = new Set<string>()
      for (const [index, step] of happened.entries()) {
        const before = made.grant()
        moves[step](made, { id: `https://wallet.example/name-${index}`, format: 'uri' })
        const { subject, consent, granted, tokens, issuedAt, state } = made.grant()
        if (subject !== undefined) names.add(subject.id)
        if (consent === undefined || how.subject === undefined) expect(subject).toBeUndefined()
        if (before.subject !== undefined) expect(subject).toEqual(before.subject)
        // An approval grants something, and a grant is issued once, either with a token or without.
        if (consent !== undefined) expect([subject, ...(granted ?? [])].some(Boolean)).toBe(true)
        expect(tokens !== undefined && issuedAt !== undefined).toBe(false)
        if (tokens !== undefined) expect(granted).not.toEqual([])
        if (before.issuedAt !== undefined) expect(issuedAt).toBe(before.issuedAt)
        const what = tokens !== undefined ? 'token' : issuedAt !== undefined ? 'name' : 'nothing'
        met.add(`${state}, ${subject === undefined ? 'unnamed' : 'named'}, issued ${what}`)
      }
      expect(names.size).toBeLessThanOrEqual(1)
    }),
    { numRuns: 1_500 },
  )
  for (const state of ['approved', 'finalized']) {
    for (const issued of ['named, issued name', 'named, issued token', 'unnamed, issued token']) {
      expect(met).toContain(`${state}, ${issued}`)
    }
  }
  expect(met).not.toContain('approved, unnamed, issued name')
})
