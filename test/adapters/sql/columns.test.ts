import { describe, expect, test } from 'vitest'
import { cellsOf, columns, renameLists, typeOf } from '../../../adapters/sql/columns.js'

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
