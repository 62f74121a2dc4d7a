import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { memoryStore, type Store } from '../../src/index.js'
import { freshPostgres, servers } from '../support/databases.js'
import { seededRandom } from '../support/random.js'
import { createSpendingWorld, grantToPay, pay, usd, withKey } from '../support/spending.js'
import { spentUnder } from '../support/spending-client.js'
import type { Answer } from '../support/world.js'

/** Repeats a payment that got 503: on a slow machine, so many writers can contend for longer than a server waits. */
async function untilAnswered(attempt: (nonce: number) => Promise<Answer>): Promise<Answer> {
  for (let nonce = 1; ; nonce++) {
    const answer = await attempt(nonce)
    if (answer.status !== 503) return answer
  }
}

/** Two pairs of servers on one store make a hundred payments, each a tenth of the limit of their grant. */
async function expectLimit(store: Store): Promise<void> {
  const worlds = ['one', 'two'].map((name) => {
    const world = createSpendingWorld({ store, resources: { random: seededRandom(name) } })
    return { name, world, client: world.client() }
  })
  const [first, second] = worlds
  if (first === undefined || second === undefined) throw new Error('there is no world')
  const { token: tenths } = await grantToPay(first.world, first.client)
  const { token: keyed } = await grantToPay(first.world, first.client)
  second.world.clock.set(first.world.clock.now())

  const payAll = (token: string, sign: object) =>
    Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const { name, client } = index % 2 === 0 ? first : second
        return untilAnswered((attempt) =>
          pay(client, token, 250, {}, { ...sign, nonce: `${name} ${token} ${index} ${attempt}` }),
        )
      }),
    )
  const idsOf = (answers: readonly Answer[]) => new Set(answers.map(({ body }) => body.id))

  const each = await payAll(tenths, {})
  const made = each.filter(({ status }) => status === 201)
  expect(made).toHaveLength(10)
  expect(idsOf(made).size).toBe(10)
  const others = each.filter(({ status }) => status !== 201)
  const refusals = others.map(({ status, body }) => `${status} ${body.error.code}`)
  expect(new Set(refusals)).toEqual(new Set(['403 insufficient_grant']))
  expect((await spentUnder(first.client, tenths)).spentDebitAmount).toEqual(usd(2_500))

  const same = await payAll(keyed, withKey('the-key'))
  expect(new Set(same.map(({ status }) => status))).toEqual(new Set([201]))
  expect(idsOf(same).size).toBe(1)
  expect((await spentUnder(first.client, keyed)).spentDebitAmount).toEqual(usd(250))
}

describe('a hundred concurrent payments at two servers, each a tenth of the limit', () => {
  test('make ten payments, and a hundred requests with one key make one', async () => {
    await expectLimit(memoryStore())
  })

  test.skipIf(servers.PostgreSQL === undefined)('make ten payments on PostgreSQL', async () => {
    const fresh = await freshPostgres()
    try {
      await expectLimit(postgresStore(fresh.pool, { schema: fresh.schema }))
    } finally {
      await fresh.drop()
    }
  })
})
