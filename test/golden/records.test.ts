import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.js'
import {
  begun,
  current,
  goldenOf,
  goneOn,
  isWriting,
  putRecords,
  versions,
  writeGolden,
} from './golden.js'
import { lives } from './lives.js'

if (isWriting) await writeGolden()

describe('this version writes', () => {
  test.each(Object.keys(lives))('%s as its golden records say', async (name) => {
    expect(JSON.parse(JSON.stringify(await begun(name)))).toEqual(goldenOf(current, name))
  })

  test('every kind of record in one of them', () => {
    const kinds = Object.keys(lives).flatMap((name) =>
      goldenOf(current, name).records.map(({ kind }) => kind),
    )
    const payments = ['incoming-payment', 'outgoing-payment']
    const every = [
      'budget',
      'doubt',
      'ended-grant',
      'event',
      'grant',
      ...payments,
      'quote',
      'replay',
    ]
    expect([...new Set(kinds)].toSorted()).toEqual([...every, 'server', 'transfer'])
  })
})

describe.each(versions)('records that version %s wrote', (version) => {
  test.each(Object.keys(lives))('let %s go on', async (name) => {
    const golden = goldenOf(version, name)
    const store = memoryStore()
    await putRecords(store, golden)
    await goneOn(store, name, golden)
  })
})
