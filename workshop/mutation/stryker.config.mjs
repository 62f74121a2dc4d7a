import { group, name, testsFolder } from './group.mjs'

process.env.TEST_DEPTH = 'mutation'

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: group.mutate,
  buildCommand: 'node workshop/mutation/build.mjs',
  testRunner: 'mocha',
  mochaOptions: {
    'no-config': true,
    'no-package': true,
    require: ['./workshop/mutation/worker.mjs'],
    spec: [`${testsFolder}/[0-9]*.mjs`],
  },
  plugins: ['@stryker-mutator/mocha-runner', './workshop/mutation/ignore-texts.mjs'],
  ignorers: ['texts'],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  ignorePatterns: ['/dist', '/docs', '/coverage', '/.bench', '/release', '/.mutation'],
  // Stryker would import the compiler to rewrite it, and finds none beside itself. The build needs no change of it.
  tsconfigFile: 'none',
  tempDirName: '.mutation/sandbox',
  reporters: ['progress-append-only', 'json'],
  jsonReporter: { fileName: `.mutation/${name}.json` },
  incrementalFile: `.mutation/${name}.incremental.json`,
  // The run without mutants must not fail on a slow machine.
  dryRunTimeoutMinutes: 60,
  timeoutMS: 10_000,
  timeoutFactor: 4,
}
