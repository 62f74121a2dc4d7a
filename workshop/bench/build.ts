import { build, type Plugin } from 'esbuild'

/** Replaces the library's verifier with the published one, and changes nothing else. */
const published: Plugin = {
  name: 'published-verifier',
  setup({ onResolve }) {
    onResolve({ filter: /http-signature\/(inspect|verify)\.js$/ }, () => ({
      path: new URL('published-verifier.ts', import.meta.url).pathname,
    }))
  },
}

const shared = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  outdir: '.bench',
  // Not the project's own config, whose `paths` would point to the sources instead of the build.
  tsconfigRaw: '{}',
} as const

await build({
  ...shared,
  entryPoints: [
    'workshop/bench/main.ts',
    'workshop/bench/load.ts',
    'workshop/bench/event-consumer.ts',
  ],
  external: ['./with-published.js'],
})
await build({
  ...shared,
  entryPoints: [{ in: 'src/index.ts', out: 'with-published' }],
  plugins: [published],
})
