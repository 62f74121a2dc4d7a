import { parseArgs } from 'node:util'
import { type Life, live } from './life.js'
import { type MistakeName, mistakes } from './mistakes.js'

const usage =
  'npm run simulate -- [--seed 1] [--lives 100] [--steps 500] [--verbose] [--mistake name]\n' +
  'Lives begin with consecutive seeds. --verbose prints each step.\n' +
  '--mistake plants a mistake that a life should find:\n' +
  Object.keys(mistakes)
    .map((name) => `  ${name}`)
    .join('\n')

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    lives: { type: 'string' },
    steps: { type: 'string', default: '500' },
    mistake: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const progressMs = 5_000

function wholeNumber(name: 'seed' | 'lives' | 'steps', fallback: number): number {
  const number = Number(values[name] ?? fallback)
  if (Number.isSafeInteger(number) && number >= 0) return number
  throw new RangeError(`--${name} must be a non-negative integer`)
}

function plantedMistake() {
  const { mistake: name } = values
  if (name === undefined) return {}
  if (!(name in mistakes)) throw new RangeError(`--mistake must be one of these:\n${usage}`)
  return { mistake: mistakes[name as MistakeName] }
}

/** Lives the lives one after another, and returns those that broke a law. */
async function liveAll(first: number, lives: number, steps: number) {
  const counts = new Map<string, number>()
  const failed: Life[] = []
  let stepsLived = 0
  const mistake = plantedMistake()
  let reportAt = Date.now() + progressMs
  for (let index = 0; index < lives; index++) {
    const print = values.verbose ? { print: (line: string) => console.log(line) } : {}
    const life = await live({ seed: String(first + index), steps, ...mistake, ...print })
    stepsLived += life.steps
    for (const [name, number] of life.counts) counts.set(name, (counts.get(name) ?? 0) + number)
    if (lives === 1) console.log(`trace ${life.hash}`)
    if (life.breaches.length > 0) {
      failed.push(life)
      tell(life, steps)
    }
    if (Date.now() < reportAt) continue
    reportAt = Date.now() + progressMs
    console.error(`${index + 1} of ${lives} lives, ${failed.length} failed`)
  }
  return { counts, failed, stepsLived }
}

function tell({ seed, steps: lived, breaches }: Life, steps: number): void {
  console.log(`life ${seed} broke a law at step ${lived}:`)
  for (const breach of breaches) console.log(`  ${breach}`)
  const planted = values.mistake === undefined ? '' : ` --mistake '${values.mistake}'`
  const again = `--seed ${seed} --lives 1 --steps ${steps}${planted}`
  console.log(`  npm run simulate -- ${again} --verbose`)
}

async function main(): Promise<void> {
  if (values.help) return console.log(usage)
  const first = wholeNumber('seed', 1)
  const lives = wholeNumber('lives', values.seed === '1' ? 100 : 1)
  const steps = wholeNumber('steps', 500)
  const begun = process.cpuUsage()
  const { counts, failed, stepsLived } = await liveAll(first, lives, steps)
  const { user, system } = process.cpuUsage(begun)
  const seconds = ((user + system) / 1e6).toFixed(1)
  console.log(`${lives} lives, ${stepsLived} steps, ${failed.length} failed, ${seconds} s of CPU`)
  const sorted = [...counts].sort(([one], [other]) => (one < other ? -1 : 1))
  console.log(sorted.map(([name, number]) => `${name}: ${number}`).join(', '))
  process.exitCode = failed.length > 0 ? 1 : 0
}

await main()
