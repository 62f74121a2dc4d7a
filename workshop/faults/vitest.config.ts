import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['workshop/faults/**/*.faults.ts'],
    globalSetup: ['workshop/faults/database.ts'],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    // Each file loads the machine as much as it can.
    fileParallelism: false,
  },
})
