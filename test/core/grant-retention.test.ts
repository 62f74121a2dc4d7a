import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Grant } from '../../src/core/grant/record.js'
import { isActive } from '../../src/core/grant/rotation.js'
import { decideGrant, type GrantCommand } from '../../src/core/grant.js'
import type { Instant } from '../../src/core/instant.js'
import {
  alice,
  endingHistory,
  grantPolicy,
  type History,
  hashOf,
  history,
  nextTokensOf,
} from '../support/grants.js'
import { isLong, runs } from '../support/runs.js'

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
      refHash: hashOf('ref afterwards'),
    },
  ]
  const accepted = commands.filter((command) => {
    const { outcome } = decideGrant(grant, command as never, now, grantPolicy)
    return outcome !== 'refused'
  })
  const active = tokens.filter(({ hash }) => isActive(grant, hash, now, grantPolicy))
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
        if (grant.endsAt !== undefined) return
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
          if (after.consent === undefined || after.endsAt === undefined) continue
          met[at < after.endsAt ? 'inTime' : 'tooLate'] += 1
          expect(after.retainUntil).toBe(Math.max(at, after.endsAt) + grantPolicy.retentionMs)
        }
      }),
      { numRuns: runs(500, 400) },
    )
    expect(Math.min(met.inTime, met.tooLate)).toBeGreaterThan(runs(3, 0))
  })

  test('ends retentionMs after the end of the grant, whichever command ended it', () => {
    fc.assert(
      fc.property(history, ({ created, turns }) => {
        for (const { at, after } of [{ at: created.createdAt, after: created }, ...turns]) {
          expect(after.dueAt).toBe(after.retainUntil)
          if (after.finalized === undefined) continue
          expect(after.retainUntil).toBe(after.finalized.at + grantPolicy.retentionMs)
          expect(at).toBeGreaterThanOrEqual(after.finalized.at)
        }
      }),
      { numRuns: runs(300) },
    )
  })
})
