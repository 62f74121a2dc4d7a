import { mkdirSync, writeFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'
import { migrationsOf } from './adapters/postgres/migrations.js'

const shared: Options = {
  entry: {
    index: 'src/index.ts',
    express: 'adapters/express.ts',
    fastify: 'adapters/fastify.ts',
    hono: 'adapters/hono.ts',
    opentelemetry: 'adapters/opentelemetry.ts',
    postgres: 'adapters/postgres.ts',
    testing: 'src/testing/index.ts',
  },
  dts: true,
  splitting: true,
  treeshake: true,
  target: 'node20',
  platform: 'node',
  // The default rewrites node:http to http, which breaks Deno, Workers and strict bundlers.
  removeNodeProtocol: false,
  skipNodeModulesBundle: true,
}

/** The tables as plain SQL, for those who migrate with a tool of their own. */
async function writeMigrations(): Promise<void> {
  mkdirSync('dist/migrations', { recursive: true })
  for (const { version, name, statements } of migrationsOf()) {
    const file = `dist/migrations/${String(version).padStart(4, '0')}_${name}.sql`
    writeFileSync(file, `${statements.join(';\n\n')};\n`)
  }
}

export default defineConfig([
  { ...shared, format: 'esm', clean: true, onSuccess: writeMigrations },
  {
    ...shared,
    format: 'cjs',
    // What is ESM only is bundled, so that require() works where require(esm) does not.
    noExternal: ['@noble/ed25519', /^temporal-/],
  },
])
