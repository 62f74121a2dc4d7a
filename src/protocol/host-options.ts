import * as v from 'valibot'
import type { Clock, Random } from '../ports/host.js'
import { port } from '../util/input.js'

/** A source of time; by default the global `Date`, read at each call, because tests replace it. */
export const clockOption = v.optional(port<Clock>('now'), (): Clock => ({ now: () => Date.now() }))

/** A source of random bytes; by default the global `crypto`. */
export const randomOption = v.optional(port<Random>('getRandomValues'), () => crypto)
