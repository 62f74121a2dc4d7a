import { AttemptsError, attemptsConformance } from 'open-payments-server-testing'
import { describe, expect, test } from 'vitest'
import { mistakes } from './support/faulty-settlement.js'

/** The first named case in which a law is broken, and the law. */
async function brokenBy(name: string): Promise<string | undefined> {
  const subject = mistakes[name]
  if (subject === undefined) throw new Error(name)
  for (const each of attemptsConformance(subject)) {
    try {
      await each.run()
    } catch (error) {
      if (!(error instanceof AttemptsError)) throw error
      return `${error.law} ${each.name}`
    }
  }
  return undefined
}

describe('the named cases find each planted mistake', () => {
  test.each(Object.keys(mistakes))('%s', async (name) => {
    const found = await brokenBy(name)
    if (process.env['SHOW']) console.log('MISTAKE', name, '|', found)
    expect(found).toBeDefined()
  })
})
