import type { AccountLimitSettings } from 'open-payments-pages'
import { lock } from './ledger.js'
import type { Database, Sql } from './sql.js'

/** The limits that owners set for all payments from an account. The servers check them again for each payment. */
export function accountLimitsOn({ sql, transaction }: Database): AccountLimitSettings {
  return {
    of: async (walletAddress) => JSON.parse((await storedIn(sql, walletAddress)) ?? '[]'),
    set: (walletAddress, limits, before) =>
      transaction(async (inside) => {
        await lock(inside, walletAddress)
        const stored = await storedIn(inside, walletAddress)
        if ((stored ?? '[]') !== JSON.stringify(before)) return false
        const statement =
          stored === undefined
            ? 'INSERT INTO account_limits (limits, wallet_address) VALUES (?, ?)'
            : 'UPDATE account_limits SET limits = ? WHERE wallet_address = ?'
        await inside(statement, JSON.stringify(limits), walletAddress)
        return true
      }),
  }
}

/** Returns the JSON of the limits of an account, whose amounts are texts. */
async function storedIn(sql: Sql, walletAddress: string): Promise<string | undefined> {
  const select = 'SELECT limits FROM account_limits WHERE wallet_address = ?'
  const [row] = await sql(select, walletAddress)
  return row && `${row['limits']}`
}
