import { describe, expect, test } from 'vitest'
import { type Stored, storeBounds } from '../../../src/entry-adapter.js'
import type { DomainEvent } from '../../../src/service/event-record.js'
import { type Records, recordsOf } from '../../../src/service/load.js'
import { decideInOrder, type Outcome } from '../../../src/service/write/round.js'
import type { Basis, Write } from '../../../src/service/write/write.js'

interface Account extends Stored {
  readonly balance: number
}

const key = { kind: 'budget', id: 'account' } as const
const account: Account = { id: key.id, version: 3, commandId: 'earlier', balance: 10 }
const stored = recordsOf('budget', account)

/** Takes an amount from the account, and results in what is left, or in `refused`. */
function take(amount: number, more: Partial<Write<unknown>> = {}): Write<unknown> {
  return {
    reads: [key],
    decide(read) {
      const { balance, version } = read<Account>(key) ?? { ...account, version: 0 }
      if (balance < amount) return { type: 'answer', result: 'refused' }
      const next = { id: key.id, version: version + 1, commandId: 'me', balance: balance - amount }
      return { type: 'commit', changes: [{ kind: 'budget', next }], result: next.balance }
    },
    ...more,
  }
}

const decided = (result: unknown): Outcome => ({ type: 'decided', result })

const settings = { recordsEvents: () => true, namespace: 'namespac' }

function round(
  writes: readonly Write<unknown>[],
  records: Records = stored,
  type: Basis['type'] = 'loaded',
) {
  return decideInOrder(writes, { type, records }, settings)
}

describe('a round', () => {
  test('decides each write on what those before it leave, and writes one version', () => {
    const { outcomes, commit } = round([take(1), take(2), take(7)])
    expect(outcomes).toEqual([decided(9), decided(7), decided(0)])
    const next = { id: key.id, version: 4, commandId: 'me', balance: 0 }
    const change = { kind: 'budget', next, expectedVersion: 3, previous: {} }
    expect(commit).toEqual({ changes: [change], guards: [] })
  })

  test('says where the replaced version is found', () => {
    const lists = [{ list: 'all', at: 1 }]
    const { commit } = round([take(1)], recordsOf('budget', { ...account, lists, dueAt: 7 }))
    expect(commit.changes[0]).toMatchObject({ previous: { lists, dueAt: 7 } })
  })

  test('creates a record that does not exist', () => {
    expect(round([take(1)], new Map()).commit.changes).toEqual([
      { kind: 'budget', next: expect.objectContaining({ version: 1 }), expectedVersion: 0 },
    ])
  })

  test('is empty without writes', () => {
    expect(round([])).toMatchObject({ outcomes: [], commit: { changes: [], guards: [] } })
  })

  test('commits the events of all its writes that are recorded, in their order', () => {
    const events = ['quote.created', 'grant.issued', 'quote.created'].map(
      (type, at) => ({ type, at }) as DomainEvent,
    )
    const telling = events.map((event) =>
      take(1, {
        decide(read) {
          const { version } = read(key) as Account
          const next = { ...account, version: version + 1 }
          return {
            type: 'commit',
            changes: [{ kind: 'budget', next, events: [event] }],
            result: event.at,
          }
        },
      }),
    )
    const recorded = decideInOrder(
      telling,
      { type: 'loaded', records: stored },
      { ...settings, recordsEvents: (type) => type === 'quote.created' },
    )
    expect(recorded.commit.changes.slice(1)).toEqual([
      expect.objectContaining({
        kind: 'event',
        next: expect.objectContaining({ event: events[0] }),
      }),
      expect.objectContaining({
        kind: 'event',
        next: expect.objectContaining({ event: events[2] }),
      }),
    ])
  })
})

describe('the outcome of a write', () => {
  test('is its result, if it changes nothing', () => {
    expect(round([take(11)])).toMatchObject({
      outcomes: [decided('refused')],
      commit: { changes: [] },
    })
  })

  test('is its failure, if its decision throws, and the others are decided', () => {
    const error = new Error('a bug')
    const broken = take(1, {
      decide() {
        throw error
      },
    })
    const { outcomes } = round([take(1), broken, take(2)])
    expect(outcomes).toEqual([decided(9), { type: 'failed', error }, decided(7)])
  })

  test('is `later` from the first one on for which the commit has no room', () => {
    const size = storeBounds.commitSize
    const filling = (id: string, count: number): Write<unknown> => ({
      reads: [],
      decide: () => ({
        type: 'commit',
        changes: Array.from({ length: count }, (_, each) => ({
          kind: 'quote',
          next: { id: `${id}-${each}`, version: 1, commandId: id },
        })),
        result: id,
      }),
    })
    const later = { type: 'later' }
    const { outcomes, commit } = round([
      filling('first', size - 2),
      filling('second', 3),
      filling('third', 1),
    ])
    expect(outcomes).toEqual([decided('first'), later, later])
    expect(commit.changes).toHaveLength(size - 2)
    expect(round([filling('alone', size + 1), filling('next', 1)]).outcomes).toEqual([
      decided('alone'),
      later,
    ])
  })

  test('is that it is outdated, if the record that it guards has another version', () => {
    const guarded = (version: number) =>
      take(1, { guard: { record: { kind: 'grant', id: 'grant', version }, ifChanged: 'outdated' } })
    const grant = { id: 'grant', version: 2, commandId: 'earlier' }
    const records = new Map([...stored, ...recordsOf('grant', grant)])
    const { outcomes, commit } = round([guarded(1), guarded(2), guarded(2)], records)
    expect(outcomes).toEqual([decided('outdated'), decided(9), decided(8)])
    expect(commit.guards).toEqual([{ kind: 'grant', id: 'grant', version: 2 }])
  })

  test('is never outdated, if an earlier commit of the same write took effect', () => {
    const guard = {
      record: { kind: 'grant', id: 'grant', version: 1 },
      ifChanged: 'outdated',
    } as const
    const grant = { id: 'grant', version: 2, commandId: 'earlier' }
    const records = new Map([...stored, ...recordsOf('grant', grant)])
    const repeat = take(1, { guard, decide: () => ({ type: 'repeat', result: 'done' }) })
    expect(round([repeat], records).outcomes).toEqual([decided('done')])
    const answer = take(11, { guard })
    expect(round([answer], records).outcomes).toEqual([decided('outdated')])
  })
})

describe('an interim decision', () => {
  const begun = take(1, { decide: () => ({ type: 'interim', result: 'outdated' }) })

  test('ends the write without a commit, whatever it is based on', () => {
    for (const basis of ['loaded', 'assumed'] as const) {
      const { outcomes, commit } = round([begun], new Map(), basis)
      expect([outcomes, commit.changes]).toEqual([[decided('outdated')], []])
    }
    expect(round([take(1), begun]).outcomes).toEqual([decided(9), decided('outdated')])
  })

  test('needs no guard', () => {
    const guard = { record: { kind: 'grant', id: 'grant', version: 1 }, ifChanged: 'changed' }
    const grant = { id: 'grant', version: 2, commandId: 'earlier' }
    const guarded = { ...begun, guard } as Write<unknown>
    const records = new Map([...stored, ...recordsOf('grant', grant)])
    expect(round([guarded], records).outcomes).toEqual([decided('outdated')])
  })
})

describe('a write that changes nothing', () => {
  const again: Outcome = { type: 'again' }
  const refused = take(11)
  const replay = { kind: 'replay', id: 'nonce' } as const
  const nonce = { kind: 'replay', next: { id: replay.id, version: 1, commandId: 'me' } } as const

  test('counts on a snapshot, and also on the absence of a record in it', () => {
    expect(round([refused]).outcomes).toEqual([decided('refused')])
    const none = new Map([['budget account', undefined]])
    expect(round([refused], none).outcomes).toEqual([decided('refused')])
  })

  test('does not count on the assumption that a record does not exist', () => {
    expect(round([refused], new Map()).outcomes).toEqual([again])
    const assuming = take(11, { reads: [key, replay] })
    expect(round([assuming]).outcomes).toEqual([again])
    const also = [{ kind: 'replay', next: { ...nonce.next, id: key.id } }] as const
    const writing = take(11, { decide: () => ({ type: 'answer', result: 'refused', also }) })
    expect(round([writing], new Map()).outcomes).toEqual([again])
  })

  test('counts if its commit proves the assumption', () => {
    const recording = take(11, {
      reads: [key, replay],
      decide: () => ({ type: 'answer', result: 'refused', also: [nonce] }),
    })
    expect(round([recording])).toMatchObject({
      outcomes: [decided('refused')],
      commit: { changes: [{ kind: 'replay', expectedVersion: 0 }] },
    })
    const other = { ...nonce, next: { ...nonce.next, id: 'other' } }
    const another: Write<unknown> = {
      ...recording,
      decide: () => ({ type: 'answer', result: 'refused', also: [other] }),
    }
    expect(round([another])).toMatchObject({ outcomes: [again], commit: { changes: [] } })
  })

  test('does not count on records from before the host was asked, while a change does', () => {
    expect(round([refused], stored, 'assumed').outcomes).toEqual([again])
    expect(round([take(1)], stored, 'assumed').outcomes).toEqual([decided(9)])
  })

  test('does not count on what another write of the commit changes', () => {
    expect(round([refused, take(1), refused, take(1)]).outcomes).toEqual([
      decided('refused'),
      decided(9),
      again,
      decided(8),
    ])
    const elsewhere = take(1, {
      reads: [replay],
      decide: () => ({ type: 'answer', result: 'refused' }),
    })
    const records = new Map([...stored, ['replay nonce', undefined]] as const)
    expect(round([take(1), elsewhere], records).outcomes).toEqual([decided(9), decided('refused')])
  })
})
