import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { migrate, postgresStore } from 'open-payments-server/postgres'
import type { ContenderResult } from './contender.js'
import { hasDatabase, withDatabase } from './database.js'
import { benchWallet, bob, type Library, newToken, resourceServer, signed } from './fixtures.js'
import { type Figure, medianFigure } from './measure.js'

const processes = 4
const payments = 2
const rounds = 5
const durationMs = 2_000

/** Measures how fast several processes receive into the same few incoming payments on PostgreSQL. */
export async function contention(library: Library): Promise<Figure[]> {
  if (!(await hasDatabase())) return []
  return withDatabase(async ({ schema, connect }) => {
    const pool = connect()
    await migrate(pool, { schema })
    const wallet = benchWallet(library, postgresStore(pool, { schema }))
    const { value: token } = await newToken(wallet)
    const ids: string[] = []
    for (let i = 0; i < payments; i++) {
      const url = `${resourceServer}/incoming-payments`
      const body = JSON.stringify({ walletAddress: bob })
      const request = await signed(wallet.key, { method: 'POST', url, token, body })
      const { id } = JSON.parse((await wallet.resources.handle(request)).body ?? '')
      ids.push(wallet.resources.incomingPayments.idOf(id) ?? '')
    }
    const results: ContenderResult[] = []
    for (let round = 0; round < rounds; round++) results.push(await raced(schema, ids))
    const name = `${processes} processes that receive into ${payments} payments`
    const figure = (what: string, of: keyof ContenderResult, unit: 'receives/s' | 'calls') => {
      const values = results.map(
        (result) => result[of] / (of === 'received' ? durationMs / 1e3 : 1),
      )
      return medianFigure(`${name}${what}`, values, unit)
    }
    return [
      figure('', 'received', 'receives/s'),
      figure(': receives that gave up', 'gaveUp', 'calls'),
      { ...figure(': connections closed', 'closed', 'calls'), target: { most: 0 } },
    ]
  })
}

/** Runs one round in all processes at the same time, and returns the sums of their results. */
async function raced(schema: string, ids: readonly string[]): Promise<ContenderResult> {
  const contender = fileURLToPath(new URL('contender.js', import.meta.url))
  const args = [schema, String(durationMs), ...ids]
  const children = Array.from({ length: processes }, () => fork(contender, args))
  await Promise.all(children.map((child) => once(child, 'message')))
  const results = children.map(async (child) => {
    child.send('begin')
    const [result] = await once(child, 'message')
    return result as ContenderResult
  })
  const sum = { received: 0, gaveUp: 0, closed: 0 }
  for (const each of await Promise.all(results)) {
    for (const name of ['received', 'gaveUp', 'closed'] as const) sum[name] += each[name]
  }
  return sum
}
