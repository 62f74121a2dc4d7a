import type fc from 'fast-check'

/** The module `fast-check`. Callers pass it in, so that the package stays an optional dependency. */
export type FastCheck = typeof fc

/** An arbitrary of fast-check. */
export type Arbitrary<Value> = fc.Arbitrary<Value>
