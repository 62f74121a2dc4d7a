import { afterAll, describe, expect, test } from 'vitest'
import { naiveStore } from '../../examples/payment-limits/naive-store.js'
import { searchForOverspending } from '../../examples/payment-limits/search.js'
import { memoryStore } from '../../src/index.js'
import { exited, killPrograms, run } from './program.js'

afterAll(killPrograms)

describe('the search for overspending', () => {
  test('finds the mistake of the naive store, by a history that a person reads', async () => {
    const { played, overspent = '' } = await searchForOverspending(naiveStore, {
      histories: 2_000,
      seed: 2,
    })
    expect(played).toBeLessThan(2_000)
    expect(overspent.split('\n').length).toBeLessThan(15)
    expect(overspent).toMatch(
      /^it had to be refused: grant 1, item 1, .*: limit USD [\d.]+, spent USD [\d.]+, over by USD [\d.]+\n/,
    )
  })

  test('finds nothing in the memory store', async () => {
    expect(await searchForOverspending(memoryStore, { histories: 20 })).toEqual({ played: 20 })
  })
})

test('the program tells both, and ends well', async () => {
  const { printed, ended } = run('examples/payment-limits/main.ts', {})
  expect(await ended).toEqual(exited)
  expect(printed.err).toBe('')
  expect(printed.out).toMatch(
    /^The naive store:\n\nit had to be refused: [\s\S]+ {2}2\. at once[\s\S]+The memory store:\n\nnothing wrong in 150 histories\n$/,
  )
})
