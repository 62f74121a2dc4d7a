import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { endedGrant, endOf } from '../../src/core/grant/ended.js'
import type { Grant } from '../../src/core/grant/record.js'
import { grantStatus } from '../../src/core/grant/status.js'
import type { GrantConditions } from '../../src/core/limits.js'
import { grantView } from '../../src/host/grant.js'
import { startOfTests } from '../support/clock.js'
import { alice, grantLife, type History, history } from '../support/grants.js'
import { runs } from '../support/runs.js'
import { dollars } from '../support/spending-life.js'

const day = 86_400_000
const options = { commandId: 'command', listName: 'list', historyMs: 730 * day }

/** The last state of a grant, at the instants around its end and its removal. */
function lastMoments({ created, turns, endedAt }: History) {
  const grant = turns.at(-1)?.after ?? created
  const { expiresAt = endedAt, retainUntil = endedAt } = grant
  const instants = [endedAt, expiresAt - 1, expiresAt, retainUntil, retainUntil + 365 * day]
  return instants.filter((now) => now >= endedAt).map((now) => ({ grant, now }))
}

function ofLastMoments(what: (grant: Grant, now: number, history: History) => void) {
  return fc.property(history, (history) => {
    for (const { grant, now } of lastMoments(history)) what(grant, now, history)
  })
}

/** Undoes all amendments, the latest first. */
function termsBefore({ granted, conditions = {}, amendments = [] }: Grant) {
  const undone = amendments.toReversed().reduce<{ access: unknown; conditions: GrantConditions }>(
    ({ access, conditions }, { before }) => {
      const changed = { ...conditions, ...before.conditions }
      const kept = Object.entries(changed).filter(([, value]) => value !== null)
      return { access: before.access ?? access, conditions: Object.fromEntries(kept) }
    },
    { access: granted, conditions },
  )
  return undone
}

describe('what remains of a grant', () => {
  test('exists exactly if an owner consented and it has ended', () => {
    fc.assert(
      ofLastMoments((grant, now) => {
        const status = grantStatus(grant, now)
        const hasEnded = ['cancelled', 'revoked', 'expired'].includes(status)
        expect(endedGrant(grant, options, now) !== undefined).toBe(
          grant.consent !== undefined && hasEnded,
        )
      }),
      { numRuns: runs(2_000, 300) },
    )
  })

  test('shows its owner what the grant showed, and contains no secret', () => {
    fc.assert(
      ofLastMoments((grant, now, { secrets, tokens }) => {
        const ended = endedGrant(grant, options, now)
        if (ended === undefined) return
        expect(ended.lists).toEqual([{ list: 'list', at: grant.consent?.at }])
        expect(JSON.parse(JSON.stringify(ended))).toStrictEqual(ended)
        expect(grantView(ended, now)).toEqual(grantView(grant, now))
        const text = JSON.stringify(ended)
        const { path } = grant.continuation
        const hidden = [...secrets, ...tokens.flatMap(({ hash, manage }) => [hash, manage]), path]
        hidden.push(grant.client.x)
        expect(hidden.filter((secret) => text.includes(`"${secret}"`))).toEqual([])
      }),
      { numRuns: runs(2_000, 300) },
    )
  })

  test('is kept until the time of the history is over, and not written after it', () => {
    const life = grantLife()
    life.approve()
    life.revoke()
    const kept = (historyMs: number, afterMs: number) =>
      endedGrant(life.grant(), { ...options, historyMs }, startOfTests + afterMs)?.retainUntil
    expect(kept(day, 0)).toBe(startOfTests + day)
    expect(kept(day, day - 1)).toBe(startOfTests + day)
    expect(kept(day, day)).toBeUndefined()
    expect(kept(0, 0)).toBeUndefined()
  })
})

describe('what remains of the grant', () => {
  const ended = ({ client, subject }: Partial<Pick<Grant, 'client' | 'subject'>>) => {
    const life = grantLife()
    life.approve()
    life.revoke()
    const grant = { ...life.grant(), ...(client && { client }), ...(subject && { subject }) }
    return endedGrant(grant, options, startOfTests)
  }

  test('has the id and the thumbprint of the key that signed, and not the key', () => {
    const client = { kid: 'k', thumbprint: 't', x: 'public-key' }
    expect(ended({ client })?.client).toEqual({ kid: 'k', thumbprint: 't' })
    const walletAddress = 'https://shop.example'
    const named = { walletAddress, kid: 'k', thumbprint: 't' }
    expect(ended({ client: { ...client, walletAddress } })?.client).toEqual(named)
  })

  test('has the subject that the owner has disclosed', () => {
    const subject = { sub_ids: [{ format: 'opaque', id: 'one' }] } as unknown as Grant['subject']
    expect(ended({ ...(subject && { subject }) })?.subject).toEqual(subject)
    expect(ended({})).not.toHaveProperty('subject')
  })
})

describe('the end of a grant', () => {
  test('is the end of its interaction if nobody has decided until then', () => {
    const grant = grantLife().grant()
    const { expiresAt = 0 } = grant.interaction ?? {}
    expect(endOf(grant, expiresAt - 1)).toBeUndefined()
    expect(endOf(grant, expiresAt)).toBe(expiresAt)
  })

  test('is a time that has come, exactly if its status is final', () => {
    fc.assert(
      ofLastMoments((grant, now) => {
        const isOpen = ['pending', 'approved'].includes(grantStatus(grant, now))
        const at = endOf(grant, now)
        expect(at === undefined).toBe(isOpen)
        if (at !== undefined) expect(at).toBeLessThanOrEqual(Math.max(now, grant.createdAt))
      }),
      { numRuns: runs(1_000, 150) },
    )
  })

  test('is attributed to the client that cancels or revokes its last token, and else to the host', () => {
    fc.assert(
      fc.property(history, ({ turns }) => {
        const { command, after } =
          turns.find(({ after, before }) => after.finalized && !before.finalized) ?? {}
        const isClients = command?.type === 'cancel' || command?.type === 'revoke-token'
        expect(after?.finalized?.by).toBe(command && (isClients ? 'client' : 'host'))
      }),
      { numRuns: runs(1_000, 150) },
    )
  })
})

describe('the amendments of a grant', () => {
  test('tell what the owner consented to: undone, they give the terms of the approval', () => {
    fc.assert(
      fc.property(history, ({ turns }) => {
        const approved = turns.find(({ after, before }) => after.consent && !before.consent)?.after
        const last = turns.at(-1)?.after
        if (approved === undefined || last === undefined) return
        const { granted: access, conditions = {} } = approved
        expect(termsBefore(last)).toEqual({ access, conditions })
        const amended = turns.filter(
          ({ command, decision }) => command.type === 'amend' && decision.outcome === 'changed',
        )
        expect(last.amendments?.map(({ at }) => at) ?? []).toEqual(amended.map(({ at }) => at))
      }),
      { numRuns: runs(2_000, 300) },
    )
  })

  test.each([
    ['many', (index: number) => ({ pausedUntil: startOfTests + index }), 50],
    ['large', (index: number) => ({ data: { text: `${index}`.padEnd(5_000) } }), 4],
  ])(
    'are bounded when there are %s, and still tell what the owner consented to',
    (_, changesOf, count) => {
      const life = grantLife()
      const conditions = { paymentMax: dollars(60), receivers: [alice] }
      life.approve({ conditions })
      for (let index = 1; index <= 60; index++) {
        life.advance(1_000)
        const paymentMax = dollars(60 - index / 2 - (index % 2) / 2)
        const decision = life.amend({ conditions: { ...changesOf(index), paymentMax } })
        expect(decision.outcome).toBe('changed')
      }
      const { amendments = [], granted: access } = life.grant()
      expect(amendments).toHaveLength(count)
      expect(amendments.at(-1)?.at).toBe(life.now())
      expect(amendments[0]?.at).toBe(startOfTests + 1_000)
      expect(termsBefore(life.grant())).toEqual({ access, conditions })
    },
  )

  test.each([
    ['access, then conditions', 0],
    ['conditions, then access', 1],
  ])('that are joined still tell the access before them: %s', (_, first) => {
    const life = grantLife()
    life.approve()
    const { granted: access } = life.grant()
    for (let index = 1; index <= 60; index++) {
      life.advance(1_000)
      const limits = { debitAmount: dollars(2500 - index) }
      const changesAccess = index % 2 !== first
      const changes = changesAccess
        ? { access: access?.map((item) => ({ ...item, limits })) ?? [] }
        : { conditions: { pausedUntil: life.now() } }
      expect(life.amend(changes)).toMatchObject({ outcome: 'changed' })
    }
    const { amendments = [], conditions } = life.grant()
    expect(amendments).toHaveLength(50)
    expect(conditions).toBeDefined()
    expect(termsBefore(life.grant())).toEqual({ access, conditions: {} })
    for (const { before } of amendments) expect(Object.values(before)).not.toContain(undefined)
  })

  test('stay when one or two of them are larger than the bound', () => {
    const life = grantLife()
    life.approve({ conditions: { data: { text: 'x'.repeat(40_000) } } })
    life.amend({ conditions: { data: { text: 'y'.repeat(40_000) } } })
    expect(life.grant().amendments).toHaveLength(1)
    life.amend({ conditions: { data: { text: 'z' } } })
    expect(life.grant().amendments).toHaveLength(1)
    expect(JSON.stringify(termsBefore(life.grant()).conditions)).toContain('xxx')
    const [joined] = life.grant().amendments ?? []
    expect(Object.keys(joined?.before ?? {})).toEqual(['conditions'])
  })

  test('contain only the conditions that were changed', () => {
    const life = grantLife()
    life.approve({ conditions: { paymentMax: dollars(5), receivers: [alice] } })
    life.amend({ conditions: { paymentMax: dollars(4) } })
    expect(life.grant().amendments).toMatchObject([{ before: {} }])
    expect(life.grant().amendments?.[0]?.before).toEqual({
      conditions: { paymentMax: dollars(5) },
    })
  })

  test('have no conditions if only the access was changed, and none of the access if it was not', () => {
    const life = grantLife()
    life.approve()
    const item = { ...life.grant().granted?.[0] }
    for (let index = 1; index <= 60; index++) {
      life.advance(1_000)
      const access = [{ ...item, limits: { debitAmount: dollars(2500 - index) } }]
      life.amend({ access: access as never })
    }
    for (const { before } of life.grant().amendments ?? []) {
      expect(Object.keys(before)).toEqual(['access'])
    }
    life.amend({ conditions: { paymentMax: dollars(1) } })
    expect(Object.keys(life.grant().amendments?.at(-1)?.before ?? {})).toEqual(['conditions'])
  })
})
