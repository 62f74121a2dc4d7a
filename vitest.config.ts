import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'],
    globalSetup: ['test/support/announce.ts'],
    testTimeout: 30_000,
    // Vitest leaves one core idle by default, which is half of a small machine.
    maxWorkers: '100%',
  },
})
