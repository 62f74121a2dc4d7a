import { createHash } from 'node:crypto'
import type { Random } from '../../src/index.js'

/** Bytes that look random and are the same in every run: SHA-256 of the seed and a counter. */
export function seededRandom(seed = 'seed'): Random {
  let counter = 0
  let pool = Buffer.alloc(0)
  return {
    getRandomValues(array) {
      while (pool.length < array.length) {
        const block = createHash('sha256').update(`${seed} ${counter++}`).digest()
        pool = Buffer.concat([pool, block])
      }
      array.set(pool.subarray(0, array.length))
      pool = pool.subarray(array.length)
      return array
    },
  }
}
