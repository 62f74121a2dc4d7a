import type fc from 'fast-check'

/**
 * The module `fast-check` itself. It is handed in by those who use it, so that all others can do without the
 * package.
 */
export type FastCheck = typeof fc

/** Makes values of a type, as fast-check has it. */
export type Arbitrary<Value> = fc.Arbitrary<Value>
