// #region next-wallet
import { createWallet } from '../wallet'

/** In development, Next.js loads modules again, and routes may have copies of them. */
const kept = globalThis as { wallet?: ReturnType<typeof createWallet> }

export function wallet() {
  kept.wallet ??= createWallet(`http://localhost:${process.env['PORT'] ?? 3000}`)
  return kept.wallet
}
// #endregion next-wallet
