import type { OwnedKey, OwnerKeys } from '../src/index.js'

/** The most keys that an account may have. */
const keysMax = 20

/** The keys that owners registered, in memory. */
export function memoryKeys(): OwnerKeys {
  const kept = new Map<string, readonly OwnedKey[]>()
  const of = (account: string) => kept.get(account) ?? []
  return {
    of: async (account) => of(account),
    async add(account, key) {
      const known = of(account)
      if (known.some(({ x }) => x === key.x)) return 'known'
      if (known.some(({ kid }) => kid === key.kid)) return 'kidTaken'
      if (known.length >= keysMax) return 'full'
      kept.set(account, [...known, key])
      return 'added'
    },
    async revoke(account, kid) {
      const others = of(account).filter((key) => key.kid !== kid)
      kept.set(account, others)
    },
  }
}
