import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type Part, parts } from '../../test/support/inputs/parts.js'
import { growthMaxBytes, problemText, type Report } from '../../test/support/inputs/tally.js'
import { runScript, wholeNumber } from '../script.js'

const usage = `Usage: npm run test:inputs -- [--count 2000000] [--seed x]

Sends bad inputs to the servers over all stores and adapters, one process for each core.

Exit code: 0 done; 1 a response or a record is wrong, memory has grown beyond the bound, or an input got no response.
`

/** A process that serves no batch for so long does not respond, even if it only computes. */
const silenceMaxMs = 300_000

interface Task {
  readonly part: Part
  readonly seed: string
  readonly count: number
}

interface Done {
  readonly report: Report
  readonly seconds: number
  readonly rss: number
}

/** What one input in a thousand is sent to; the memory store gets all others. */
const perThousand: Readonly<Record<Exclude<Part, 'memory'>, number>> = {
  pglite: 4,
  postgres: 8,
  redis: 5,
  express: 6,
  fastify: 6,
  hono: 6,
}
const memoryTasks = 8

function tasksOf(count: number, seed: string): Task[] {
  const others = parts.flatMap((part) => {
    if (part === 'memory') return []
    return { part, seed: `${seed} ${part}`, count: Math.round((count * perThousand[part]) / 1000) }
  })
  const left = count - others.reduce((sum, task) => sum + task.count, 0)
  const memory = Array.from({ length: memoryTasks }, (_, index) => ({
    part: 'memory' as const,
    seed: `${seed} memory ${index}`,
    count: Math.floor((left + index) / memoryTasks),
  }))
  return [...others, ...memory]
}

function run({ part, seed, count }: Task): Promise<Done> {
  const worker = fileURLToPath(new URL('worker.ts', import.meta.url))
  const child = fork(worker, [part, seed, String(count)], { execArgv: ['--import', 'tsx'] })
  return new Promise((resolve, reject) => {
    let served = 0
    let done: Done | undefined
    const fail = (what: string) => reject(new Error(`${seed}: ${what} after ${served} inputs`))
    const watch = () =>
      setTimeout(() => {
        child.kill('SIGKILL')
        fail('no batch was served for 5 minutes')
      }, silenceMaxMs)
    let timer = watch()
    child.on('message', (message: { served: number } | Done) => {
      clearTimeout(timer)
      timer = watch()
      if ('served' in message) served = message.served
      else done = message
    })
    child.on('close', () => {
      clearTimeout(timer)
      if (done === undefined) fail('the process ended')
      else resolve(done)
    })
  })
}

/** Merges counts, most frequent first. */
function merged(reports: readonly Report[], what: keyof Report['counts']): [string, number][] {
  const all = new Map<string, number>()
  for (const { counts } of reports) {
    for (const [name, each] of Object.entries(counts[what])) {
      all.set(name, (all.get(name) ?? 0) + each)
    }
  }
  return [...all].sort(([, a], [, b]) => b - a)
}

function printTask({ part, seed }: Task, { report, seconds, rss }: Done): boolean {
  const { inputs, failed, problems, memory, slowest } = report
  const growth = memory.after - memory.before
  const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`
  console.log(
    `${part.padEnd(9)} ${String(inputs).padStart(8)} inputs, ${failed} with a problem, ` +
      `heap ${megabytes(memory.before)} → ${megabytes(memory.after)}, rss ${megabytes(rss)}, ` +
      `${seconds.toFixed(0)} s CPU, slowest ${slowest.ms.toFixed(0)} ms (${slowest.kind}, ${slowest.status})`,
  )
  for (const problem of problems) console.log(problemText(problem))
  if (growth <= growthMaxBytes) return failed === 0
  console.log(
    `${seed}: the heap grew by ${megabytes(growth)}, more than ${megabytes(growthMaxBytes)}`,
  )
  return false
}

/** Resolves to whether every input got a right response. */
async function sendAll(count: number, seed: string): Promise<boolean> {
  console.log(`${count} inputs, seed ${seed}`)
  const queue = tasksOf(count, seed)
  const reports: Report[] = []
  let correct = true

  async function work(): Promise<void> {
    for (let task = queue.shift(); task !== undefined; task = queue.shift()) {
      try {
        const done = await run(task)
        correct = printTask(task, done) && correct
        reports.push(done.report)
      } catch (error) {
        console.log(String(error))
        correct = false
      }
    }
  }

  await Promise.all(Array.from({ length: availableParallelism() }, work))
  for (const what of ['kind', 'status', 'code', 'refusal', 'nonce'] as const) {
    const each = merged(reports, what).map(([name, n]) => `${String(n).padStart(9)}  ${name}`)
    console.log(`\nby ${what}\n${each.join('\n')}`)
  }
  console.log(`\n${reports.reduce((sum, { inputs }) => sum + inputs, 0)} inputs, seed ${seed}`)
  return correct
}

const options = { count: { type: 'string' }, seed: { type: 'string' } } as const

await runScript({ name: 'npm run test:inputs --', usage, options }, (values) => {
  const { count = '2000000', seed = randomBytes(4).toString('hex') } = values
  return sendAll(wholeNumber('--count', count, 1), seed)
})
