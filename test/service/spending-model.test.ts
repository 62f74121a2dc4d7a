import fc from 'fast-check'
import { describe, test } from 'vitest'
import { playBooked, stories } from '../support/booked-play.js'
import { runs } from '../support/runs.js'
import { servedWallet, serverWallet } from '../support/spending-wallets.js'

describe('a wallet agrees with the testing kit and with an independent book', () => {
  test('when its services are called, for any history of grants, payments and reports', async () => {
    const property = fc.asyncProperty(stories, (story) => playBooked(servedWallet(), story))
    await fc.assert(property, { numRuns: runs(800) })
  })

  test('when its servers receive signed requests', async () => {
    const property = fc.asyncProperty(stories, (story) => playBooked(serverWallet(), story))
    await fc.assert(property, { numRuns: runs(60) })
  })
})
