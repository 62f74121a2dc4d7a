import { positiveNumber, runScript, wholeNumber } from '../script.js'
import { live, plans, problemsOf } from './plans.js'
import type { Plan } from './world.js'

const usage = `Usage: npm run deliver -- [--minutes 1] [--seed 1]

Delivers events by each plan of workshop/delivery/plans.ts, with one seed after another.
`

const progressMs = 60_000

/** Delivers by all plans with one seed. Returns the number of plans whose laws were broken. */
async function deliverWith(seed: string): Promise<number> {
  let failed = 0
  for (const [name, plan] of Object.entries<Plan>(plans)) {
    const problems = problemsOf(plan, await live({ ...plan, seed }))
    if (problems.length === 0) continue
    failed += 1
    console.log(`${name}, seed ${seed}:`)
    for (const problem of problems) console.log(`  ${problem}`)
  }
  return failed
}

/** Delivers for so long. Resolves to whether all laws were kept. */
async function deliver(minutes: number, first: number): Promise<boolean> {
  const endAt = Date.now() + minutes * 60_000
  let [seed, failed, reportAt] = [first, 0, Date.now() + progressMs]
  for (; Date.now() < endAt; seed++) {
    failed += await deliverWith(`${seed}`)
    if (Date.now() < reportAt) continue
    reportAt = Date.now() + progressMs
    console.error(`${seed - first + 1} seeds, ${failed} failures`)
  }
  const count = seed - first
  console.log(`${count} seeds of ${Object.keys(plans).length} plans, ${failed} failures`)
  return failed === 0
}

const options = { minutes: { type: 'string' }, seed: { type: 'string' } } as const

await runScript({ name: 'npm run deliver --', usage, options }, ({ minutes = '1', seed = '1' }) =>
  deliver(positiveNumber('--minutes', minutes), wholeNumber('--seed', seed)),
)
