/**
 * Can a client spend more than its grant allows? Run this example with
 *
 *     npx tsx examples/payment-limits/main.ts
 *
 * A grant limits how much a client may pay, for example 25 dollars in all or each month. The library keeps the count in
 * your store, on your database, while requests run concurrently. Tests by hand can cover one payment after the other,
 * but hardly anything else.
 *
 * A search can. `spendingProperty` in `open-payments-server-testing` generates histories: grants with limits, payments
 * with and without quotes that are settled in full or in part, failed, cancelled, expired or repeated after a lost
 * response, rotated tokens, revoked grants, the clock at the very end of a window, a store that fails, and several of
 * these at the same time. It plays each history on the library's servers over your store, and on a model that shares no
 * code with the library. After each step it checks:
 *
 * - the amount sent or reserved in a window never exceeds its limit,
 * - a repeat never pays twice,
 * - no payment within the limits is refused.
 *
 * When a check fails, fast-check removes steps for as long as the failure remains, so the result is short
 * enough to read. Below, the search finds the mistake in `naive-store.ts`, which tests of sequential payments
 * would not find, and finds none in `memoryStore`.
 *
 * To test your own servers with their prices, pass `{ servers, scene }`: see `own-servers.ts`. To test a wallet with
 * limits of its own, pass `{ wallet, scene }`: see `allowance-wallet.ts`.
 */
import { memoryStore } from 'open-payments-server'
import { naiveStore } from './naive-store.js'
import { searchForOverspending } from './search.js'

// The same seed finds the same history each time; without a seed, every run plays other histories.
const naive = await searchForOverspending(naiveStore, { histories: 2_000, seed: 8 })
console.log('The naive store:\n')
console.log(naive.overspent ?? `no problem in ${naive.played} histories`)
if (naive.overspent !== undefined) console.log(`(found in history ${naive.played})\n`)

const memory = await searchForOverspending(memoryStore, { histories: 100 })
console.log('The memory store:\n')
console.log(memory.overspent ?? `no problem in ${memory.played} histories`)

process.exitCode = naive.overspent !== undefined && memory.overspent === undefined ? 0 : 1
