import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

const packages = readdirSync('packages').map((name) => join('packages', name, 'test'))
const folders = ['test', 'workshop', ...packages]
const files = folders
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }))

const { compilerOptions } = JSON.parse(readFileSync('tsconfig.json', 'utf8'))
const alias = Object.entries<readonly string[]>(compilerOptions.paths).map(
  ([name, [path = '']]) => ({
    find: new RegExp(`^${name.replace('*', '(.+)')}$`),
    replacement: resolve(path).replace('*', '$1'),
  }),
)

export default defineConfig(({ mode }) => {
  const isLong = mode === 'long'
  // `npm run test:long` runs the files whose depth test/support/runs.ts sets, also through the list of deployments,
  // and those named for it.
  const hasDepth = /support\/(runs|official-client)(?:\.js)?'/
  const own = files.filter(({ path, text }) => {
    const isForLong = path.endsWith('.long.test.ts')
    return isLong ? isForLong || hasDepth.test(text) : !isForLong
  })
  // Files share the modules of their worker, except where a test replaces one of them, counts all timers or measures
  // the heap: work that the file before left in the worker may change both. To load all modules again for each file
  // would double the CPU time.
  const needsOwn = /vi\.mock\(|getTimerCount\(|support\/(portable|heap)(?:\.js)?'/
  const alone = own.filter(({ text }) => needsOwn.test(text))
  const sharing = own.filter((file) => !alone.includes(file))

  // OPENAPI=1 validates the answers of all handlers in any test.
  const recorders = process.env['OPENAPI'] ? ['test/support/record-answers.ts'] : []

  const project = (name: string, some: typeof files, isolate: boolean) => ({
    // Not `tsconfigPaths`: the templates of `create-open-payments-server` have a tsconfig.json of their own.
    resolve: { alias },
    test: {
      name,
      isolate,
      include: some.map(({ path }) => path),
      // The loggers of STREAM ask for each packet whether there is a terminal, unless this says it.
      env: { TEST_DEPTH: isLong ? 'long' : 'short', DEBUG_COLORS: 'no' },
      // Most objects of a test live for microseconds: fewer collections take a twentieth less CPU time.
      execArgv: ['--max-semi-space-size=64'],
      setupFiles: ['test/support/seed.ts', ...recorders],
      // A test that fails because its machine is slow says nothing, so no limit is near.
      testTimeout: isLong ? 1_800_000 : 300_000,
      hookTimeout: isLong ? 1_800_000 : 300_000,
      expect: { poll: { timeout: 120_000, interval: 20 } },
    },
  })
  return {
    // The set-up before all projects imports the library, too.
    resolve: { alias },
    test: {
      globalSetup: ['test/support/announce.ts'],
      // One line for each file, and for a test only if it takes long.
      slowTestThreshold: 5_000,
      // More workers than cores, because many tests wait for a server, a process or a time-out.
      maxWorkers: Math.ceil(availableParallelism() * 1.5),
      projects: [project('sharing', sharing, false), project('alone', alone, true)],
    },
  }
})
