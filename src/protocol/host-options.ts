import * as v from 'valibot'
import type { Clock, Random } from '../ports/host.js'
import { port } from '../util/input.js'

/** A source of time; by default that of this machine. */
export const clockOption = v.optional(port<Clock>('now'), () => Date)

/** A source of random bytes; by default the global `crypto`. */
export const randomOption = v.optional(port<Random>('getRandomValues'), () => crypto)
