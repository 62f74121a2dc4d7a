import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AccessItem, type GrantedItem, itemsOf, labelsOf } from '../../src/core/access.js'
import { sameAsset } from '../../src/core/amount.js'
import type { Grant } from '../../src/core/grant/record.js'
import { requestGrant } from '../../src/core/grant/request.js'
import { type GrantStatus, grantStatus, isActive } from '../../src/core/grant/status.js'
import { derivationsOf } from '../../src/core/grant/version.js'
import { decideGrant, type GrantCommand, type GrantRefusals } from '../../src/core/grant.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
  type ApproveOptions,
  accessItem,
  alice,
  choices,
  chosen,
  endingHistory,
  grantLife,
  grantPolicy,
  type History,
  hashOf,
  history,
  isAccountless,
  isAttenuated,
  isNarrower,
  lastWindowEndsAt,
  nextTokensOf,
  offer,
  offered,
  outgoing,
  type PresentedToken,
  partlyRevoked,
  referenceOf,
  requestOf,
  savings,
  type Turn,
} from '../support/grants.js'
import { isLong, isShort, runs } from '../support/runs.js'
import { unicodeText } from '../support/unicode-text.js'

const some = { numRuns: runs(500, 200) }

function decide(grant: Grant, command: GrantCommand, now: Instant) {
  return decideGrant<keyof GrantRefusals>(grant, command, now, grantPolicy)
}

/** Replays the history and returns the grant at each instant, in chronological order. */
function moments({ created, turns, endedAt }: History): { grant: Grant; now: Instant }[] {
  const met = turns.flatMap(({ at, before, after }) => [
    { grant: before, now: at },
    { grant: after, now: at },
  ])
  const last = turns.at(-1)?.after ?? created
  const later = [0, 1, 599_999, 600_000, 86_400_000].map((ms) => ({
    grant: last,
    now: endedAt + ms,
  }))
  return [{ grant: created, now: created.createdAt }, ...met, ...later]
}

function ofTurns(what: (turn: Turn, index: number, history: History) => void) {
  return (history: History) => {
    for (const [index, turn] of history.turns.entries()) what(turn, index, history)
  }
}

let played: readonly History[] = []

/**
 * Requires a law of some histories: in `npm test` of the same for each law, because to play them takes longest.
 * Mutation testing runs only the tests that execute the changed code, so each plays its own.
 */
function inEveryHistory(law: (history: History) => void, { numRuns } = some): void {
  const property = fc.property(history, law)
  if (!isShort) {
    fc.assert(property, { numRuns })
    return
  }
  if (played.length < numRuns) played = fc.sample(history, numRuns)
  try {
    for (const each of played.slice(0, numRuns)) law(each)
  } catch (error) {
    // Shrinks what was found.
    fc.assert(property, { numRuns })
    throw error
  }
}

describe('the generated histories', () => {
  test('reach every accepted and every refused outcome of each command', () => {
    const met = new Set<string>()
    for (const { turns } of fc.sample(history, { numRuns: isLong ? 3000 : 500, seed: 1 })) {
      for (const { command, decision } of turns) {
        const as = decision.outcome === 'refused' ? decision.refusal : decision.outcome
        met.add(`${command.type}: ${as}`)
      }
    }
    expect([...met].sort()).toEqual(
      [
        ...of('approve', 'changed', 'unchanged', 'interaction_unknown', 'interaction_expired'),
        ...of('approve', 'interaction_over', 'decided_otherwise', 'not_the_owner'),
        ...of('approve', 'access_widened', 'nothing_granted', 'identifier_required'),
        ...of('approve', 'asset_mismatch'),
        ...of('deny', 'changed', 'unchanged', 'interaction_unknown', 'interaction_expired'),
        ...of('deny', 'interaction_over', 'decided_otherwise'),
        ...of('continue', 'changed', 'unchanged', 'too_fast', 'poll_with_finish', 'grant_gone'),
        ...of('continue', 'grant_denied', 'interaction_timed_out', 'interact_ref_wrong'),
        ...of('continue', 'interact_ref_used', 'already_issued'),
        ...of('rotate', 'changed', 'unchanged', 'token_not_managed_here', 'token_revoked'),
        ...of('rotate', 'grant_over'),
        ...of('revoke-token', 'changed', 'unchanged', 'token_not_managed_here'),
        ...of('cancel', 'changed', 'unchanged', 'grant_finalized'),
        ...of('revoke', 'changed', 'unchanged'),
        ...of('amend', 'changed', 'unchanged', 'grant_pending', 'grant_over', 'access_widened'),
        ...of('amend', 'nothing_granted', 'conditions_widened', 'limits_contradicted'),
        ...of('amend', 'asset_mismatch'),
      ].sort(),
    )
  })

  function of(type: GrantCommand['type'], ...outcomes: string[]): string[] {
    return outcomes.map((outcome) => `${type}: ${outcome}`)
  }
})

describe('the key that signs', () => {
  test('is recorded with each change by continuation or rotation, and changes nothing else', () => {
    const keyOf = ([kid, x]: readonly [string, string]) => ({
      kid,
      x,
      thumbprint: `thumbprint-of-the-${x}`,
    })
    const names = fc.tuple(
      fc.constantFrom('key-of-the-shop', 'another'),
      fc.constantFrom('shop', 'another'),
    )
    const key = names.map(keyOf)
    fc.assert(
      fc.property(history, fc.infiniteStream(key), fc.boolean(), (history, keys, isByKey) => {
        const { walletAddress, ...ownKey } = history.created.client
        const client = isByKey ? ownKey : { ...ownKey, walletAddress }
        let grant = { ...history.created, client } as Grant
        for (const { command, at, decision } of history.turns) {
          const signs = command.type === 'continue' || command.type === 'rotate'
          const signer = keys.next().value
          const decided = decide(grant, signs ? { ...command, key: signer } : command, at)
          if (decided.outcome === 'refused' || decision.outcome === 'refused') {
            expect(decided).toEqual(decision)
            continue
          }
          const isRecorded = decided.outcome === 'changed' && signs && !isByKey
          const recorded = isRecorded ? { ...grant.client, ...signer } : grant.client
          expect(decided.record).toEqual({ ...decision.record, client: recorded })
          const types = (each: typeof decided) =>
            each.outcome === 'changed' ? each.events.map(({ type }) => type) : each.outcome
          const isNew = !isDeepStrictEqual(recorded, grant.client)
          expect(types(decided)).toEqual(
            isNew ? ['grant.key-changed', ...types(decision)] : types(decision),
          )
          grant = decided.record
        }
      }),
      some,
    )
  })
})

describe('decisions are total and pure', () => {
  test('the same command on the same grant at the same time has the same outcome', () => {
    inEveryHistory(
      ofTurns(({ before, command, at, decision }) => {
        // The records of the history are frozen, so a mutation would already have thrown.
        const again = decide(structuredClone(before), structuredClone(command), at)
        expect(again).toStrictEqual(decision)
      }),
    )
  })

  test('no command throws on a malformed record', () => {
    fc.assert(
      fc.property(history, fc.gen(), ({ turns }, generate) => {
        for (const turn of turns) {
          const grant = deepFreeze(malformed(turn.before, generate))
          const command = deepFreeze(malformed(turn.command, generate))
          const now = generate(() => anyNumber)
          const decision = decide(grant, command, now)
          expect(decide(structuredClone(grant), structuredClone(command), now)).toEqual(decision)
        }
      }),
      { numRuns: runs(1000, 100) },
    )
  })

  test('no command throws on an invalid amount', () => {
    const amountText = fc.oneof(fc.string(), amountLike)
    fc.assert(
      fc.property(amountText, amountText, amountText, (requested, granted, again) => {
        const life = grantLife({ access: [limitedTo(requested)] })
        life.approve({ access: [limitedTo(granted)] })
        life.approve({ access: [limitedTo(again)] })
        life.approve()
      }),
      { numRuns: runs(1000) },
    )
  })

  test('records and events are plain JSON without undefined', () => {
    inEveryHistory(({ created, turns, events }) => {
      for (const value of [created, ...turns.map(({ after }) => after), ...events]) {
        expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value)
      }
    })
  })
})

describe('the version', () => {
  test('increases by one with each change, which records the command id', () => {
    inEveryHistory(
      ofTurns(({ before, command, decision, after }) => {
        if (decision.outcome !== 'changed') return
        expect(after).toMatchObject({
          id: before.id,
          version: before.version + 1,
          commandId: command.commandId,
          createdAt: before.createdAt,
          client: before.client,
          requested: before.requested,
        })
        for (const event of decision.events) expect(event.grantId).toBe(before.id)
      }),
    )
  })

  test('stays the same when a command is unchanged or refused', () => {
    inEveryHistory(
      ofTurns(({ before, decision, after }) => {
        if (decision.outcome === 'unchanged') expect(decision.record).toStrictEqual(before)
        if (decision.outcome !== 'changed') expect(after).toStrictEqual(before)
      }),
    )
  })
})

describe('commands are idempotent', () => {
  test('repeating a command on its own outcome is unchanged, immediately and at any later time', () => {
    inEveryHistory(
      ofTurns(({ command, decision, after, at }) => {
        if (decision.outcome !== 'changed') return
        for (const later of [0, 1, grantPolicy.retryMs, 1e12]) {
          expect(decide(after, command, at + later)).toEqual({
            ok: true,
            outcome: 'unchanged',
            record: after,
          })
        }
      }),
    )
  })
})

describe('the status of a grant', () => {
  const met = new Set<string>()

  /** What each operation says at a moment, if it is asked with the right credentials and after the wait. */
  const operations = {
    continuation(grant: Grant, at: Instant) {
      // In the past, so that the wait is over.
      const waited = { ...grant.continuation, acceptedAt: Number.MIN_SAFE_INTEGER }
      const asked = { ...grant, continuation: waited, commandId: 'before' }
      const { interaction } = grant
      const refHash = interaction?.finish && (interaction.refHash ?? hashOf('no reference yet'))
      const command = { type: 'continue', commandId: 'now', salt: 'salt', nextTokens: [] } as const
      const decision = decide(asked, { ...command, ...(refHash && { refHash }) }, at)
      return decision.ok ? decision.outcome : decision.refusal
    },
    rotation(grant: Grant, at: Instant) {
      const token = grant.tokens?.find(({ revokedAt }) => revokedAt === undefined)
      if (token === undefined) return 'no token'
      const { hash, manage } = token
      const nextToken = { hash: hashOf('new'), manage: 'new', salt: 'salt' }
      const presented = { hash, manage }
      const decision = decide(grant, { type: 'rotate', commandId: 'now', presented, nextToken }, at)
      return decision.ok ? decision.outcome : decision.refusal
    },
    cancellation(grant: Grant, at: Instant) {
      const decision = decide(grant, { type: 'cancel', commandId: 'now' }, at)
      return decision.ok ? decision.outcome : decision.refusal
    },
    revocation: (grant: Grant, at: Instant) =>
      decide(grant, { type: 'revoke', commandId: 'now' }, at).outcome,
    denial(grant: Grant, at: Instant) {
      if (grant.interaction === undefined) return 'no interaction'
      const decision = decide(grant, { type: 'deny', commandId: 'now', ...referenceOf(0) }, at)
      return decision.ok ? decision.outcome : decision.refusal
    },
  }

  /** A grant that is over for its client, with what a continuation says. */
  const over = (continuation: string, ...cancellation: readonly string[]) => ({
    continuation: [continuation],
    rotation: ['no token', 'grant_over'],
    cancellation: cancellation.length > 0 ? cancellation : ['grant_finalized'],
    revocation: ['unchanged'],
    denial: ['no interaction', 'interaction_over'],
  })
  const expected: Readonly<
    Record<GrantStatus, { readonly [operation: string]: readonly string[] }>
  > = {
    pending: {
      continuation: ['changed', 'interact_ref_wrong'],
      rotation: ['no token'],
      cancellation: ['changed'],
      revocation: ['changed'],
      denial: ['changed'],
    },
    approved: {
      continuation: ['changed', 'unchanged', 'interact_ref_used', 'already_issued'],
      rotation: ['no token', 'changed'],
      cancellation: ['changed'],
      revocation: ['changed'],
      denial: ['decided_otherwise', 'interaction_over', 'no interaction'],
    },
    denied: { ...over('grant_denied'), denial: ['unchanged'] },
    cancelled: over('grant_gone', 'unchanged'),
    revoked: over('grant_gone', 'grant_finalized', 'unchanged'),
    expired: over('grant_gone'),
    'interaction-expired': { ...over('interaction_timed_out'), denial: ['interaction_expired'] },
  }

  test('agrees with what continuation, rotation, introspection and every way to end the grant do', () => {
    let revoked = 0
    fc.assert(
      fc.property(fc.oneof(history, endingHistory, partlyRevoked), (history) => {
        for (const { grant, now } of moments(history)) {
          const status = grantStatus(grant, now)
          met.add(status)
          for (const [name, ask] of Object.entries(operations)) {
            expect(expected[status][name]).toContain(ask(grant, now))
          }
          for (const { hash, revokedAt, expiresAt } of grant.tokens ?? []) {
            const isUsable = status === 'approved' && revokedAt === undefined && now < expiresAt
            expect(isActive(grant, hash, now)).toBe(isUsable)
            if (status === 'approved' && revokedAt !== undefined) revoked += 1
          }
        }
      }),
      some,
    )
    expect([...met].sort()).toEqual(Object.keys(expected).sort())
    expect(revoked).toBeGreaterThan(0)
  })
})

const anEnd = ['denied', 'cancelled', 'revoked', 'interaction-expired', 'expired']

describe('ended grants are terminal', () => {
  // Like a denial, the expiry of the interaction and the end of the lifetime finalize a grant.
  test('a grant that has expired never changes again', () => {
    inEveryHistory(
      ofTurns(({ before, at, decision }) => {
        if (anEnd.includes(grantStatus(before, at))) {
          expect(decision.outcome).not.toBe('changed')
        }
      }),
    )
  })

  test('a grant that has ended stays ended, and only a command changes how it ended', () => {
    inEveryHistory((history) => {
      let end: string | undefined
      for (const { grant, now } of moments(history)) {
        const status = grantStatus(grant, now)
        if (end !== undefined) expect(anEnd).toContain(status)
        if (end !== undefined && grant.finalized === undefined) expect(status).toBe(end)
        if (anEnd.includes(status)) end = status
      }
    })
  })
})

describe('at most one token of a label is active', () => {
  test('at every instant at most one of all tokens that were issued for a label is active', () => {
    let most = 0
    inEveryHistory((history) => {
      for (const { grant, now } of moments(history)) {
        const active = history.tokens.filter(({ hash }) => isActive(grant, hash, now))
        const labels = active.map(({ label }) => label)
        expect(new Set(labels).size).toBe(labels.length)
        most = Math.max(most, labels.length)
      }
    })
    expect(most).toBeGreaterThan(1)
  })

  test('no other value in the grant is accepted as a token', () => {
    inEveryHistory(
      (history) => {
        const { tokens, secrets } = history
        const hashes = tokens.map(({ hash }) => hash)
        const others = ['', ...secrets.filter((secret) => !hashes.includes(secret))]
        for (const { grant, now } of moments(history)) {
          for (const other of others) expect(isActive(grant, other, now)).toBe(false)
        }
      },
      { numRuns: runs(200) },
    )
  })

  test('a replaced token yields the same successor as long as that is valid, and is never active', () => {
    let repeats = 0
    inEveryHistory(
      ofTurns(({ command, decision, after, at }) => {
        if (command.type !== 'rotate' || decision.outcome !== 'changed') return
        const token = after.tokens?.find(({ hash }) => hash === command.nextToken.hash)
        if (token === undefined || token.expiresAt <= at) throw new Error('nothing was issued')
        const again = { ...command, commandId: 'again' }
        for (const now of [at, Math.floor((at + token.expiresAt) / 2), token.expiresAt - 1]) {
          const repeat = decide(after, again, now)
          expect(repeat).toStrictEqual({ ok: true, outcome: 'unchanged', record: after })
          expect(isActive(after, token.hash, now)).toBe(true)
          expect(isActive(after, command.presented.hash, now)).toBe(false)
          repeats += 1
        }
        const later = Math.max(token.expiresAt, at + grantPolicy.retryMs)
        expect(decide(after, again, later)).toMatchObject({ ok: false })
      }),
    )
    expect(repeats).toBeGreaterThan(20)
  })
})

function activeTokens({ tokens }: History, grant: Grant, now: Instant): string[] {
  return tokens.map(({ hash }) => hash).filter((hash) => isActive(grant, hash, now))
}

describe('the tokens of a set', () => {
  test('are those with granted access, each with the label of its items', () => {
    let sets = 0
    inEveryHistory((history) => {
      for (const { grant } of moments(history)) {
        const { tokens, granted = [] } = grant
        if (tokens === undefined) continue
        const labels = tokens.map(({ label }) => label)
        expect([...labels].sort()).toEqual([...labelsOf(granted)].sort())
        if (labels.length > 1) sets += 1
      }
    })
    expect(sets).toBeGreaterThan(0)
  })

  test('each permit no more than was granted for its label, and together no more than the grant', () => {
    inEveryHistory((history) => {
      for (const { grant, now } of moments(history)) {
        const items = (grant.tokens ?? [])
          .filter(({ hash }) => isActive(grant, hash, now))
          .flatMap(({ label }) => itemsOf(grant.granted ?? [], label))
        const ids = items.map(({ itemId }) => itemId)
        expect(new Set(ids).size).toBe(ids.length)
        const granted = (grant.granted ?? []).map(({ itemId }) => itemId)
        expect(granted).toEqual(expect.arrayContaining(ids))
      }
    })
  })

  test('do not change when another one is rotated or revoked, and are accepted as before', () => {
    let met = 0
    inEveryHistory(
      ofTurns(({ before, after, command, decision, at }) => {
        if (command.type !== 'rotate' && command.type !== 'revoke-token') return
        if (decision.outcome !== 'changed' || after.finalized !== undefined) return
        for (const token of before.tokens ?? []) {
          if (token.hash === command.presented.hash) continue
          const same = after.tokens?.find(({ hash }) => hash === token.hash)
          const { derivation, ...unchanged } = token
          expect(same).toMatchObject(unchanged)
          if (derivation && at < derivation.until) expect(same?.derivation).toEqual(derivation)
          expect(isActive(after, token.hash, at)).toBe(isActive(before, token.hash, at))
          met += 1
        }
      }),
    )
    expect(met).toBeGreaterThan(0)
  })

  test('are issued together, and the continuation is repeated until one of them has changed', () => {
    let repeats = 0
    inEveryHistory(
      ofTurns(({ command, before, decision, after, at }, index, { turns }) => {
        if (command.type !== 'continue' || decision.outcome !== 'changed') return
        if (before.tokens !== undefined || after.tokens === undefined) return
        const again = { ...command, commandId: 'again' }
        const isLater = ({ after: { tokens = [] } }: Turn) =>
          !isDeepStrictEqual(tokens, after.tokens)
        const changed = turns.slice(index).find(isLater)
        const repeat = decide(after, again, at + grantPolicy.retryMs - 1)
        const ended = grantStatus(after, at + grantPolicy.retryMs - 1) !== 'approved'
        if (!ended) expect(repeat).toStrictEqual({ ok: true, outcome: 'unchanged', record: after })
        if (changed === undefined) return
        expect(decide(changed.after, again, changed.at)).toMatchObject({ ok: false })
        repeats += 1
      }),
    )
    expect(repeats).toBeGreaterThan(0)
  })
})

describe('the token lifetime', () => {
  test('is the one from policy, but never exceeds the lifetime of the grant', () => {
    let cut = 0
    fc.assert(
      fc.property(fc.oneof(history, endingHistory), ({ created, turns }) => {
        for (const { tokens = [], expiresAt } of [created, ...turns.map(({ after }) => after)]) {
          for (const token of tokens) {
            const whole = token.issuedAt + grantPolicy.accessTokenLifetimeMs
            const end = Math.max(token.issuedAt, expiresAt ?? whole)
            expect(token.expiresAt).toBe(Math.min(whole, end))
            if (end < whole) cut += 1
          }
        }
      }),
      some,
    )
    expect(cut).toBeGreaterThan(0)
  })
})

describe('nothing becomes active again', () => {
  test('a token that has become inactive stays inactive', () => {
    inEveryHistory((history) => {
      const dead = new Set<string>()
      let alive: string[] = []
      for (const { grant, now } of moments(history)) {
        const active = activeTokens(history, grant, now)
        for (const hash of alive) if (!active.includes(hash)) dead.add(hash)
        for (const hash of active) expect(dead).not.toContain(hash)
        alive = active
      }
    })
  })

  test('a reference that yielded a token never yields another token', () => {
    inEveryHistory(({ turns }) => {
      const spent = new Set<string>()
      for (const { command, decision, before, after } of turns) {
        if (decision.outcome !== 'changed') continue
        if (command.type === 'continue' && command.refHash !== undefined) {
          expect(after.tokens).not.toEqual(before.tokens)
          expect(spent).not.toContain(command.refHash)
          spent.add(command.refHash)
        }
      }
    })
  })
})

describe('granted access never exceeds the request', () => {
  test('the requested items cover the granted ones after every path', () => {
    inEveryHistory((history) => {
      for (const { grant } of moments(history)) {
        const granted: readonly AccessItem[] = grant.granted ?? []
        expect(isAttenuated(grant.requested, granted), JSON.stringify(grant)).toBe(true)
      }
    })
  })

  test('after consent, granted items contain no identifier but the owner’s wallet addresses', () => {
    inEveryHistory((history) => {
      for (const { grant } of moments(history)) {
        if (grant.consent === undefined) continue
        const addresses = (grant.granted ?? []).map(({ identifier }) => identifier)
        for (const address of addresses) {
          expect([undefined, alice, savings]).toContain(address)
        }
      }
    })
  })

  test('access to other clients’ resources names a wallet address, except for incoming payments by URL', () => {
    inEveryHistory((history) => {
      for (const { grant } of moments(history)) {
        if (grant.consent === undefined) continue
        for (const { type, actions, identifier } of grant.granted ?? []) {
          if (type !== 'quote' && actions.includes('list-all')) expect(identifier).toBeDefined()
        }
      }
    })
  })

  test('a request for outgoing payments of any account waits for consent, whatever the policy is', () => {
    fc.assert(
      fc.property(fc.array(accessItem, { minLength: 1, maxLength: 3 }), (access) => {
        const asked = requestGrant(requestOf('at once', { access }), startOfTests, grantPolicy)
        const waiting = requestGrant(
          requestOf('at once', { access, interact: {} }),
          startOfTests,
          grantPolicy,
        )
        if (access.some(isAccountless)) {
          expect(asked).toMatchObject({ refusal: 'interaction_required' })
          expect(waiting.ok && waiting.record).not.toHaveProperty('granted')
        } else {
          expect(asked.ok && waiting.ok && waiting.record.granted).toHaveLength(access.length)
        }
      }),
      some,
    )
  })

  test('what can pay is always for one account of the owner, and its limit is in the asset of that account', () => {
    const met = { chosen: 0, known: 0, refused: 0 }
    const { identifier: _, ...open } = outgoing
    const item = fc.oneof(accessItem, fc.constant(open))
    const requested = fc.array(item, { minLength: 1, maxLength: 2 })
    fc.assert(
      fc.property(requested, offer, chosen, (access, how, account) => {
        const life = grantLife({ access })
        const before = life.grant()
        const said: ApproveOptions = choices[account]
        const decision = life.approve({ ...said, access: offered(how, access) })
        if (!decision.ok) {
          expect(life.grant()).toBe(before)
          met.refused += 1
        }
        for (const { type, identifier, limits } of life.grant().granted ?? []) {
          if (type !== 'outgoing-payment') continue
          expect(said.walletAddresses).toContain(identifier)
          if (access.every(isAccountless)) met.chosen += 1
          const known = said.accounts?.find(({ url }) => url === identifier)
          if (known === undefined || limits?.debitAmount === undefined) continue
          expect(sameAsset(known, limits.debitAmount)).toBe(true)
          met.known += 1
        }
      }),
      { numRuns: runs(2000, 250) },
    )
    expect(Math.min(...Object.values(met))).toBeGreaterThan(0)
  })

  test('only an amendment changes granted items, conditions and, with consent, the end', () => {
    inEveryHistory(
      ofTurns(({ before, after, command }) => {
        if (before.granted === undefined || command.type === 'amend') return
        expect(after.granted).toStrictEqual(before.granted)
        expect(after.conditions).toStrictEqual(before.conditions)
        if (before.consent && before.granted.length > 0) {
          expect(after.expiresAt).toBe(before.expiresAt)
        }
      }),
    )
  })

  test('an amendment narrows each item under its id, ends no later and issues no token', () => {
    const never = Number.POSITIVE_INFINITY
    const budgetOf = ({ itemId, label, intervalCounting, limits }: GrantedItem) =>
      [itemId, label, intervalCounting, limits?.interval] as const
    inEveryHistory(
      ofTurns(({ before, after, command, decision, at }) => {
        if (command.type !== 'amend' || decision.outcome !== 'changed') return
        for (const item of after.granted ?? []) {
          const was = before.granted?.find(({ itemId }) => itemId === item.itemId)
          expect(was && isNarrower(was, item) && budgetOf(was)).toEqual(budgetOf(item))
        }
        const [most, least] = [before.conditions, after.conditions]
        if (most?.paymentMax !== undefined) {
          const { value = '', ...asset } = least?.paymentMax ?? {}
          expect(most.paymentMax).toMatchObject(asset)
          expect(BigInt(value)).toBeLessThanOrEqual(BigInt(most.paymentMax.value))
        }
        if (most?.receivers !== undefined) {
          expect(most.receivers).toEqual(
            expect.arrayContaining([...(least?.receivers ?? ['none'])]),
          )
        }
        expect(after.expiresAt ?? never).toBeLessThanOrEqual(before.expiresAt ?? never)
        const { derivation } = before
        if (derivation && at < derivation.until) expect(after.derivation).toEqual(derivation)
        const live = ({ tokens = [] }: Grant) =>
          tokens.filter(({ revokedAt }) => !revokedAt).map(({ hash }) => hash)
        expect(live(before)).toEqual(expect.arrayContaining([...live(after)]))
        expect(decision.events).toMatchObject([{ type: 'grant.amended' }])
      }),
    )
  })
})

/** The facts of a grant so far, derived from its accepted commands and not from its record. */
interface Facts {
  readonly hasFinish: boolean
  readonly byConsent: boolean
  readonly interactionEndsAt: Instant
  readonly lastCallAt: Instant
  readonly decided: 'no' | 'yes' | 'denied'
  readonly refHash: string | undefined
  readonly end: 'cancelled' | 'revoked' | 'token revoked' | undefined
  readonly tokens: readonly IssuedFact[]
  /** The labels of the tokens with granted access. */
  readonly labels: readonly (string | undefined)[]
  readonly revoked: readonly (string | undefined)[]
  /** The source and the time of the continuation, unless a token has been rotated or revoked since. */
  readonly continued: { readonly from: string; readonly at: Instant } | undefined
  /** The end of the last window of the granted items. */
  readonly windowsEndAt: Instant | undefined
}

interface IssuedFact extends PresentedToken {
  readonly label?: string
  readonly at: Instant
}

function factsBefore({ kind, created, turns }: History, index: number): Facts {
  let facts: Facts = {
    hasFinish: kind === 'redirect',
    byConsent: kind !== 'at once',
    interactionEndsAt: created.createdAt + grantPolicy.interactionLifetimeMs,
    lastCallAt: created.createdAt,
    decided: kind === 'at once' ? 'yes' : 'no',
    refHash: undefined,
    end: undefined,
    tokens:
      kind === 'at once'
        ? nextTokensOf(0, created.requested).nextTokens.map((token) => ({
            ...token,
            at: created.createdAt,
          }))
        : [],
    labels: kind === 'at once' ? labelsOf(created.requested) : [],
    revoked: [],
    continued: undefined,
    windowsEndAt: kind === 'at once' ? endOfWindows(created.requested) : undefined,
  }
  for (const turn of turns.slice(0, index)) {
    if (turn.decision.outcome === 'changed') facts = factsAfter(facts, turn)
  }
  return facts
}

/** Returns the time from which the grant permits nothing except quotes. */
function endOfWindows(access: readonly AccessItem[]): Instant | undefined {
  const ends = access
    .filter(({ type }) => type !== 'quote')
    .map(({ limits }) => lastWindowEndsAt[limits?.interval ?? 'none'] ?? Number.POSITIVE_INFINITY)
  const last = Math.max(Number.NEGATIVE_INFINITY, ...ends)
  return Number.isFinite(last) ? last : undefined
}

function factsAfter(facts: Facts, { before, command, at, after }: Turn): Facts {
  switch (command.type) {
    case 'approve':
      return {
        ...facts,
        decided: 'yes',
        refHash: facts.hasFinish ? command.refHash : undefined,
        labels: labelsOf(command.access ?? before.requested),
        windowsEndAt: endOfWindows(command.access ?? before.requested),
      }
    case 'deny':
      return { ...facts, decided: 'denied' }
    case 'continue':
      return facts.decided === 'no'
        ? { ...facts, lastCallAt: at }
        : {
            ...facts,
            tokens: command.nextTokens
              .filter(({ label }) => facts.labels.includes(label))
              .map((token) => ({ ...token, at })),
            continued: { from: command.refHash ?? hashOf('continuation'), at },
          }
    case 'rotate': {
      const { label } = tokenAt(facts, command.presented) ?? {}
      const { hash, manage } = command.nextToken
      const next = { ...(label === undefined ? {} : { label }), hash, manage, at }
      return { ...facts, tokens: [...facts.tokens, next], continued: undefined }
    }
    case 'revoke-token': {
      const revoked = [...facts.revoked, tokenAt(facts, command.presented)?.label]
      if (revoked.length === facts.labels.length) return { ...facts, end: 'token revoked' }
      return { ...facts, revoked, continued: undefined }
    }
    case 'cancel':
      return { ...facts, end: 'cancelled' }
    case 'revoke':
      return { ...facts, end: 'revoked' }
    case 'amend': {
      const remaining = labelsOf(after.granted ?? [])
      const windowsEndAt = endOfWindows(after.granted ?? [])
      if (facts.tokens.length === 0) return { ...facts, labels: remaining, windowsEndAt }
      const removed = facts.labels.filter((label) => !remaining.includes(label))
      return { ...facts, revoked: [...new Set([...facts.revoked, ...removed])], windowsEndAt }
    }
  }
}

/** Finds an issued token by what a client presents. */
function tokenAt({ tokens }: Facts, { hash, manage }: PresentedToken): IssuedFact | undefined {
  return tokens.find((token) => token.hash === hash && token.manage === manage)
}

type Row = readonly [outcome: string, applies: boolean]

/** Rows 11 to 23 of the matrix for `POST /continue/{id}`, from the top. */
function rowsOfContinue(facts: Facts, refHash: string | undefined, now: Instant): Row[] {
  const { decided, end, continued, tokens } = facts
  const open = decided === 'no' && end === undefined
  const issued = tokens.length > 0
  const presented = refHash ?? hashOf('continuation')
  return [
    ['too_fast', open && now < facts.lastCallAt + grantPolicy.waitMs],
    ['poll_with_finish', refHash === undefined && facts.hasFinish],
    ['grant_gone', end !== undefined || isUnused(facts, now) || isPast(facts, now)],
    ['grant_denied', decided === 'denied'],
    ['interaction_timed_out', open && now >= facts.interactionEndsAt],
    ['interact_ref_wrong', !issued && refHash !== undefined && refHash !== facts.refHash],
    ['unchanged', continued?.from === presented && now < continued.at + grantPolicy.retryMs],
    ['interact_ref_used', issued && refHash !== undefined],
    ['already_issued', issued],
    ['changed', true],
  ]
}

function rowsOfCancel(facts: Facts, now: Instant): Row[] {
  const { decided, end, interactionEndsAt } = facts
  const isUndecided = decided === 'no' && now >= interactionEndsAt
  const isOver = end === 'revoked' || isUnused(facts, now) || isPast(facts, now)
  return [
    ['unchanged', end === 'cancelled' || end === 'token revoked'],
    ['grant_finalized', decided === 'denied' || isUndecided || isOver],
    ['changed', true],
  ]
}

/** Rows 5 to 14 of the matrix for `POST /token/{id}`. */
function rowsOfRotate(facts: Facts, presented: PresentedToken, now: Instant): Row[] {
  const { end, revoked } = facts
  const found = tokenAt(facts, presented)
  const own = facts.tokens.filter(({ label }) => found !== undefined && label === found.label)
  const last = own.at(-1)
  const isLive = found !== undefined && last === found
  const isReplaced =
    found !== undefined &&
    own.at(-2) === found &&
    last !== undefined &&
    (now < last.at + grantPolicy.retryMs || isValid(facts, last, now))
  return [
    ['token_not_managed_here', !isLive && !isReplaced],
    ['token_revoked', end === 'token revoked' || revoked.includes(found?.label ?? 'none')],
    ['grant_over', end !== undefined || isUnused(facts, now) || isPast(facts, now)],
    ['unchanged', isReplaced],
    ['changed', true],
  ]
}

/** Whether a token has not expired. Its lifetime ends with the last window at the latest. */
function isValid(facts: Facts, { at }: IssuedFact, now: Instant): boolean {
  return now < at + grantPolicy.accessTokenLifetimeMs && !isPast(facts, now)
}

function isUnused({ byConsent, tokens }: Facts, now: Instant): boolean {
  const { accessTokenLifetimeMs, unusedLifetimeMs } = grantPolicy
  const last = tokens.at(-1)
  return (
    !byConsent && last !== undefined && now >= last.at + accessTokenLifetimeMs + unusedLifetimeMs
  )
}

function isPast({ windowsEndAt }: Facts, now: Instant): boolean {
  return windowsEndAt !== undefined && now >= windowsEndAt
}

describe('the precedence of outcomes', () => {
  test('the first applicable row decides each continuation, rotation and cancellation', () => {
    inEveryHistory(
      ofTurns(({ command, decision, at }, index, history) => {
        const facts = factsBefore(history, index)
        const rows =
          command.type === 'continue'
            ? rowsOfContinue(facts, command.refHash, at)
            : command.type === 'rotate'
              ? rowsOfRotate(facts, command.presented, at)
              : command.type === 'cancel'
                ? rowsOfCancel(facts, at)
                : undefined
        if (rows === undefined) return
        const [first] = rows.find(([, applies]) => applies) ?? []
        expect(decision.outcome === 'refused' ? decision.refusal : decision.outcome).toBe(first)
      }),
      { numRuns: runs(2000) },
    )
  })

  test('a too_fast refusal names the instant from which the same call is no longer too fast', () => {
    inEveryHistory(
      ofTurns(({ before, command, decision, at }) => {
        if (decision.outcome !== 'refused' || decision.retryAt === undefined) return
        expect(decision.refusal).toBe('too_fast')
        const { retryAt } = decision
        expect(retryAt).toBeGreaterThan(at)
        expect(decide(before, command, retryAt - 1)).toMatchObject({ refusal: 'too_fast' })
        expect(decide(before, command, retryAt)).not.toMatchObject({ refusal: 'too_fast' })
      }),
    )
  })
})

describe('confidential values', () => {
  test('no event and no refusal reason contains a hash, a salt or a nonce', () => {
    inEveryHistory(({ events, turns, secrets }) => {
      const reasons = turns.map(({ decision }) =>
        decision.outcome === 'refused' ? decision.reason : '',
      )
      const told = JSON.stringify([events, reasons])
      for (const secret of secrets) expect(told).not.toContain(secret)
    })
  })

  test('a salt is removed by the first commit after the retry time', () => {
    inEveryHistory(
      ofTurns(({ decision, at, after }) => {
        if (decision.outcome !== 'changed') return
        for (const { until } of derivationsOf(after)) expect(at).toBeLessThan(until)
      }),
    )
  })

  test('every change emits one event, except a fresh reference and an accepted poll', () => {
    inEveryHistory(
      ofTurns(({ before, command, decision, after, at }) => {
        if (decision.outcome !== 'changed') return
        const silent =
          (command.type === 'approve' && before.granted !== undefined) ||
          (command.type === 'continue' && isDeepStrictEqual(before.tokens, after.tokens))
        expect(decision.events).toHaveLength(silent ? 0 : 1)
        for (const event of decision.events) expect(event.at).toBe(at)
      }),
    )
  })
})

const years = 100 * 366 * 86_400_000

/** Every token and every reference that was ever issued for this grant. */
function credentialsOf({ created, turns }: History) {
  const successors = turns.flatMap(({ command }) =>
    command.type === 'rotate'
      ? [command.nextToken]
      : command.type === 'continue'
        ? command.nextTokens
        : [],
  )
  const first = created.tokens ?? []
  const refs = turns.flatMap(({ command }) => (command.type === 'approve' ? command.refHash : []))
  return { tokens: [...first, ...successors], refs }
}

/** What the grant still accepts: a token, a continuation by any means, or a decision of its owner. */
function acceptedOf(grant: Grant, story: History, now: Instant): string[] {
  const { tokens, refs } = credentialsOf(story)
  const commandId = 'afterwards'
  const nextToken = { hash: hashOf('next'), manage: 'manage-next', salt: 'salt-next' }
  const next = nextTokensOf(99, grant.requested)
  const commands: GrantCommand[] = [
    { type: 'continue', commandId, ...next },
    ...refs.map((refHash) => ({ type: 'continue' as const, commandId, refHash, ...next })),
    ...tokens.map(({ hash, manage }) => ({
      type: 'rotate' as const,
      commandId,
      presented: { hash, manage },
      nextToken,
    })),
    {
      type: 'approve',
      commandId,
      resourceOwner: 'alice',
      walletAddresses: [alice],
      ...referenceOf('afterwards'),
    },
  ]
  const accepted = commands.filter((command) => {
    const { outcome } = decideGrant(grant, command as never, now, grantPolicy)
    return outcome !== 'refused'
  })
  const active = tokens.filter(({ hash }) => isActive(grant, hash, now))
  return [...accepted.map(({ type }) => type), ...active.map(() => 'token')]
}

const laterMs = fc.oneof(
  fc.constantFrom(0, 1, grantPolicy.retryMs, grantPolicy.unusedLifetimeMs, years),
  fc.nat({ max: 3 * grantPolicy.retentionMs }),
)

describe('the retention of a grant record', () => {
  test('lasts at least as long as any part of the grant is accepted', () => {
    let gone = 0
    fc.assert(
      fc.property(fc.oneof(history, endingHistory), laterMs, (story, ms) => {
        const grant = story.turns.at(-1)?.after ?? story.created
        if (grant.retainUntil === undefined) return
        const now = Math.max(grant.retainUntil, story.endedAt) + ms
        expect(acceptedOf(grant, story, now)).toEqual([])
        gone += 1
      }),
      { numRuns: runs(500, 250) },
    )
    expect(gone).toBeGreaterThan(runs(200, 80))
  })

  test('is unlimited while a consent without a last window is active, after any history', () => {
    let status = 0
    let usable = 0
    fc.assert(
      fc.property(history, laterMs, (story, ms) => {
        const grant = story.turns.at(-1)?.after ?? story.created
        if (grant.consent === undefined || grant.finalized !== undefined) return
        if (grant.expiresAt !== undefined) return
        status += 1
        expect(grant).not.toHaveProperty('retainUntil')
        expect(grant).not.toHaveProperty('dueAt')
        if (acceptedOf(grant, story, story.endedAt + ms).length > 0) usable += 1
      }),
      { numRuns: runs(500, 250) },
    )
    expect(status).toBeGreaterThan(runs(20, 2))
    // Removing such a record would be a loss: clients can still use most of these grants.
    expect(usable).toBeGreaterThan(isLong ? status / 2 : 0)
  })

  test('ends retentionMs after the last window of a consent, or after its last change if that is later', () => {
    const met = { inTime: 0, tooLate: 0 }
    fc.assert(
      fc.property(endingHistory, ({ turns }) => {
        for (const { at, decision, after } of turns) {
          if (decision.outcome !== 'changed' || after.finalized !== undefined) continue
          if (after.consent === undefined || after.expiresAt === undefined) continue
          met[at < after.expiresAt ? 'inTime' : 'tooLate'] += 1
          expect(after.retainUntil).toBe(Math.max(at, after.expiresAt) + grantPolicy.retentionMs)
        }
      }),
      { numRuns: runs(500, 400) },
    )
    expect(Math.min(met.inTime, met.tooLate)).toBeGreaterThan(runs(3, 0))
  })

  test('ends retentionMs after the end of the grant, whichever command ended it', () => {
    inEveryHistory(
      ({ created, turns }) => {
        for (const { at, after } of [{ at: created.createdAt, after: created }, ...turns]) {
          expect(after.dueAt).toBe(after.retainUntil)
          if (after.finalized === undefined) continue
          expect(after.retainUntil).toBe(after.finalized.at + grantPolicy.retentionMs)
          expect(at).toBeGreaterThanOrEqual(after.finalized.at)
        }
      },
      { numRuns: runs(300) },
    )
  })
})

const anyNumber = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER),
)

const anyText = fc.oneof(fc.string(), unicodeText(), fc.constantFrom('', '__proto__'))

/** Syntactically valid amounts, possibly of an unknown asset. */
const amountLike = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String)

/** The members that the type of a record or command requires. */
const required =
  /^(id|version|commandId|state|as|at|createdAt|client|kid|x|thumbprint|requested|continuation|path|pathHash|refHash|refSalt|expiresAt|nonce|uri|hashMethod|tokenHash|waitMs|acceptedAt|hash|manage|issuedAt|from|salt|until|type|actions|itemId|resourceOwner|walletAddresses|presented|nextToken|nextTokens|value|assetCode|assetScale|url|list|\d+)$/

/** Returns the record or command with some members left out, and others replaced by values of their type. */
function malformed<Value>(value: Value, generate: fc.GeneratorValue): Value {
  const some = () => generate(fc.nat, { max: 3 }) === 0
  function changed(part: unknown, name = ''): unknown {
    if (/^(type|state|as|hashMethod|actions|asset.*|intervalCounting)$/.test(name)) return part
    if (name === 'value') return some() ? generate(() => amountLike) : part
    if (typeof part === 'string') return some() ? generate(() => anyText) : part
    if (typeof part === 'number') return some() ? generate(() => anyNumber) : part
    if (Array.isArray(part)) return part.filter(() => !some()).map((each) => changed(each))
    if (typeof part !== 'object' || part === null) return part
    const kept = Object.entries(part).filter(([key]) => required.test(key) || !some())
    return Object.fromEntries(kept.map(([key, each]) => [key, changed(each, key)]))
  }
  return changed(value) as Value
}

function limitedTo(value: string): AccessItem {
  return { ...outgoing, limits: { debitAmount: { value, assetCode: 'USD', assetScale: 2 } } }
}
