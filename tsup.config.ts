import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Plugin } from 'esbuild'
import { defineConfig, type Options } from 'tsup'
import { migrationsOf } from './adapters/postgres/migrations.js'
import { reportsText } from './adapters/postgres/reports/text.js'

const adapters = {
  express: 'adapters/express.ts',
  fastify: 'adapters/fastify.ts',
  hono: 'adapters/hono.ts',
  opentelemetry: 'adapters/opentelemetry.ts',
  postgres: 'adapters/postgres.ts',
  sqlite: 'adapters/sqlite.ts',
}

const entries = {
  index: 'src/index.ts',
  core: 'src/entry-core.ts',
  adapter: 'src/entry-adapter.ts',
  attempts: 'src/entry-attempts.ts',
  ...adapters,
}

/** Puts the text of the reports in the place of the module that reads their file. */
const embeddedReports: Plugin = {
  name: 'embedded reports',
  setup({ onLoad }) {
    const contents = `export const reportsText = () => ${JSON.stringify(reportsText())}`
    onLoad({ filter: /\/reports\/text\.ts$/ }, () => ({ contents, loader: 'ts' }))
  },
}

/** Makes the adapters import the library instead of containing it. */
function importing(index: string, adapter: string): Plugin {
  const external = (path: string) => ({ path, external: true, sideEffects: false })
  return {
    name: 'imported library',
    setup({ onResolve }) {
      onResolve({ filter: /\/src\/index\.js$/ }, () => external(index))
      onResolve({ filter: /\/src\/entry-adapter\.js$/ }, () => external(adapter))
    },
  }
}

const shared: Options = {
  esbuildPlugins: [embeddedReports],
  splitting: true,
  treeshake: { moduleSideEffects: false },
  target: 'node20',
  platform: 'node',
  // Shortens statements; names and layout stay, so that the modules and their stack traces are readable.
  minifySyntax: true,
  // The default rewrites node:http to http, which breaks Deno, Workers and strict bundlers.
  removeNodeProtocol: false,
}

/** Declarations alone. workshop/scripts/write-entries.ts completes them, and writes the files for CommonJS. */
const declarations: Options = { format: 'cjs', dts: { only: true } }

/** The tables as plain SQL, for hosts with their own migration tool. */
function writeMigrations(): void {
  mkdirSync('dist/migrations', { recursive: true })
  for (const { version, name, statements } of migrationsOf()) {
    const file = `dist/migrations/${String(version).padStart(4, '0')}_${name}.sql`
    writeFileSync(file, `${statements.join(';\n\n')};\n`)
  }
  cpSync('adapters/postgres/reports', 'dist/migrations/reports', {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  })
}

/** Writes the licences of the packages that a build contains, as those licences require. */
function writeLicenses(dist: string, names: readonly string[]): void {
  const texts = names.map((name) => {
    const folder = `node_modules/${name}`
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
    const { license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
    // Packages without the text have a common licence, whose text another package has.
    const text = file === undefined ? license : readFileSync(`${folder}/${file}`, 'utf8').trim()
    return `${name}\n\n${text}\n`
  })
  writeFileSync(`${dist}/licenses.txt`, texts.join('\n\n'))
}

/** Returns the packages in a build, by the file that describes it, which is then removed. */
function packagesIn(metafile: string): readonly string[] {
  const text = readFileSync(metafile, 'utf8')
  rmSync(metafile)
  const names = text.matchAll(/"node_modules\/((?:@[^/"]+\/)?[^/"]+)\//g)
  return [...new Set([...names].map(([, name = '']) => name))].sort()
}

/** The library needs one function of date-fns, so hosts do not install all of it (12 MB). */
const bundled = ['date-fns', '@date-fns/utc']

const library: Options = { ...shared, skipNodeModulesBundle: true, noExternal: bundled }

/** workshop/scripts/write-entries.ts writes the entries that export parts of `library`. */
const modules: Options = {
  ...library,
  entry: { library: 'src/library.ts', ...adapters },
  esbuildPlugins: [embeddedReports, importing('./index.js', './adapter.js')],
}

/** The program of `npm create open-payments-server`. It reads its templates next to `dist`. */
const creator: Options = {
  ...shared,
  entry: { main: 'packages/create-open-payments-server/src/main.ts' },
  outDir: 'packages/create-open-payments-server/dist',
  format: 'esm',
  minifyWhitespace: true,
  minifyIdentifiers: true,
  clean: true,
}

/** The doctor and the command line client contain what they call: `npx` installs each without the library. */
const doctor: Options = {
  ...shared,
  outDir: 'packages/doctor/dist',
  noExternal: [/^(?!node:)/],
}
const conformance = 'packages/doctor/src/index.ts'

const cli: Options = {
  ...shared,
  entry: { main: 'packages/cli/src/main.ts' },
  outDir: 'packages/cli/dist',
  format: 'esm',
  clean: true,
  noExternal: [/^(?!node:)/],
  metafile: true,
  onSuccess: async () => {
    writeLicenses('packages/cli/dist', packagesIn('packages/cli/dist/metafile-esm.json'))
  },
}

/** By these names TypeScript's paths lead to the sources, which must not be bundled into other packages. */
const installed = [
  'open-payments-server',
  'open-payments-server/adapter',
  'open-payments-server/attempts',
  'open-payments-server/core',
]

/** Contains the wallet of `npm create` and all packages that it needs, because `npx` installs it alone. */
const sandbox: Options = {
  ...shared,
  outDir: 'packages/sandbox/dist',
  // For the files of that wallet, too, which have a tsconfig.json of their own, without paths.
  tsconfig: 'tsconfig.json',
}
const sandboxEntry = 'packages/sandbox/src/index.ts'

const testing: Options = {
  ...shared,
  entry: { index: 'packages/testing/src/index.ts' },
  outDir: 'packages/testing/dist',
  external: [...installed, 'fast-check'],
}

/** Contains the functions of the library's protocol that it calls, and the schemas that these are made of. */
const client: Options = {
  ...shared,
  entry: { index: 'packages/client/src/index.ts' },
  outDir: 'packages/client/dist',
  external: installed,
  noExternal: ['valibot'],
}

/** Contains the SQL of the library's adapters, which import the library by path. */
const kysely: Options = {
  ...shared,
  entry: { index: 'packages/kysely/src/index.ts' },
  outDir: 'packages/kysely/dist',
  external: [...installed, 'kysely'],
  esbuildPlugins: [
    embeddedReports,
    importing('open-payments-server', 'open-payments-server/adapter'),
  ],
}

const ilp: Options = {
  ...shared,
  entry: { index: 'packages/ilp/src/index.ts' },
  outDir: 'packages/ilp/dist',
  external: [...installed, /^@interledger\//, /^ilp-/],
}

const pages: Options = {
  ...shared,
  entry: { index: 'packages/pages/src/index.ts' },
  outDir: 'packages/pages/dist',
  external: installed,
}

const dynamodb: Options = {
  ...shared,
  entry: { index: 'packages/dynamodb/src/index.ts' },
  outDir: 'packages/dynamodb/dist',
  external: [...installed, '@aws-sdk/client-dynamodb'],
}

const rafiki: Options = {
  ...shared,
  entry: { index: 'packages/rafiki/src/index.ts' },
  outDir: 'packages/rafiki/dist',
  external: installed,
}

export default defineConfig([
  {
    ...modules,
    format: 'esm',
    clean: true,
    onSuccess: async () => {
      writeMigrations()
      writeLicenses('dist', [...bundled, '@noble/ed25519'])
    },
  },
  { ...library, ...declarations, entry: entries },
  creator,
  {
    ...doctor,
    format: 'esm',
    clean: true,
    entry: [conformance, 'packages/doctor/src/main.ts'],
    metafile: true,
    onSuccess: async () => {
      writeLicenses('packages/doctor/dist', packagesIn('packages/doctor/dist/metafile-esm.json'))
    },
  },
  { ...doctor, ...declarations, entry: [conformance] },
  cli,
  {
    ...sandbox,
    format: 'esm',
    clean: true,
    entry: [sandboxEntry, 'packages/sandbox/src/main.ts'],
    noExternal: [/^(?!node:)/],
    metafile: true,
    onSuccess: async () => {
      const names = packagesIn('packages/sandbox/dist/metafile-esm.json')
      writeLicenses('packages/sandbox/dist', names)
    },
    // Packages in CommonJS load modules of Node.js.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  },
  { ...sandbox, ...declarations, entry: [sandboxEntry] },
  { ...kysely, format: 'esm', clean: true },
  { ...kysely, ...declarations },
  { ...dynamodb, format: 'esm', clean: true },
  { ...dynamodb, ...declarations },
  { ...ilp, format: 'esm', clean: true },
  { ...ilp, ...declarations },
  {
    ...client,
    format: 'esm',
    clean: true,
    onSuccess: async () => writeLicenses('packages/client/dist', ['valibot']),
  },
  { ...client, ...declarations },
  { ...pages, format: 'esm', clean: true },
  { ...pages, ...declarations },
  { ...rafiki, format: 'esm', clean: true },
  { ...rafiki, ...declarations },
  { ...testing, format: 'esm', clean: true },
  { ...testing, ...declarations },
])
