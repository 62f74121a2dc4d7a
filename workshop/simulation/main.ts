import { UsageError } from 'open-payments-programs'
import { runScript, wholeNumber } from '../script.js'
import { type Life, live } from './life.js'
import { type MistakeName, mistakes } from './mistakes.js'

const usage = `Usage: npm run simulate -- [--seed 1] [--lives 100] [--steps 500] [--verbose] [--mistake name]

Lives begin with consecutive seeds; with another seed than 1, there is one by default. --verbose prints each step.
--mistake plants a mistake that a life should find:
${Object.keys(mistakes)
  .map((name) => `  ${name}\n`)
  .join('')}`

const progressMs = 5_000

interface Plan {
  /** The seed of the first life. */
  readonly first: number
  readonly lives: number
  readonly steps: number
  readonly mistake: MistakeName | undefined
  readonly isVerbose: boolean
}

function isMistake(name: string): name is MistakeName {
  return Object.hasOwn(mistakes, name)
}

/** Lives the lives one after another, and returns those that broke a law. */
async function liveAll(plan: Plan) {
  const { first, lives, steps, mistake: planted, isVerbose } = plan
  const counts = new Map<string, number>()
  const failed: Life[] = []
  let stepsLived = 0
  const mistake = planted === undefined ? {} : { mistake: mistakes[planted] }
  let reportAt = Date.now() + progressMs
  for (let index = 0; index < lives; index++) {
    const print = isVerbose ? { print: (line: string) => console.log(line) } : {}
    const life = await live({ seed: String(first + index), steps, ...mistake, ...print })
    stepsLived += life.steps
    for (const [name, number] of life.counts) counts.set(name, (counts.get(name) ?? 0) + number)
    if (lives === 1) console.log(`trace ${life.hash}`)
    if (life.breaches.length > 0) {
      failed.push(life)
      tell(life, plan)
    }
    if (Date.now() < reportAt) continue
    reportAt = Date.now() + progressMs
    console.error(`${index + 1} of ${lives} lives, ${failed.length} failed`)
  }
  return { counts, failed, stepsLived }
}

function tell({ seed, steps: lived, breaches }: Life, { steps, mistake }: Plan): void {
  console.log(`life ${seed} broke a law at step ${lived}:`)
  for (const breach of breaches) console.log(`  ${breach}`)
  const planted = mistake === undefined ? '' : ` --mistake '${mistake}'`
  const again = `--seed ${seed} --lives 1 --steps ${steps}${planted}`
  console.log(`  npm run simulate -- ${again} --verbose`)
}

/** Resolves to whether no life broke a law. */
async function simulate(plan: Plan): Promise<boolean> {
  const begun = process.cpuUsage()
  const { counts, failed, stepsLived } = await liveAll(plan)
  const { user, system } = process.cpuUsage(begun)
  const seconds = ((user + system) / 1e6).toFixed(1)
  console.log(
    `${plan.lives} lives, ${stepsLived} steps, ${failed.length} failed, ${seconds} s of CPU`,
  )
  const sorted = [...counts].sort(([one], [other]) => (one < other ? -1 : 1))
  console.log(sorted.map(([name, number]) => `${name}: ${number}`).join(', '))
  return failed.length === 0
}

const options = {
  seed: { type: 'string' },
  lives: { type: 'string' },
  steps: { type: 'string' },
  mistake: { type: 'string' },
  verbose: { type: 'boolean' },
} as const

await runScript({ name: 'npm run simulate --', usage, options }, (values) => {
  const { seed = '1', steps = '500', mistake, verbose: isVerbose = false } = values
  const { lives = seed === '1' ? '100' : '1' } = values
  if (mistake !== undefined && !isMistake(mistake))
    throw new UsageError(`unknown mistake ${mistake}`)
  return simulate({
    first: wholeNumber('--seed', seed),
    lives: wholeNumber('--lives', lives),
    steps: wholeNumber('--steps', steps),
    mistake,
    isVerbose,
  })
})
