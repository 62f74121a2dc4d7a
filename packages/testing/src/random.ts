import type { Random } from 'open-payments-server'

/**
 * Returns pseudorandom bytes that depend only on the seed, not on the sizes of the requests. For tests only: secrets
 * derived from them can be computed from the seed.
 *
 * @example
 * ```ts
 * import { createWallet, memoryStore } from 'open-payments-server'
 * import { seededRandom } from 'open-payments-server-testing'
 *
 * const wallet = createWallet({
 *   baseUrl: 'https://wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   store: memoryStore(),
 *   walletAddresses: accounts,
 *   paymentMethods,
 *   random: seededRandom('my test'),
 * })
 * ```
 */
export function seededRandom(seed = 'seed'): Random {
  const next = seededWords(seed)
  let word = 0
  let bytesLeft = 0

  function nextByte(): number {
    if (bytesLeft === 0) {
      word = next()
      bytesLeft = 4
    }
    const byte = word & 0xff
    word >>>= 8
    bytesLeft -= 1
    return byte
  }

  return {
    getRandomValues(array) {
      for (let i = 0; i < array.length; i++) array[i] = nextByte()
      return array
    },
  }
}

/** Returns a generator of 32-bit words: sfc32 of PractRand, seeded with an FNV-1a hash. */
export function seededWords(seed: string): () => number {
  let a = fnv1a(seed, 0x811c9dc5)
  let b = fnv1a(seed, a)
  let c = fnv1a(seed, b)
  let counter = 1

  function next(): number {
    const word = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + word) | 0
    return word >>> 0
  }

  // The first words still reveal how similar two seeds are.
  for (let i = 0; i < 15; i++) next()
  return next
}

/** Returns a generator of integers from 0 to `bound` - 1. */
export function seededIndex(seed: string): (bound: number) => number {
  const next = seededWords(seed)
  return (bound) => next() % bound
}

function fnv1a(text: string, basis: number): number {
  let hash = basis
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ (text.charCodeAt(i) & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (text.charCodeAt(i) >>> 8), 0x01000193)
  }
  return hash
}
