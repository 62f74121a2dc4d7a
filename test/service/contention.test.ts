import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { memoryStore, type Store } from '../../src/index.js'
import { freshPostgres, servers } from '../support/databases.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'

/**
 * Makes 100 concurrent payments that fit in one grant, and expects a different total in each
 * response.
 */
async function expectAllPaid(store: Store): Promise<void> {
  const world = createSpendingWorld({ store })
  const client = world.client()
  const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1_000) })])
  // On a slow machine a hundred writers can contend for longer than a server waits: a client tries again then.
  async function payAgain() {
    for (;;) {
      const answer = await pay(client, token, 10)
      if (answer.status !== 503) return answer
    }
  }
  const answers = await Promise.all(Array.from({ length: 100 }, payAgain))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
  const spent = answers.map(({ body }) => Number(body.grantSpentDebitAmount.value))
  const steps = answers.map((_, index) => (index + 1) * 10)
  expect(spent.toSorted((a, b) => a - b)).toEqual(steps)
  expect((await pay(client, token, 1)).status).toBe(403)
}

describe('a hundred concurrent payments under one grant', () => {
  test('all succeed in memory', () => expectAllPaid(memoryStore()))

  test.skipIf(servers.PostgreSQL === undefined)('all succeed on PostgreSQL', async () => {
    const { pool, schema, drop } = await freshPostgres()
    try {
      await expectAllPaid(postgresStore(pool, { schema }))
    } finally {
      await drop()
    }
  })
})
