import { build, type Plugin } from 'esbuild'

/** Puts the published verifier in the place of ours, and changes nothing else. */
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
  // Not the project's own, whose paths would lead past what was built.
  tsconfigRaw: '{}',
} as const

await build({
  ...shared,
  entryPoints: ['bench/main.ts', 'bench/load.ts'],
  external: ['./with-published.js'],
})
await build({
  ...shared,
  entryPoints: [{ in: 'src/index.ts', out: 'with-published' }],
  plugins: [published],
})
