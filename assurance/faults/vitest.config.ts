import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['assurance/faults/**/*.faults.ts'],
    globalSetup: ['assurance/faults/database.ts'],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    // Each file loads the machine as much as it can.
    fileParallelism: false,
  },
})
