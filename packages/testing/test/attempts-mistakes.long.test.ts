import { AttemptsError, attemptsConformance } from 'open-payments-server-testing'
import { expect, test } from 'vitest'
import { mistakes } from './support/faulty-settlement.js'

/** The laws that a mistake breaks in the named cases. */
async function lawsBrokenBy(name: string): Promise<ReadonlySet<string>> {
  const subject = mistakes[name]
  if (subject === undefined) throw new Error(name)
  const laws = new Set<string>()
  for (const each of attemptsConformance(subject)) {
    await each.run().catch((error) => {
      if (!(error instanceof AttemptsError)) throw error
      for (const law of error.laws) laws.add(law)
    })
  }
  return laws
}

const found = new Set<string>()

test.each(Object.keys(mistakes))('the named cases find that %s', async (name) => {
  const laws = await lawsBrokenBy(name)
  if (process.env['SHOW']) console.log('MISTAKE', name, '|', [...laws].sort().join())
  expect(laws.size).toBeGreaterThan(0)
  for (const law of laws) found.add(law)
})

test('each law is broken by one of these mistakes', () => {
  expect([...found].sort()).toEqual(['L1', 'L2', 'L3', 'L4', 'L5', 'L6', 'L7', 'L8'])
})
