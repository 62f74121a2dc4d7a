import { describe, expect, test } from 'vitest'
import { type TokenItem, tokenItem } from '../../src/core/access.js'
import { grantStatus } from '../../src/core/grant/record.js'
import { isActive } from '../../src/core/grant/rotation.js'
import { recordsSignature } from '../../src/core/grant/token.js'
import { type GrantLife, grantLife, grantPolicy, labelled, outgoing } from '../support/grants.js'

const access = labelled([outgoing, outgoing, outgoing], ['one', 'two', 'three'])
const incoming: readonly TokenItem[] = ['one', 'two'].map((label) => ({
  label,
  type: 'incoming-payment',
  actions: ['create'],
}))

/** A grant whose three tokens have been issued. */
function issued(): GrantLife {
  const life = grantLife({ access })
  life.advance(grantPolicy.waitMs)
  life.approve()
  life.present()
  return life
}

/** The labels of the tokens that can be used. */
function live(life: GrantLife): readonly (string | undefined)[] {
  const { tokens = [] } = life.grant()
  return tokens
    .filter(({ hash }) => isActive(life.grant(), hash, life.now(), life.policy))
    .map(({ label }) => label)
}

describe('a grant with several tokens', () => {
  test('issues one for each label', () => {
    expect(live(issued())).toEqual(['one', 'two', 'three'])
  })

  test('keeps the others when one is revoked', () => {
    const life = issued()
    const two = life.token('two')
    life.advance(1)
    expect(life.revokeToken(two)).toMatchObject({
      outcome: 'changed',
      events: [{ type: 'grant.token-revoked', label: 'two', at: life.now() }],
    })
    expect(live(life)).toEqual(['one', 'three'])
    expect(grantStatus(life.grant(), life.now(), life.policy)).toBe('issued')
    expect(life.grant().tokens?.map(({ revokedAt }) => revokedAt)).toEqual([
      undefined,
      life.now(),
      undefined,
    ])
  })

  test('changes nothing when a revoked token is revoked again', () => {
    const life = issued()
    const two = life.token('two')
    life.revokeToken(two)
    const before = life.grant()
    life.advance(1)
    expect(life.revokeToken(two)).toMatchObject({ outcome: 'unchanged' })
    expect(life.grant()).toBe(before)
  })

  test('does not rotate a revoked token, and still rotates the others', () => {
    const life = issued()
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
    const life = issued()
    for (const label of ['one', 'three']) life.revokeToken(life.token(label))
    expect(live(life)).toEqual(['two'])
    expect(life.revokeToken(life.token('two'))).toMatchObject({
      outcome: 'changed',
      events: [{ type: 'grant.revoked' }],
    })
    expect(grantStatus(life.grant(), life.now(), life.policy)).toBe('token-revoked')
    expect(live(life)).toEqual([])
  })

  test('changes nothing when a token is revoked after the grant has ended', () => {
    const life = issued()
    const one = life.token('one')
    life.revoke()
    const before = life.grant()
    expect(life.revokeToken(one)).toMatchObject({ outcome: 'unchanged' })
    expect(life.grant()).toBe(before)
  })

  test('keeps the salt of a rotation only for its token', () => {
    const life = issued()
    life.rotate(life.token('one'))
    life.advance(grantPolicy.retryMs)
    life.rotate(life.token('two'))
    const derived = life.grant().tokens?.map(({ derivation }) => derivation?.salt)
    expect(derived).toEqual([expect.any(String), expect.any(String), undefined])
  })

  test('without consent lasts until unusedLifetimeMs after its last token has expired', () => {
    const life = grantLife({ kind: 'at once', access: incoming })
    life.advance(1_000)
    life.rotate(life.token('two'))
    const { accessTokenLifetimeMs, unusedLifetimeMs } = grantPolicy
    life.advance(accessTokenLifetimeMs + unusedLifetimeMs - 1)
    expect(grantStatus(life.grant(), life.now(), life.policy)).toBe('issued')
    life.advance(1)
    expect(grantStatus(life.grant(), life.now(), life.policy)).toBe('ended')
  })
})

describe('the signature of a request', () => {
  test('is recorded while a current token is derived from it', () => {
    const life = issued()
    const command = { type: 'rotate', commandId: 'signed', signature: 'a signature' } as const
    const nextToken = { hash: 'a hash', manage: 'a path', salt: 'a salt' }
    life.decide<'rotate'>({ ...command, presented: life.token('one'), nextToken })
    expect(recordsSignature(life.grant(), command)).toBe(true)
    expect(recordsSignature(life.grant(), { ...command, signature: 'another' })).toBe(false)
    expect(recordsSignature(life.grant(), { commandId: 'signed' })).toBe(false)
  })
})

describe('an item as hosts see it', () => {
  test('has the label of its token if it has one, and no internal members', () => {
    const item = { ...outgoing, itemId: '1', intervalCounting: 'occurrences' }
    expect(tokenItem(item)).toStrictEqual(outgoing)
    expect(tokenItem({ label: 'one', ...item })).toEqual({ label: 'one', ...outgoing })
  })
})
