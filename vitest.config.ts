import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => ({ path: join('test', path), text: readFileSync(join('test', path), 'utf8') }))

export default defineConfig(({ mode }) => {
  // `npm run test:long` runs the files whose depth test/support/runs.ts sets, and those named for it.
  const own = files.filter(({ path, text }) => {
    const isForLong = path.endsWith('.long.test.ts')
    return mode === 'long' ? isForLong || text.includes("support/runs.js'") : !isForLong
  })
  // Files share the modules of their worker, except where a test replaces one of them. To load all modules
  // again for each file would double the CPU time.
  const replacing = own.filter(({ text }) => /vi\.mock\(|support\/portable\.js'/.test(text))
  const sharing = own.filter((file) => !replacing.includes(file))
  const include = (some: typeof files) => some.map(({ path }) => path)
  return {
    resolve: { tsconfigPaths: true },
    test: {
      globalSetup: ['test/support/announce.ts'],
      // A test that fails because its machine is slow says nothing, so no limit is near.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      expect: { poll: { timeout: 120_000, interval: 20 } },
      // One worker for each core. By default one core is left idle, half of a small machine.
      maxWorkers: '100%',
      projects: [
        { extends: true, test: { name: 'sharing', include: include(sharing), isolate: false } },
        { extends: true, test: { name: 'replacing', include: include(replacing) } },
      ],
    },
  }
})
