import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccessItem } from '../../src/core/access.js'
import type { SubjectId } from '../../src/core/grant/record.js'
import { grantStatus, isActive } from '../../src/core/grant/status.js'
import {
  alice,
  bob,
  grantLife,
  grantPolicy,
  hashOf,
  type Kind,
  type LifeOptions,
  managed,
  outgoing,
} from '../support/grants.js'

const { waitMs, retryMs, interactionLifetimeMs, retentionMs } = grantPolicy
const asked: SubjectId = { id: alice, format: 'uri' }
const told: SubjectId = { id: 'https://wallet.example/pairwise/17', format: 'uri' }

/** A grant whose wait is over, of only a subject unless it has access. */
function life({ access = [], ...asked }: LifeOptions) {
  const made = grantLife({ access, ...asked })
  made.advance(waitMs)
  return {
    ...made,
    status: () => grantStatus(made.grant(), made.now()),
    continue: () => (asked.kind === 'poll' ? made.poll() : made.present()),
  }
}

type Life = ReturnType<typeof life>

describe('a grant of only a subject', () => {
  function approved(kind: Kind = 'redirect') {
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
    const decision = made.continue()
    expect(decision).toMatchObject({
      ok: true,
      outcome: 'changed',
      events: [{ type: 'grant.issued' }],
    })
    expect(made.grant()).toMatchObject({ issuedAt: made.now(), subject: told })
    expect(made.grant()).not.toHaveProperty('tokens')
    expect(made.status()).toBe('approved')
    for (const { hash } of [0, 1, 2].map((n) => managed(n))) {
      expect(isActive(made.grant(), hash, made.now())).toBe(false)
    }
  })

  test('repeats its response within the retry time, and then ends', () => {
    const made = approved()
    made.present()
    made.advance(retryMs - 1)
    expect(made.present()).toEqual({ ok: true, outcome: 'unchanged', record: made.grant() })
    expect(made.present(hashOf('another'))).toMatchObject({ refusal: 'interact_ref_used' })
    made.advance(1)
    expect(made.status()).toBe('expired')
    expect(made.present()).toMatchObject({ refusal: 'grant_gone' })
  })

  test('is retained as long as other ended grants, unlike a grant with access', () => {
    const made = approved()
    expect(made.grant()).not.toHaveProperty('retainUntil')
    made.present()
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
      for (const first of [() => undefined, (made: Life) => made.present()]) {
        const made = approved()
        first(made)
        expect(made[type]().outcome).toBe('changed')
        expect(made.present()).toMatchObject({ refusal: 'grant_gone' })
      }
    }
  })
})

describe('a grant of a subject with access', () => {
  const both = { access: [outgoing], subject: asked }

  test('is issued with a token and lasts like any grant with consent', () => {
    const made = life(both)
    made.approve({ subject: told })
    made.present()
    expect(made.grant()).toMatchObject({ subject: told, granted: [outgoing] })
    expect(made.grant()).toHaveProperty('tokens')
    expect(made.grant()).not.toHaveProperty('expiresAt')
    made.advance(retryMs)
    expect(made.status()).toBe('approved')
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
    made.present()
    expect(made.grant()).not.toHaveProperty('tokens')
    expect(made.status()).toBe('approved')
  })

  test('is not approved for nothing', () => {
    expect(life(both).approve({ access: [] })).toMatchObject({ refusal: 'nothing_granted' })
  })

  test('keeps the subject of its first approval when the owner approves it again', () => {
    const made = life(both)
    made.approve({ subject: told })
    expect(made.approve({ subject: { id: bob, format: 'uri' } }).outcome).toBe('unchanged')
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
  const approved = made.grant()
  expect(approved).not.toHaveProperty('subject')
  for (const repeated of [{}, { subject: told }, { subject: asked }]) {
    expect(made.approve(repeated)).toEqual({ ok: true, outcome: 'unchanged', record: approved })
  }
  expect(made.present(made.refHash(1)).outcome).toBe('changed')
  expect(made.grant()).toMatchObject({ issuedAt: made.now(), granted: [outgoing] })
  expect(made.grant()).not.toHaveProperty('subject')
})

describe('the list of an owner’s grants', () => {
  test('contains a grant from its approval on, in order of approval time, whatever happens afterwards', () => {
    const made = life({ access: [outgoing] })
    expect(made.grant()).not.toHaveProperty('lists')
    const at = made.now()
    made.approve({ listName: 'list of alice' })
    const lists = [{ list: 'list of alice', at }]
    made.advance(1_000)
    made.approve({ listName: 'list of alice' })
    expect(made.grant().lists).toEqual(lists)
    made.present()
    made.revoke()
    expect(made.grant()).toMatchObject({ finalized: { reason: 'revoked' }, lists })
  })

  test('does not contain the grant when the approval was refused', () => {
    const made = life({ access: [outgoing] })
    made.approve({ owner: 'bob', walletAddresses: [bob], listName: 'list of bob' })
    expect(made.grant()).not.toHaveProperty('lists')
  })
})

/** The events of a grant's life, each with a different name for its owner. */
const moves = {
  approve: (made: Life, subject: SubjectId) => made.approve({ subject }),
  'approve unnamed': (made: Life) => made.approve(),
  'name alone': (made: Life, subject: SubjectId) => made.approve({ subject, access: [] }),
  present: (made: Life) => made.present(),
  poll: (made: Life) => made.poll(),
  cancel: (made: Life) => made.cancel(),
  wait: (made: Life) => made.advance(interactionLifetimeMs / 3),
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
        const { subject, consent, granted, tokens, issuedAt, finalized } = made.grant()
        const state = finalized === undefined ? 'approved' : 'finalized'
        if (subject !== undefined) names.add(subject.id)
        if (consent === undefined || how.subject === undefined) expect(subject).toBeUndefined()
        if (before.subject !== undefined) expect(subject).toEqual(before.subject)
        // An approval grants something, and a grant is issued once, with a token or without.
        if (consent !== undefined) expect([subject, ...(granted ?? [])].some(Boolean)).toBe(true)
        if (tokens !== undefined) expect(granted).not.toEqual([])
        if (tokens !== undefined) expect(issuedAt).toBeDefined()
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
