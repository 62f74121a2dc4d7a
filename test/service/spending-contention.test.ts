import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { freshPostgres, servers } from '../support/databases.js'
import { createSpendingWorld, grantToPay, pay, usd, withKey } from '../support/spending.js'
import { resourceServer, type TestClient, type World } from '../support/world.js'

/** The result of one of the hundred payments. */
interface Seen {
  readonly status: number
  readonly id?: string
  readonly code?: string
}

/**
 * Expects exactly ten different payments, and refusals of the others because the budget is spent.
 */
async function expectTen(client: TestClient, token: string, answers: readonly Seen[]) {
  expect(answers).toHaveLength(100)
  const made = answers.filter(({ status }) => status === 201)
  expect(made).toHaveLength(10)
  expect(new Set(made.map(({ id }) => id)).size).toBe(10)
  const others = answers.filter(({ status }) => status !== 201)
  expect(new Set(others.map(({ status, code }) => `${status} ${code}`))).toEqual(
    new Set(['403 insufficient_grant']),
  )
  await expectSpent(client, token, 2_500)
}

/** Expects one payment for all hundred requests, counted once. */
async function expectOne(client: TestClient, token: string, answers: readonly Seen[]) {
  expect(answers).toHaveLength(100)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
  await expectSpent(client, token, 250)
}

async function expectSpent(client: TestClient, token: string, value: number) {
  const { body } = await client.getPayment(token, `${resourceServer}/outgoing-payment-grant`)
  expect(body.spentDebitAmount).toEqual(usd(value))
}

async function setUp(world: World) {
  const client = world.client()
  const tenths = await grantToPay(world, client)
  const keyed = await grantToPay(world, client)
  return { client, tenths: tenths.token, keyed: keyed.token }
}

const seen = ({ status, body }: { status: number; body: { id?: string; error?: Seen } }): Seen => ({
  status,
  ...(body.id && { id: body.id }),
  ...(body.error?.code && { code: body.error.code }),
})

describe('a hundred concurrent payments, each a tenth of the limit', () => {
  test('make ten payments, and a hundred requests with one key make one', async () => {
    const world = createSpendingWorld()
    const { client, tenths, keyed } = await setUp(world)
    const numbers = Array.from({ length: 100 }, (_, index) => index)
    const each = await Promise.all(numbers.map(() => pay(client, tenths, 250)))
    await expectTen(client, tenths, each.map(seen))
    const key = withKey('the-key')
    const same = await Promise.all(numbers.map(() => pay(client, keyed, 250, {}, key)))
    await expectOne(client, keyed, same.map(seen))
    expect(world.errors).toEqual([])
  })

  test.skipIf(servers.PostgreSQL === undefined)(
    'make ten payments on PostgreSQL when two processes send them',
    async () => {
      const fresh = await freshPostgres()
      const store = postgresStore(fresh.pool, { schema: fresh.schema })
      const world = createSpendingWorld({ store })
      const { client, tenths, keyed } = await setUp(world)
      const parameters = [String(world.clock.now()), tenths, keyed, '50']
      const processes = ['one', 'two'].map((name) => wallet([fresh.schema, name, ...parameters]))
      try {
        await expectTen(client, tenths, await atOnce(processes))
        await expectOne(client, keyed, await atOnce(processes))
      } finally {
        for (const { child } of processes) child.kill()
        await fresh.drop()
      }
    },
  )
})

/** Starts a process that pays when it reads a line. */
function wallet(parameters: readonly string[]) {
  const script = fileURLToPath(new URL('../support/spending-process.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...parameters], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ended = once(child, 'exit').then(() => ({ done: true, value: 'it has ended' }) as const)
  const line = async () => (await Promise.race([lines.next(), ended])).value as string
  return { child, line }
}

/** Starts all processes when all are ready, and collects their results. */
async function atOnce(processes: readonly ReturnType<typeof wallet>[]): Promise<Seen[]> {
  const ready = await Promise.all(processes.map(({ line }) => line()))
  expect(ready).toEqual(['ready', 'ready'])
  for (const { child } of processes) child.stdin.write('go\n')
  const answers = await Promise.all(processes.map(({ line }) => line()))
  return answers.flatMap((answer) => JSON.parse(answer) as Seen[])
}
