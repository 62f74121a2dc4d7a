import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'],
    globalSetup: ['test/support/announce.ts'],
    testTimeout: 30_000,
    // One for each core: by default one is left idle, and on a small machine that is half of it.
    maxWorkers: '100%',
  },
})
