import type { Account, Ledger } from 'create-open-payments-server/wallet/ledger'
import type { Database } from 'create-open-payments-server/wallet/sql'
import type { AccountLimitSettings, OwnedKey, OwnerKeys } from 'open-payments-pages'
import { memoryStore, type SpendingLimit, type Store } from 'open-payments-server'

/** The records of the library in memory, and no tables: the ports replace what needs them. */
export function memoryDatabase(): Database & { readonly store: Store } {
  const none = () => Promise.reject(new Error('the sandbox has no tables'))
  return {
    store: memoryStore(),
    sql: none,
    tableOptions: '',
    migrateRecords: none,
    transaction: none,
    close: async () => {},
  }
}

/**
 * Accounts that can pay without limit.
 *
 * @param lacksFunds whether the account has too little for a payment.
 */
export function unlimitedLedger(
  accounts: () => readonly Account[],
  lacksFunds: (paymentId: string) => boolean,
): Ledger {
  return {
    find: async (walletAddress) => accounts().find(({ url }) => url === walletAddress),
    ownedBy: async (owner) =>
      accounts()
        .filter((account) => account.owner === owner)
        .map(withoutBalance),
    covers: async () => true,
    hold: async ({ outgoingPaymentId }) => !lacksFunds(outgoingPaymentId),
    release: async () => {},
    move: async () => {},
  }
}

/** An account that can pay without limit has no balance that a page could show. */
function withoutBalance({ balance: _balance, ...account }: Account): Account {
  return account as Account
}

const keysMax = 20

/** The keys that visitors register. */
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

/** The limits that visitors set for all payments from an account. */
export function memoryLimits(): AccountLimitSettings {
  const kept = new Map<string, readonly SpendingLimit[]>()
  const of = (account: string) => kept.get(account) ?? []
  return {
    of: async (account) => of(account),
    async set(account, limits, before) {
      const isSame = JSON.stringify(of(account)) === JSON.stringify(before)
      if (isSame) kept.set(account, limits)
      return isSame
    },
  }
}
