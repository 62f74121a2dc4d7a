import { describe, expect, test } from 'vitest'
import type { Handler, Store } from '../../src/index.js'
import { type Part, parts, runPart } from '../support/inputs/parts.js'
import { runInputs } from '../support/inputs/run.js'
import { growthMaxBytes, problemText, type Report } from '../support/inputs/tally.js'
import { isLong, runs, some } from '../support/runs.js'
import { createWorld, grantEndpoint } from '../support/world.js'

/** The inputs of each test; `npm run test:inputs` sends two million in the same way. */
const counts: Readonly<Record<Part, number>> = {
  memory: runs(12_000, 500),
  pglite: 500,
  postgres: 1_500,
  redis: 1_500,
  express: runs(1_500, 40),
  fastify: runs(1_500, 40),
  hono: runs(1_500, 40),
}
const adapters: readonly Part[] = ['express', 'fastify', 'hono']
const databases = parts.filter((part) => part !== 'memory' && !adapters.includes(part))

function expectNoProblem(report: Report): void {
  expect(report.problems.map(problemText).join('\n')).toBe('')
  const { before, after } = report.memory
  expect(after - before).toBeLessThanOrEqual(growthMaxBytes)
  if (isLong) console.log(JSON.stringify({ ...report.counts.status, ...report.memory }))
}

/** Refusals that need a setting or a failure of the host, or that need time to pass. */
const notOfInputs = ['busy', 'rate_limited', 'request_not_allowed', 'finish_required']

describe('an arbitrary request', () => {
  const seeds = isLong ? ['a', 'b', 'c', 'd'] : ['a']
  test.each(seeds)(
    'receives a well-formed response, and changes nothing if it is refused: seed %s',
    async (seed) => {
      const report = await runPart('memory', { seed, count: counts.memory })
      expectNoProblem(report)
      const { refusal, status } = report.counts
      for (const name of notOfInputs) expect(refusal[name]).toBeUndefined()
      // A search that is refused at the door every time says nothing.
      expect(Object.keys(refusal).length).toBeGreaterThan(isLong ? 32 : 15)
      expect(status['200']).toBeGreaterThan(report.inputs / 20)
    },
  )

  test.each(adapters)('receives a well-formed response over sockets: %s', async (adapter) => {
    expectNoProblem(await runPart(adapter, { seed: 'sockets', count: counts[adapter] }))
  })

  test.runIf(isLong).each(databases)(
    'receives the same response whichever store there is: %s',
    async (database) => {
      const options = { seed: 'stores', count: counts[database] }
      const report = await runPart(database, options)
      expectNoProblem(report)
      expect(report.counts).toEqual((await runPart('memory', options)).counts)
    },
  )

  test('with the deepest possible nesting is refused', async () => {
    const { client, handle, errors } = createWorld()
    const shop = client()
    const depth = 30_000
    for (const body of [
      '['.repeat(depth) + ']'.repeat(depth),
      `${'{"client":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
      `{"client":"https://shop.example","access_token":${'['.repeat(depth)}${']'.repeat(depth)}}`,
    ]) {
      const response = await handle(shop.sign({ method: 'POST', url: grantEndpoint, body }))
      expect(response.status).toBe(400)
    }
    expect(errors).toEqual([])
  })
})

const unrelated = { id: 'namespac-planted', version: 1, commandId: 'planted' }

/** Faults of a server, each with a part of the problem that it must be reported as. */
const faults: Readonly<
  Record<string, { plant: (handle: Handler, store: Store) => Handler; problem: string }>
> = {
  'throws for a header line': {
    plant: (handle) => (request) => {
      const names = request.headers.map(([name]) => name)
      if (names.includes('__proto__')) throw new Error('planted')
      return handle(request)
    },
    problem: 'planted',
  },
  'responds with 500 to a body that is not JSON': {
    plant: (handle) => async (request) => {
      const response = await handle(request)
      return response.body?.includes('Invalid request body')
        ? { ...response, status: 500 }
        : response
    },
    problem: 'a response with 500',
  },
  'stores a record before it refuses a request': {
    plant: (handle, store) => async (request) => {
      const change = { kind: 'quote', next: unrelated, expectedVersion: 0 } as const
      if (request.method === 'POST') await store.commit({ changes: [change], guards: [] })
      return handle(request)
    },
    problem: 'stored a record: quote',
  },
  'puts a stack into a response': {
    plant: (handle) => async (request) => {
      const response = await handle(request)
      if (response.status !== 415) return response
      return { ...response, body: JSON.stringify({ error: new Error('planted').stack }) }
    },
    problem: 'a stack trace',
  },
  'lets caches store a refusal': {
    plant: (handle) => async (request) => {
      const response = await handle(request)
      return response.status === 405 ? { ...response, headers: {} } : response
    },
    problem: 'caches may store',
  },
}

describe('the search with arbitrary requests', () => {
  test.each(some(Object.entries(faults)))(
    'finds a server that %s',
    async (_, { plant, problem }) => {
      const report = await runInputs({ seed: 'planted', count: 500, plant })
      expect(report.failed).toBeGreaterThan(0)
      expect(report.problems.map((found) => found.problem).join()).toContain(problem)
    },
  )

  test('finds a server that never responds to a method', async () => {
    const plant =
      (handle: Handler): Handler =>
      (request) =>
        request.method === 'OPTIONS' ? new Promise(() => undefined) : handle(request)
    const report = await runInputs({ seed: 'planted', count: 60, plant, hangMs: 200 })
    expect(report.problems.map(({ problem }) => problem).join()).toContain('no response')
  })

  test.runIf(isLong)(
    'finds a server that keeps something of every request that it refuses',
    async () => {
      const kept: unknown[] = []
      const plant =
        (handle: Handler): Handler =>
        async (request) => {
          const response = await handle(request)
          if (response.status >= 400) kept.push(new Array(2_000).fill(0))
          return response
        }
      const { memory } = await runInputs({ seed: 'planted', count: 1_500, plant })
      expect(kept.length).toBeGreaterThan(0)
      expect(memory.after - memory.before).toBeGreaterThan(growthMaxBytes)
    },
  )
})
