import { defineConfig, type Options } from 'tsup'

const shared: Options = {
  entry: {
    index: 'src/index.ts',
    express: 'adapters/express.ts',
    fastify: 'adapters/fastify.ts',
    hono: 'adapters/hono.ts',
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

export default defineConfig([
  { ...shared, format: 'esm', clean: true },
  {
    ...shared,
    format: 'cjs',
    // What is ESM only is bundled, so that require() works where require(esm) does not.
    noExternal: ['@noble/ed25519'],
  },
])
