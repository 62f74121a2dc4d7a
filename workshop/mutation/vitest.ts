import fc from 'fast-check'
import { vi as real, expect as vitest } from 'vitest'

/*
 * The part of Vitest's interface that the mutated tests use, on Mocha. Mocha stays in one process and runs the tests
 * of a mutant in milliseconds; Vitest starts a worker for each file and mutant.
 */
type Body = (...row: never[]) => unknown
type Declare = (title: string, body: () => unknown) => void
interface Interface {
  readonly describe: Declare & { readonly skip: Declare }
  readonly it: Declare & { readonly skip: Declare }
  readonly before: (body: () => unknown) => void
  readonly after: (body: () => unknown) => void
  readonly beforeEach: (body: () => unknown) => void
  readonly afterEach: (body: () => unknown) => void
}
const mocha = globalThis as unknown as Interface

// The same cases in each run, so that a mutant survives in all runs or in none. A failure is not shrunk.
fc.configureGlobal({ seed: 1, endOnFailure: true })

/** Tests of the generators of the properties, which need many runs. */
const ofGenerators = /^(?:the search )?reach(?:es)? every .*(?:outcome|many times)/

/** Declares the body once for each row. Mocha would take a parameter of the body for a callback. */
function each(declare: Declare) {
  return (rows: readonly unknown[]) => (title: string, body: Body) => {
    for (const [i, row] of rows.entries()) {
      const values = (Array.isArray(row) ? row : [row]) as never[]
      declare(`${title} (${i})`, () => body(...values))
    }
  }
}

function declaring(declare: Declare & { readonly skip: Declare }) {
  const plain: Declare = (title, body) => {
    if (ofGenerators.test(title)) declare.skip(title, body)
    else declare(title, () => body())
  }
  const runIf = (isRun: boolean) => {
    const run: Declare = isRun ? plain : (title, body) => declare.skip(title, body)
    return Object.assign(run, { each: each(run) })
  }
  const skipIf = (isSkipped: boolean) => runIf(!isSkipped)
  return Object.assign(plain, { each: each(declare), runIf, skipIf })
}

export const describe = declaring(mocha.describe)
export const test = declaring(mocha.it)
export const it = test
export const beforeAll: Interface['before'] = (body) => mocha.before(() => body())
export const afterAll: Interface['after'] = (body) => mocha.after(() => body())
export const beforeEach: Interface['beforeEach'] = (body) => mocha.beforeEach(() => body())
export const afterEach: Interface['afterEach'] = (body) => mocha.afterEach(() => body())

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
