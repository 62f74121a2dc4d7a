import { beforeEach, describe, expect, test } from 'vitest'
import {
  checkedSchema,
  createStatements,
  type Statements,
} from '../../../adapters/postgres/statements.js'
import { migrationsOf, type PostgresStatement } from '../../../adapters/postgres.js'
import type { RecordChange, Stored } from '../../../src/entry-adapter.js'

/** Features that distributed databases reject, ignore, or execute differently on each node. */
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

function keys(count: number) {
  return Array.from({ length: count }, (_, i) => ({ kind: 'grant', id: `id-${i}` }) as const)
}

const key = { kind: 'grant', id: 'a' } as const

let statements: Statements
beforeEach(() => {
  statements = createStatements(undefined, true)
})

const all = () => [
  statements.load([key]),
  statements.load(keys(2)),
  statements.load(keys(9)),
  statements.commit({ changes: [change(record('a', 1))], guards: [] }),
  statements.commit({
    changes: [change(record('a', 2)), change(record('b', 2))],
    guards: [{ kind: 'grant', id: 'c', version: 1 }],
  }),
  statements.list({ kind: 'grant', list: 'x', forward: true, limit: 1 }),
  statements.list({ kind: 'grant', list: 'x', forward: false, limit: 1 }),
  statements.due('grant', 'abcdefgh', 1, 1),
  statements.move('grant', [record('a', 1)]),
  statements.remove([{ kind: 'grant', id: 'a', version: 1 }]),
]
const texts = () => [
  ...all().map(({ text }) => text),
  ...migrationsOf('wallet').flatMap(({ statements }) => statements),
]

describe('every statement', () => {
  test('uses no feature that distributed databases execute differently on each node', () => {
    expect(texts().filter((text) => notPortable.some((pattern) => pattern.test(text)))).toEqual([])
  })

  test('that reads is sent to the primary by a balancer that knows the comment', () => {
    const reads = all().filter(({ text }) => !/INSERT|UPDATE|DELETE/.test(text))
    expect(reads).toHaveLength(6)
    const { begun } = createStatements(undefined, true, 'a mark')
    for (const { text } of [...reads, begun])
      expect(text).toMatch(/^\/\*NO LOAD BALANCE\*\/ SELECT /)
  })

  test('has its own name, under which it is prepared', () => {
    const byName = new Map(all().map(({ name, text }) => [name, text]))
    expect(byName.size).toBe(new Set(all().map(({ text }) => text)).size)
    expect([...byName.keys()].every((name) => name !== undefined && name.length <= 63)).toBe(true)
  })

  test('has a name that tells what it does', () => {
    expect(all().map(({ name }) => name)).toEqual([
      ...['op_load_1_', 'op_load_2_', 'op_load_many_', 'op_commit_A_', 'op_commit_00h_'],
      ...['op_forward_', 'op_backward_', 'op_due_', 'op_move_', 'op_remove_'],
    ])
  })

  test('is about a table in the search path, unless there is a schema', () => {
    for (const { text } of all()) expect(text).toMatch(/ open_payments_records\s/)
  })

  test('has another name for another schema, because a pool may serve both', () => {
    const other = createStatements('a'.repeat(40), true).load([key])
    expect(other.name).not.toBe(statements.load([key]).name)
    expect(other.name?.length).toBeLessThanOrEqual(63)
    expect(other.text).toContain(`"${'a'.repeat(40)}".open_payments_records`)
  })

  test('has a name within the length limit for any number of records', () => {
    const long = createStatements('a'.repeat(40), true)
    for (const count of [1, 2, 5, 9, 11, 12, 13, 30]) {
      for (const version of [1, 2]) {
        const changes = Array.from({ length: count }, (_, i) => change(record(`r${i}`, version)))
        const { name = '' } = long.commit({ changes, guards: [] })
        expect(name.length).toBeLessThanOrEqual(63)
        expect(name.startsWith('op_commit_many_')).toBe(count > 12)
      }
    }
  })

  test('has no name if statements must not be prepared', () => {
    expect(createStatements(undefined, false).load([key])).toEqual({
      text: statements.load([key]).text,
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

test('a list without a cursor starts before every place and id, or after', () => {
  const listed = (forward: boolean) =>
    statements.list({ kind: 'grant', list: 'x', forward, limit: 1 }).values.slice(2)
  expect(listed(true)).toEqual([Number.MIN_SAFE_INTEGER, '', 2])
  expect(listed(false)).toEqual([Number.MAX_SAFE_INTEGER, '~', 2])
})

describe('a schema', () => {
  test.each([undefined, 'a', '_', 'wallet_2', 'a'.repeat(40)])('may be %s', (schema) => {
    expect(checkedSchema(schema)).toBe(schema)
  })

  test.each(['', '2a', 'A', 'aB', 'a b', 'a"b', 'a.b', ' a', 'a;', 'ä', 'a'.repeat(41)])(
    'must not be %j',
    (schema) => {
      expect(() => checkedSchema(schema)).toThrow('schema must be at most 40 lower-case letters')
    },
  )
})

describe('a commit', () => {
  test('without a record throws a RangeError', () => {
    expect(() => statements.commit({ changes: [], guards: [] })).toThrow(
      new RangeError('an empty commit needs no statement'),
    )
  })

  /** Returns the ids that the parts of a commit take, in the order of the parts. */
  function order({ text, values }: PostgresStatement): string[] {
    return [...text.matchAll(/(\w+) AS \(\s+(SELECT 1|UPDATE|INSERT)([^;]*?)\n {2}\)/g)].map(
      ([, name, , body = '']) => {
        const ids = [...body.matchAll(/WHERE kind = \S+ AND id = \$(\d+)|\(\$\d+::text, \$(\d+)/g)]
        const own = name === 'decided' || !name?.startsWith('created') ? ids.slice(0, 1) : ids
        return `${name} ${own.map(([, at, alsoAt]) => values[Number(at ?? alsoAt) - 1]).join(' ')}`
      },
    )
  }

  const versions = { g: 1, f: 2, d: 1, c: 1, a: 2 }
  const changes = Object.entries(versions).map(([id, version]) => change(record(id, version)))
  const guards = ['e', 'b'].map((id) => ({ kind: 'grant', id, version: 3 }) as const)

  test('locks existing records in one order, then creates records in one order', () => {
    const inOrder = [
      'held_0 a',
      'held_1 b',
      'held_2 e',
      'decided f',
      'created g d c',
      'replaced_0 a',
    ]
    expect(order(statements.commit({ changes, guards }))).toEqual(inOrder)
    const named = { changes: changes.toReversed(), guards: guards.toReversed() }
    expect(order(statements.commit(named))).toEqual(inOrder)
  })

  test('of new records only depends on the first of them', () => {
    const created = changes.filter(({ expectedVersion }) => expectedVersion === 0)
    const commit = statements.commit({ changes: created, guards: [] })
    expect(order(commit)).toEqual(['decided g', 'created d c'])
    expect(commit.text).not.toContain('FOR UPDATE')
  })

  test('of one record is a plain statement', () => {
    const guard = { ...key, version: 1 }
    const commits = [
      { changes: [change(record('a', 1))], guards: [] },
      { changes: [change(record('a', 2))], guards: [] },
      { changes: [], guards: [guard] },
    ]
    const verbs = commits.map((commit) => statements.commit(commit).text.split(' ')[0])
    expect(verbs).toEqual(['INSERT', 'UPDATE', 'SELECT'])
  })

  test('fails unless it has written every record beside the one that decides', () => {
    for (const created of [0, 1, 3]) {
      for (const replaced of [0, 1, 2]) {
        const [first, second] = [keys(created), keys(created + replaced).slice(created)]
        const all = [
          ...first.map(({ id }) => change(record(id, 1))),
          ...second.map(({ id }) => change(record(id, 2))),
        ]
        const commit = statements.commit({ changes: all, guards })
        const written = order(commit).filter((part) => /^(?:created|replaced)/.test(part))
        const ids = written.flatMap((part) => part.split(' ').slice(1))
        const count = Number(/1 \/ \(CASE WHEN .* = (\d+) THEN/.exec(commit.text)?.[1] ?? 0)
        expect([created, replaced, count]).toEqual([created, replaced, ids.length])
      }
    }
  })

  test('moves the due time of an event at once, and that of another record only if it is earlier', () => {
    const dueOf = (kind: 'event' | 'grant', dueAt?: number) => {
      const next = record('a', 2, dueAt === undefined ? {} : { dueAt })
      const { name, text } = statements.commit({
        changes: [{ kind, next, expectedVersion: 1 }],
        guards: [],
      })
      return [name, /due_at = (.*?), list_1 =/.exec(text)?.[1]]
    }
    expect([dueOf('event', 5), dueOf('event')]).toEqual([
      ['op_commit_T_', '$6::bigint'],
      ['op_commit_S_', 'NULL::bigint'],
    ])
    expect([dueOf('grant', 5), dueOf('grant')]).toEqual([
      ['op_commit_1_', 'LEAST(due_at, $6::bigint)'],
      ['op_commit_0_', 'due_at'],
    ])
  })

  test('of a record in more lists than there are columns throws a RangeError', () => {
    const lists = ['a', 'b', 'c', 'd'].map((wanted) => ({ list: wanted, at: 1 }))
    const changes = [change(record('a', 1, { lists }))]
    expect(() => statements.commit({ changes, guards: [] })).toThrow(
      'a record can be in 3 lists, not in 4',
    )
  })
})
