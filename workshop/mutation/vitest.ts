import fc from 'fast-check'
import { vi as real, expect as vitest } from 'vitest'
import { keepCosts, measured, mostMs, sort, type Test } from './order.js'
import { untilStuck } from './stuck.js'

/*
 * The part of Vitest's interface that the mutated tests use, on Mocha. Mocha stays in one process and runs the tests
 * of a mutant in milliseconds; Vitest starts a worker for each file and mutant.
 */
type Body = (...row: never[]) => unknown
type Declare = (title: string, body: () => unknown) => void
type Hook = (body: () => unknown) => void
type WithTest<Own> = (body: (this: { readonly test: Own }) => unknown) => void
type It = (title: string, body: (this: { readonly test: Test }) => unknown) => void
interface Interface {
  readonly describe: Declare
  readonly it: It & { readonly skip: It }
  readonly before: WithTest<{ readonly parent: { readonly tests: Test[] } }>
  readonly after: Hook
  readonly beforeEach: Hook
  readonly afterEach: Hook
}
const mocha = globalThis as unknown as Interface

// The same cases in each run, so that a mutant survives in all runs or in none. A failure is not shrunk.
fc.configureGlobal({ seed: 1, endOnFailure: true })

/** Tests of the generators of the properties and of the searches, which need many runs. */
const ofGenerators =
  /^(?:(?:the search )?reach(?:es)? every .*(?:outcome|many times)|the (?:search|laws) finds? consumers that)/

interface Case {
  readonly title: string
  readonly body: () => unknown
  readonly isRun: boolean
}

/** What a `describe` contains: its tests, and whatever cannot be taken out of it. */
interface Suite {
  readonly cases: Case[]
  readonly rest: (() => void)[]
}
let suite: Suite | undefined

function declareCase({ title, body, isRun }: Case): void {
  const run = isRun ? mocha.it : mocha.it.skip
  run(title, function () {
    const full = this.test.fullTitle()
    return measured(full, () => untilStuck(mostMs(full), body))
  })
}

const add = (each: Case) => (suite === undefined ? declareCase(each) : void suite.cases.push(each))
const addRest = (declare: () => void) =>
  suite === undefined ? declare() : suite.rest.push(declare)

/** Declares the tests of a suite without hooks one by one, so that they can be sorted among all others. */
function describeFlat(title: string, body: () => unknown): void {
  const outer = suite
  const own: Suite = { cases: [], rest: [] }
  suite = own
  body()
  suite = outer
  if (own.rest.length === 0) {
    for (const each of own.cases) add({ ...each, title: `${title} ${each.title}` })
    return
  }
  addRest(() =>
    mocha.describe(title, () => {
      for (const declare of own.rest) declare()
      for (const each of own.cases) declareCase(each)
    }),
  )
}

/** Declares the body once for each row. Mocha would take a parameter of the body for a callback. */
function each(declare: Declare) {
  return (rows: readonly unknown[]) => (title: string, body: Body) => {
    for (const [i, row] of rows.entries()) {
      const values = (Array.isArray(row) ? row : [row]) as never[]
      declare(`${title} (${i})`, () => body(...values))
    }
  }
}

function declaring(declare: (isRun: boolean) => Declare) {
  const runIf = (isRun: boolean) => Object.assign(declare(isRun), { each: each(declare(isRun)) })
  const skipIf = (isSkipped: boolean) => runIf(!isSkipped)
  return Object.assign(runIf(true), { runIf, skipIf })
}

export const describe = declaring((isRun) => (title, body) => {
  if (isRun && !ofGenerators.test(title)) describeFlat(title, body)
})
export const test = declaring((isRun) => (title, body) => {
  add({ title, body, isRun: isRun && !ofGenerators.test(title) })
})
export const it = test
export const beforeAll: Hook = (body) => addRest(() => mocha.before(() => body()))
export const afterAll: Hook = (body) => addRest(() => mocha.after(() => body()))
export const beforeEach: Hook = (body) => addRest(() => mocha.beforeEach(() => body()))
export const afterEach: Hook = (body) => addRest(() => mocha.afterEach(() => body()))

mocha.before(function () {
  sort(this.test.parent.tests)
})
mocha.after(keepCosts)

// The tests run again for each mutant in the same modules: a spy that counts on would fail for every mutant.
afterEach(() => real.restoreAllMocks())

const pollMs = 20
const pollMaxMs = 120_000

/** Vitest's own `poll` needs a test of Vitest. */
function poll(read: () => unknown): unknown {
  const matcher =
    (name: string) =>
    async (...expected: unknown[]) => {
      const endsAt = Date.now() + pollMaxMs
      for (;;) {
        try {
          const assertion = vitest(await read()) as unknown as Record<
            string,
            (...a: unknown[]) => void
          >
          return assertion[name]?.(...expected)
        } catch (error) {
          if (Date.now() > endsAt) throw error
          await new Promise((resolve) => setTimeout(resolve, pollMs))
        }
      }
    }
  return new Proxy({}, { get: (_, name: string) => matcher(name) })
}

export const expect = Object.assign(vitest, { poll })
/** build.mjs gives every `import()` of a test its own modules. */
export const vi = Object.assign(real, { resetModules: () => real })
