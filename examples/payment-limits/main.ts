/**
 * Can anybody spend more than was granted? Run it with
 *
 *     npx tsx examples/payment-limits/main.ts
 *
 * A grant says how much a client instance may pay: 25 dollars in all, or in each month. The library counts, but it
 * counts in a store that you wrote, on a database that you chose, while many requests come at once. Whether it all
 * holds together is easily tested by hand for one payment after the other, and hardly for anything else.
 *
 * So let a search do it. `spendingProperty` in `open-payments-server/testing` makes up histories: grants with
 * limits, payments by quote and without, settled in full or in part, failed, withdrawn, lapsed, asked for again
 * because a response was lost, tokens rotated, grants revoked, the clock moved to the very end of a window, and
 * several of these at once. It plays each on the library's servers over your store, keeps books beside it by a
 * model that shares no code with the library, and looks after each step:
 *
 * - what was sent or is reserved in a window never exceeds its limit,
 * - a repeat never pays twice,
 * - nothing is refused that has room.
 *
 * When one of these breaks, fast-check takes away step after step for as long as it still does. What remains is
 * short enough to read. Below it finds the mistake of `naive-store.ts`, which every test of one payment after the
 * other would pass, and finds none in `memoryStore`.
 *
 * To try a whole running wallet instead of a store, tell the property how to talk to it: `{ wallet, scene }`.
 */
import { memoryStore } from 'open-payments-server'
import { naiveStore } from './naive-store.js'
import { searchForOverspending } from './search.js'

// The same seed finds the same story each time; without one every run plays other histories.
const naive = await searchForOverspending(naiveStore, { histories: 2_000, seed: 5 })
console.log('The naive store:\n')
console.log(naive.overspent ?? `nothing found in ${naive.played} histories`)
if (naive.overspent !== undefined) console.log(`(found in history ${naive.played})\n`)

const memory = await searchForOverspending(memoryStore, { histories: 100 })
console.log('The memory store:\n')
console.log(memory.overspent ?? `nothing wrong in ${memory.played} histories`)

process.exitCode = naive.overspent !== undefined && memory.overspent === undefined ? 0 : 1
