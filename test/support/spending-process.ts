import { once } from 'node:events'
import { Pool } from 'pg'
import { postgresStore } from '../../adapters/postgres.js'
import { manualClock } from './clock.js'
import { seededRandom } from './random.js'
import type { SignOptions } from './sign.js'
import { createSpendingWorld, pay, withKey } from './spending.js'

/**
 * A wallet in its own process, on tables that other processes also use. On each signal it makes `count` concurrent
 * payments of 250: first with one token and without a key, then with another token and always the same key.
 */
const [schema = '', name = '', now = '', tenths = '', keyed = '', count = ''] =
  process.argv.slice(2)
const pool = new Pool({ connectionString: process.env['TEST_DATABASE_URL'], max: 10 })
const world = createSpendingWorld({
  store: postgresStore(pool, { schema }),
  clock: manualClock(Number(now)),
  resources: { random: seededRandom(name) },
})
const client = world.client()
const numbers = Array.from({ length: Number(count) }, (_, index) => index)

/** Repeats a payment that got 503: on a slow machine, so many writers can contend for longer than a server waits. */
async function payAgain(token: string, sign: Partial<SignOptions>, nonce: string) {
  for (let attempt = 1; ; attempt++) {
    const answer = await pay(client, token, 250, {}, { ...sign, nonce: `${nonce} ${attempt}` })
    if (answer.status !== 503) return answer
  }
}

async function signalled(): Promise<void> {
  process.stdout.write('ready\n')
  await once(process.stdin, 'data')
}

await pool.query('SELECT 1')
for (const [token, sign] of [[tenths, {}] as const, [keyed, withKey('the-key')] as const]) {
  await signalled()
  const answers = await Promise.all(
    numbers.map((n) => payAgain(token, sign, `${token} ${name} ${n}`)),
  )
  const seen = answers.map(({ status, body }) => ({ status, id: body.id, code: body.error?.code }))
  process.stdout.write(`${JSON.stringify(seen)}\n`)
}
await pool.end()
process.exit()
