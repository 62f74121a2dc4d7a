import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'],
    globalSetup: ['test/support/announce.ts'],
    testTimeout: 30_000,
  },
})
