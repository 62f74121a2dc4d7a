import { parseArgs } from 'node:util'
import { live, plans, problemsOf } from './plans.js'
import type { Plan } from './world.js'

const usage =
  'npm run deliver -- [--minutes 1] [--seed 1]\n' +
  'Delivers events by each plan of assurance/delivery/plans.ts, with one seed after another.'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})

const progressMs = 60_000

function positive(name: 'minutes' | 'seed'): number {
  const number = Number(values[name])
  if (Number.isFinite(number) && number > 0) return number
  throw new RangeError(`--${name} must be a positive number`)
}

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

async function main(): Promise<void> {
  if (values.help) return console.log(usage)
  const endAt = Date.now() + positive('minutes') * 60_000
  let [seed, failed, reportAt] = [positive('seed'), 0, Date.now() + progressMs]
  const first = seed
  for (; Date.now() < endAt; seed++) {
    failed += await deliverWith(`${seed}`)
    if (Date.now() < reportAt) continue
    reportAt = Date.now() + progressMs
    console.error(`${seed - first + 1} seeds, ${failed} failures`)
  }
  const count = seed - first
  console.log(`${count} seeds of ${Object.keys(plans).length} plans, ${failed} failures`)
  process.exitCode = failed === 0 ? 0 : 1
}

await main()
