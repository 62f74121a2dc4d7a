import { seededRandom } from 'open-payments-server-testing'

export { seededRandom } from 'open-payments-server-testing'

/** Returns a generator of integers from 0 to `bound` - 1. */
export function seededIndex(seed: string): (bound: number) => number {
  const random = seededRandom(seed)
  const word = Buffer.alloc(4)
  return (bound) => {
    random.getRandomValues(word)
    return word.readUInt32LE() % bound
  }
}
