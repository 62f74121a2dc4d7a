import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../../adapters/postgres.js'
import {
  cellsOf,
  columns,
  recordIn,
  recordsOf,
  renameLists,
  textOf,
  typeOf,
} from '../../../adapters/sql/records.js'
import type { Stored } from '../../../src/entry-adapter.js'
import { anyPostgres } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'
import { runs } from '../../support/runs.js'

const record = { id: 'id', version: 3, commandId: 'command' }
const lists = [
  { list: 'one', at: 1 },
  { list: 'two', at: 2 },
]

describe('the cells of a record', () => {
  test('are the values of its columns, null for an empty one', () => {
    const cells = cellsOf('grant', { ...record, dueAt: 9, lists })
    const named = Object.fromEntries(columns.map((column, i) => [column, cells[i]]))
    expect(cells).toHaveLength(columns.length)
    expect(named).toEqual({
      kind: 'grant',
      id: 'id',
      version: 3,
      value: expect.stringContaining('"commandId":"command"'),
      due_at: 9,
      list_1: 'one',
      list_1_at: 1,
      list_2: 'two',
      list_2_at: 2,
      list_3: null,
      list_3_at: null,
    })
  })

  test('get other names for the lists, and change in nothing else', () => {
    const cells = cellsOf('one', { ...record, id: 'one', dueAt: 1, lists })
    const renamed = renameLists(cells, (list) => `${list}!`)
    const changed = columns.filter((_, i) => renamed[i] !== cells[i])
    expect(changed).toEqual(['list_1', 'list_2'])
    expect(renamed[columns.indexOf('list_1')]).toBe('one!')
    expect(renamed[columns.indexOf('list_3')]).toBeNull()
  })
})

test('versions and times are integers, and everything else is text', () => {
  const integers = columns.filter((column) => typeOf(column) === 'bigint')
  expect(integers).toEqual(['version', 'due_at', 'list_1_at', 'list_2_at', 'list_3_at'])
})

test('a row has a record for each value, and none for null', () => {
  const row: object = { 0: textOf(record), 1: null, 2: textOf({ ...record, id: 'other' }) }
  expect(recordsOf(row)).toEqual([record, undefined, { ...record, id: 'other' }])
  expect(recordsOf()).toEqual([])
})

/** Text of all code units, with those that need care, and text that resembles their escapes, in most values. */
const hard = fc
  .array(
    fc.oneof(
      fc.constantFrom('\u0000', '\ud800', '\udbff', '\udc00', '\udfff', '\ue000', '\\', '"', 'u'),
      fc.constantFrom('\\u0000', '\\\\ud800', '\ue0000000', '\ue000e000', '\ue000d8', '0000', '💶'),
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''))

const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
  fc.constantFrom(2 ** 63, 2 ** 64, 1e21, 1.7976931348623157e308, 5e-324),
)

const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    hard,
    number,
    fc.constantFrom(null, true, false),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(hard, tie('value'), { maxKeys: 4 }),
  ),
})).value

const anyRecord = fc
  .tuple(json, fc.dictionary(hard, json, { maxKeys: 3 }))
  .map(([failure, metadata]) => {
    return { id: 'a', version: 1, commandId: 'b', failure, metadata } as Stored
  })

/** The characters that `jsonb` refuses, as they would appear in JSON without U+E000. */
const refused = /(?:^|[^\\])(?:\\\\)*\\u(?:0000|d[89a-f])/

describe('the text of a record', () => {
  test('gives exactly the same record back, with the same order of keys', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        expect(JSON.stringify(recordIn(textOf(record)))).toBe(JSON.stringify(record))
      }),
      { numRuns: runs(3_000) },
    )
  })

  test('never contains U+0000 or a lone surrogate', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        expect(textOf(record)).not.toMatch(refused)
        expect(() => JSON.parse(textOf(record))).not.toThrow()
      }),
      { numRuns: runs(3_000) },
    )
  })

  test('is the JSON of the record if it contains none of these characters', () => {
    const record = { id: 'a', version: 1, commandId: 'b', note: '\\u0000 \ud83d\ude00 "é" \u0001' }
    expect(textOf(record)).toBe(JSON.stringify(record))
  })

  test('names the character that it replaces', () => {
    const record = { id: 'a', version: 1, commandId: 'b', 'k\u0000': 'a\ud800b\ue000' }
    expect(JSON.parse(textOf(record))).toMatchObject({ 'k\ue0000000': 'a\ue000d800b\ue000e000' })
  })
})

describe('in PostgreSQL', () => {
  let database: Awaited<ReturnType<typeof anyPostgres>>
  beforeAll(async () => {
    database = await anyPostgres()
  })
  afterAll(() => database.close())

  test('every record is read as json and jsonb, also through an index, and loads unchanged', async () => {
    const { client, prefix, options } = database
    const store = postgresStore(client, options)
    const table = `${prefix}open_payments_records`
    const all = (text: string) => client.query({ text, values: [] })
    await all(`CREATE INDEX ON ${table} (md5(value::jsonb ->> 'failure'))`)
    const records = fc
      .sample(anyRecord, { numRuns: runs(400), seed: 7 })
      .map((record, i) => ({ ...record, id: `record-${i}` }))
    for (const next of records) {
      const change = { kind: 'outgoing-payment', next, expectedVersion: 0 } as const
      expect(await store.commit({ changes: [change], guards: [] })).toBe(true)
      expect(JSON.stringify(await loadOne(store, 'outgoing-payment', next.id))).toBe(
        JSON.stringify(next),
      )
    }
    const { rows } = await all(
      `SELECT count(value::json ->> 'failure') + count(value::json -> 'metadata') AS json,
        count(value::jsonb) AS jsonb FROM ${table}`,
    )
    expect(Number(rows[0]?.['jsonb'])).toBe(records.length)
    expect(Number(rows[0]?.['json'])).toBeGreaterThan(records.length)
  })
})
