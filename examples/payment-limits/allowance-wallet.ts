import fc from 'fast-check'
import type { AccessItem } from 'open-payments-server'
import {
  type SpendingScene,
  type SpendingWallet,
  spendingProperty,
  type WalletTotals,
} from 'open-payments-server-testing'
import { createAllowances, type MonthOf } from './allowances.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const start = '2026-10-31T00:00:00Z'

// #region scene
/** An account of the wallet, and an incoming payment that it can pay. */
const scene: SpendingScene = {
  walletAddress: 'https://wallet.example/alice',
  asset: usd,
  receivers: [{ url: 'https://bank.example/incoming-payments/1', asset: usd }],
}

/** Searches for ways to pay more than the allowances permit. */
export function allowanceProperty(monthOf: MonthOf) {
  return spendingProperty(fc, {
    wallet: () => allowanceWallet(monthOf),
    scene,
    // This wallet limits what is debited, in all or each month.
    limits: ['debitAmount', 'interval'],
    interval: () => fc.constant(`R/${start}/P1M`),
    start: Date.UTC(2026, 10, 21),
  })
}
// #endregion scene

type Totals = Omit<WalletTotals, 'final'>

// #region wallet
/** The wallet, as the search uses it. The steps of optional functions are skipped. */
function allowanceWallet(monthOf: MonthOf): SpendingWallet {
  const allowances = createAllowances(monthOf)
  let now = 0
  const answer = (accepted: boolean) => ({ accepted })
  const report = (id: string, totals: Totals, ends: 'failed' | boolean) => {
    const sent = BigInt(totals.sentAmount.value)
    const delivered = BigInt(totals.deliveredAmount.value)
    return answer(allowances.report(id, sent, delivered, ends))
  }
  return {
    grant: async (_, granted) => allowances.grant(granted.map(allowanceOf)),
    async pay({ grant, key, debitAmount }) {
      const id = allowances.pay(grant, key, BigInt(debitAmount.value), now)
      return id === undefined ? { accepted: false } : { accepted: true, id }
    },
    begin: async (id) => answer(allowances.begin(id, now)),
    reportSent: async (id, totals) => report(id, totals, totals.final),
    fail: async (id, totals) => report(id, totals, 'failed'),
    setClock(instant) {
      now = instant
    },
  }
}
// #endregion wallet

function allowanceOf({ limits = {} }: AccessItem) {
  const limit = BigInt(limits.debitAmount?.value ?? 0)
  return limits.interval === undefined ? { limit } : { limit, start: Date.parse(start) }
}
