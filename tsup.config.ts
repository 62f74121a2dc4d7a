import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'
import { migrationsOf } from './adapters/postgres/migrations.js'
import { reportMigrationsOf } from './adapters/postgres/reports.js'
import type { Migration } from './adapters/sql/versions.js'

const entries = {
  index: 'src/index.ts',
  core: 'src/entry-core.ts',
  adapter: 'src/entry-adapter.ts',
  express: 'adapters/express.ts',
  fastify: 'adapters/fastify.ts',
  hono: 'adapters/hono.ts',
  kysely: 'adapters/kysely.ts',
  opentelemetry: 'adapters/opentelemetry.ts',
  postgres: 'adapters/postgres.ts',
  sqlite: 'adapters/sqlite.ts',
}

/** Not exported. Each becomes its own chunk, so that a bundler drops the servers that a host does not use. */
const servers = {
  'authorization-server': 'src/http/authorization-server.ts',
  'resource-server': 'src/http/resource-server.ts',
  'remote-introspection': 'src/outbound/remote-introspection.ts',
  'client-keys': 'src/outbound/client-keys.ts',
}

const shared: Options = {
  splitting: true,
  treeshake: { moduleSideEffects: false },
  target: 'node20',
  platform: 'node',
  // Shortens statements; names and layout stay, so that the modules and their stack traces are readable.
  minifySyntax: true,
  // The default rewrites node:http to http, which breaks Deno, Workers and strict bundlers.
  removeNodeProtocol: false,
}

/** Declarations alone. scripts/write-entries.ts completes them, and writes the entries for `require`. */
const declarations: Options = { format: 'cjs', dts: { only: true } }

/** The tables as plain SQL, for hosts with their own migration tool. */
async function writeMigrations(): Promise<void> {
  writeSteps('dist/migrations', migrationsOf())
  writeSteps('dist/migrations/reports', reportMigrationsOf())
}

function writeSteps(folder: string, steps: readonly Migration[]): void {
  mkdirSync(folder, { recursive: true })
  for (const { version, name, statements } of steps) {
    const file = `${folder}/${String(version).padStart(4, '0')}_${name}.sql`
    writeFileSync(file, `${statements.join(';\n\n')};\n`)
  }
}

/** Writes the licences of the packages that the build contains, as those licences require. */
function writeLicenses(): void {
  const texts = bundled.map((name) => {
    const folder = `node_modules/${name}`
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
    return `${name}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`
  })
  writeFileSync('dist/licenses.txt', texts.join('\n\n'))
}

/** The library needs one function of date-fns, so hosts do not install all of it (12 MB). */
const bundled = ['date-fns', '@date-fns/utc']

const library: Options = { ...shared, skipNodeModulesBundle: true, noExternal: bundled }

/** The program of the package: one file that shares no chunk with the library. */
const program: Options = {
  ...shared,
  entry: { main: 'src/cli/main.ts' },
  outDir: 'dist/cli',
  format: 'esm',
  splitting: false,
  minifyWhitespace: true,
  minifyIdentifiers: true,
}

/** The program of `npm create open-payments-server`. It reads its templates next to `dist`. */
const creator: Options = {
  ...program,
  entry: { main: 'packages/create-open-payments-server/src/main.ts' },
  outDir: 'packages/create-open-payments-server/dist',
  clean: true,
}

const testing: Options = {
  ...shared,
  entry: { index: 'src/testing/index.ts' },
  outDir: 'packages/testing/dist',
  // By that name TypeScript's paths lead to the sources, which must not be bundled here.
  external: [
    'open-payments-server',
    'open-payments-server/adapter',
    'open-payments-server/core',
    'fast-check',
  ],
}

export default defineConfig([
  {
    ...library,
    entry: { ...entries, ...servers },
    format: 'esm',
    clean: true,
    onSuccess: async () => {
      await writeMigrations()
      writeLicenses()
    },
  },
  { ...library, ...declarations, entry: entries },
  program,
  creator,
  { ...testing, format: 'esm', clean: true },
  { ...testing, ...declarations },
])
