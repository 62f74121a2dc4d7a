import fc from 'fast-check'
import { memoryStore } from 'open-payments-server'
import { afterAll, describe, expect, test } from 'vitest'
import {
  type StoreSubject,
  defaultScene as scene,
  spendingProperty,
  type WalletSubject,
} from '../src/index.js'
import { storeFaults } from './support/faulty-stores.js'
import { faultyWallet, mistakes } from './support/faulty-wallet.js'

const searches = 10
const numRuns = 2_000
/** One line for each mistake: in how many searches it was found, and after how many histories. */
const lines: string[] = []

/** Runs ten searches, each with another seed, and returns how many found the mistake. */
async function searchFor(mistake: string, subject: StoreSubject | WalletSubject): Promise<number> {
  const played: number[] = []
  for (let seed = 1; seed <= searches; seed++) {
    const parameters = { numRuns, seed, endOnFailure: true }
    const result = await fc.check(spendingProperty(fc, subject), parameters)
    if (result.failed) played.push(result.numRuns)
  }
  const [least, most] = [Math.min(...played), Math.max(...played)]
  lines.push(`${played.length} of ${searches} | ${least} to ${most} | ${mistake}`)
  return played.length
}

afterAll(() => {
  console.log(['found in | histories played | mistake', ...lines].join('\n'))
})

describe(`ten searches of ${numRuns} histories all find`, () => {
  test.each(mistakes)('a wallet in which %s', async (mistake) => {
    const wallet = () => faultyWallet(scene, mistake)
    expect(await searchFor(mistake, { wallet, scene })).toBe(searches)
  })

  test.each(Object.entries(storeFaults))('a store that %s', async (fault, broken) => {
    const store = () => broken(memoryStore())
    expect(await searchFor(`a store that ${fault}`, { store })).toBe(searches)
  })
})
