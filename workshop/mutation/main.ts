import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type Listed, type Mutant, mutantsOf, type Report, readSurvivors } from './mutants.js'

/*
 * Mutation testing: Stryker changes the library one expression at a time, and a test must fail for each change.
 *
 *   npm run mutation                          every group of workshop/mutation/groups.json
 *   npm run mutation -- core signatures       some groups
 *   npm run mutation -- src/core/limits.ts    some files
 *
 * Fails if less than 90 % of the mutants are killed, if one survives that workshop/mutation/survivors.md does not
 * list, or if one is listed that is killed.
 */
const scoreMin = 90
const list = 'workshop/mutation/survivors.md'

/** Installed by this program alone, beside the cache of npm. */
const tools = [
  '--yes',
  ...['@stryker-mutator/core@9.6.1', '@stryker-mutator/mocha-runner@9.6.1', 'mocha@11.8.0'].flatMap(
    (each) => ['--package', each],
  ),
  '--',
]

interface Group {
  readonly mutate: readonly string[]
}

const groups: Readonly<Record<string, Group>> = JSON.parse(
  readFileSync('workshop/mutation/groups.json', 'utf8'),
)

/** The files to mutate in each group; all its files if none is named. */
function chosen(wanted: readonly string[]): ReadonlyMap<string, readonly string[]> {
  if (wanted.length === 0) return new Map(Object.keys(groups).map((name) => [name, []]))
  const found = new Map<string, readonly string[]>()
  for (const each of wanted) {
    const name = each in groups ? each : groupOf(each)
    const files = each === name ? [] : [...(found.get(name) ?? []), each]
    found.set(name, files)
  }
  return found
}

function groupOf(file: string): string {
  const found = Object.entries(groups).find(([, { mutate }]) =>
    mutate.some((pattern) => file.startsWith(pattern.replace(/\*.*/, ''))),
  )
  if (found === undefined) throw new Error(`${file} is not a group, and in no group`)
  return found[0]
}

function run(group: string, files: readonly string[]): readonly Mutant[] {
  const only = files.length === 0 ? [] : ['--mutate', files.join(',')]
  const { status } = spawnSync(
    'npx',
    [...tools, 'stryker', 'run', 'workshop/mutation/stryker.config.mjs', ...only],
    {
      env: { ...process.env, MUTATION_GROUP: group },
      stdio: 'inherit',
    },
  )
  if (status !== 0) throw new Error(`Stryker failed for the group ${group}`)
  const report: Report = JSON.parse(readFileSync(`.mutation/${group}.json`, 'utf8'))
  return mutantsOf(report)
}

const statuses = ['Killed', 'Timeout', 'Survived', 'NoCoverage'] as const

function count(mutants: readonly Mutant[], status: string): number {
  return mutants.filter((mutant) => mutant.status === status).length
}

function scoreOf(mutants: readonly Mutant[]): number {
  const killed = count(mutants, 'Killed') + count(mutants, 'Timeout')
  const all = statuses.reduce((sum, status) => sum + count(mutants, status), 0)
  return all === 0 ? 100 : (100 * killed) / all
}

function row(name: string, mutants: readonly Mutant[]): string {
  const cells = statuses.map((status) => count(mutants, status))
  const all = cells.reduce((sum, cell) => sum + cell, 0)
  return `| ${[name, all, ...cells, scoreOf(mutants).toFixed(1)].join(' | ')} |`
}

function printTable(group: string, mutants: readonly Mutant[], seconds: number): void {
  console.log(`\n${group}: ${seconds.toFixed(0)} s\n`)
  console.log('| file | mutants | killed | timeout | survived | not covered | score |')
  console.log('|---|---|---|---|---|---|---|')
  for (const name of new Set(mutants.map(({ file }) => file))) {
    const own = mutants.filter(({ file }) => file === name)
    console.log(row(name, own))
  }
  console.log(row('all', mutants))
}

function isListed(mutant: Mutant, { file, at, becomes }: Listed): boolean {
  return mutant.file === file && mutant.at === at && mutant.becomes === becomes
}

/** Returns what is wrong: survivors that are not listed, and listed mutants that did not survive. */
function complaints(mutants: readonly Mutant[], listed: readonly Listed[]): readonly string[] {
  const survivors = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  const unlisted = survivors.filter((mutant) => !listed.some((each) => isListed(mutant, each)))
  const files = new Set(mutants.map(({ file }) => file))
  const stale = listed.filter(
    (each) => files.has(each.file) && !survivors.some((mutant) => isListed(mutant, each)),
  )
  return [
    ...unlisted.map(({ file, line, at, becomes, status }) => {
      return `${status}, and not listed: ${file}:${line}\n- ${at}\n+ ${becomes}`
    }),
    ...stale.map(({ file, at, becomes }) => `listed, but killed: ${file}\n- ${at}\n+ ${becomes}`),
  ]
}

const listed = readSurvivors(readFileSync(list, 'utf8'))
const wrong: string[] = []
const all: Mutant[] = []
for (const [group, files] of chosen(process.argv.slice(2))) {
  const startedAt = performance.now()
  const mutants = run(group, files)
  printTable(group, mutants, (performance.now() - startedAt) / 1_000)
  all.push(...mutants)
  wrong.push(...complaints(mutants, listed))
}
const score = scoreOf(all)
if (score < scoreMin) wrong.push(`${score.toFixed(1)} % are killed, not ${scoreMin} %`)
if (wrong.length > 0) {
  console.log(`\n${wrong.join('\n\n')}`)
  process.exitCode = 1
}
