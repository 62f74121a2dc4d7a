import { describe, expect, test } from 'vitest'
import { createStatements } from '../../../adapters/postgres/statements.js'
import { migrationsOf } from '../../../adapters/postgres.js'
import type { RecordChange, Stored } from '../../../src/index.js'

/** Features that CockroachDB, YugabyteDB or Citus reject, ignore, or execute differently on each node. */
const notPortable = [
  /pg_advisory/i,
  /\b(?:SMALL|BIG)?SERIAL\b/i,
  /\bIDENTITY\b/i,
  /\bnextval\b/i,
  /\b(?:LISTEN|NOTIFY)\b/i,
  /\bDEFERRABLE\b/i,
  /\bCREATE EXTENSION\b/i,
  /\bTEMP(?:ORARY)?\b/i,
  /\b(?:ctid|xmin|xmax)\b/i,
  /\bplpgsql\b|\bTRIGGER\b|\bFUNCTION\b|\bDO \$\$/i,
  /\bnow\(\)|\bCURRENT_TIMESTAMP\b|\brandom\(\)|\bgen_random_uuid\b|\bclock_timestamp\b/i,
  /\bjsonb?\b/i,
  /\bSKIP LOCKED\b/i,
]

function record(id: string, version: number, more: Partial<Stored> = {}): Stored {
  return { id, version, commandId: 'command', ...more }
}

function change(next: Stored): RecordChange {
  return { kind: 'grant', next, expectedVersion: next.version - 1 }
}

const statements = createStatements(undefined, true)
const all = [
  statements.load('grant', 'a'),
  statements.commit({ changes: [change(record('a', 1))], guards: [] }),
  statements.commit({
    changes: [change(record('a', 2)), change(record('b', 2))],
    guards: [{ kind: 'grant', id: 'c', version: 1 }],
  }),
  statements.list({ kind: 'grant', list: 'x', forward: true, limit: 1 }),
  statements.list({ kind: 'grant', list: 'x', forward: false, limit: 1 }),
  statements.due('grant', 'abcdefgh', 1, 1),
  statements.remove('grant', 'a', 1),
]
const texts = [
  ...all.map(({ text }) => text),
  ...migrationsOf('wallet').flatMap(({ statements }) => statements),
]

describe('every statement', () => {
  test('only uses features that PostgreSQL-compatible distributed databases support', () => {
    expect(texts.filter((text) => notPortable.some((pattern) => pattern.test(text)))).toEqual([])
  })

  test('has its own name, under which it is prepared', () => {
    const byName = new Map(all.map(({ name, text }) => [name, text]))
    expect(byName.size).toBe(new Set(all.map(({ text }) => text)).size)
    expect([...byName.keys()].every((name) => name !== undefined && name.length <= 63)).toBe(true)
  })

  test('has another name for another schema, because a pool may serve both', () => {
    const other = createStatements('a'.repeat(40), true).load('grant', 'a')
    expect(other.name).not.toBe(statements.load('grant', 'a').name)
    expect(other.name?.length).toBeLessThanOrEqual(63)
    expect(other.text).toContain(`"${'a'.repeat(40)}".open_payments_records`)
  })

  test('has a name within the length limit, or none, for any number of records', () => {
    const long = createStatements('a'.repeat(40), true)
    for (const count of [1, 2, 5, 9, 11, 12, 13, 30]) {
      for (const version of [1, 2]) {
        const changes = Array.from({ length: count }, (_, i) => change(record(`r${i}`, version)))
        const { name = '' } = long.commit({ changes, guards: [] })
        expect(name.length).toBeLessThanOrEqual(63)
        expect(name !== '').toBe(count < 13)
      }
    }
  })

  test('has no name if statements must not be prepared', () => {
    expect(createStatements(undefined, false).load('grant', 'a')).toEqual({
      text: statements.load('grant', 'a').text,
      values: ['grant', 'a'],
    })
  })

  test('is the same for all commits of the same shape', () => {
    const commitOf = (id: string) => {
      const changes = [change(record(id, 2, { dueAt: 5 })), change(record(`${id}.event`, 1))]
      return statements.commit({ changes, guards: [] })
    }
    expect(commitOf('b')).toMatchObject({ name: commitOf('a').name, text: commitOf('a').text })
  })
})

describe('a commit', () => {
  test('takes records in the order of their keys, regardless of the operations', () => {
    const versions = { g: 1, f: 2, d: 1, c: 1, a: 2 }
    const changes = Object.entries(versions).map(([id, version]) => change(record(id, version)))
    const guards = ['e', 'b'].map((id) => ({ kind: 'grant', id, version: 3 }) as const)
    const { text, values } = statements.commit({ changes, guards })
    const parts = ['replaced_0', 'held_1', 'created_2', 'held_3', 'replaced_4', 'created_5']
    expect(text.match(/\w+(?= AS (?:MATERIALIZED )?\()/g)).toEqual(parts)
    expect(text.match(/(?<=count\(\*\) FROM )\w+/g)).toEqual(parts)
    const ids = values.filter((value) => /^[a-g]$/.test(String(value)))
    expect(ids).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  })

  test('without guards only locks what it writes', () => {
    const changes = [change(record('a', 2)), change(record('b', 2)), change(record('c', 1))]
    expect(statements.commit({ changes, guards: [] }).text).not.toContain('FOR UPDATE')
  })

  test('of a record in more lists than there are columns throws a RangeError', () => {
    const lists = ['a', 'b', 'c', 'd'].map((wanted) => ({ list: wanted, at: 1 }))
    const changes = [change(record('a', 1, { lists }))]
    expect(() => statements.commit({ changes, guards: [] })).toThrow(
      'a record can be in 3 lists, not in 4',
    )
  })
})
