import type { Commit } from '../../../src/entry-adapter.js'
import type { Database, Written } from '../database.js'
import type { Holds } from '../holds.js'
import type { Journal } from '../journal.js'
import {
  accessIsAttenuated,
  grantsOnlyGoForward,
  nobodyPaysWithoutConsent,
  noTokenComesBack,
  tokensChangeAlone,
} from './grants.js'
import type { Law } from './law.js'
import { completionIsFinal, everyTransferCountsOnce } from './receiving.js'
import {
  everyIntentionPaysOnce,
  everyPaymentIsHeld,
  everyPaymentMeetsItsConditions,
  noEndedGrantPays,
  noWindowIsOverspent,
  sendingOnlyGoesForward,
} from './spending.js'
import {
  everyChangeHasItsEvents,
  everyWriteIsTheNextVersion,
  nothingIsRemovedEarly,
} from './versions.js'

/** Checks each write that takes effect, and remembers what the other laws need. */
export interface Ledger {
  see(written: readonly Written[], commit: Commit | undefined): void
  /** The ids of all events that were ever written. */
  readonly events: ReadonlySet<string>
  /** Returns the grants that have changed since the last call. */
  takeChangedGrants(): readonly string[]
}

export function createLedger(
  database: Database,
  journal: Journal,
  latestNow: () => number,
  holds: () => Holds,
): Ledger {
  const laws: readonly Law[] = [
    everyWriteIsTheNextVersion,
    everyChangeHasItsEvents,
    nothingIsRemovedEarly(latestNow),
    grantsOnlyGoForward,
    accessIsAttenuated,
    nobodyPaysWithoutConsent,
    noTokenComesBack(),
    tokensChangeAlone,
    everyTransferCountsOnce(),
    completionIsFinal,
    sendingOnlyGoesForward,
    noWindowIsOverspent(),
    everyPaymentMeetsItsConditions,
    noEndedGrantPays,
    everyIntentionPaysOnce(),
    everyPaymentIsHeld(holds),
  ]
  const events = new Set<string>()
  let changedGrants = new Set<string>()
  return {
    events,
    see(written, commit) {
      for (const { kind, after } of written) {
        if (kind === 'event' && after !== undefined) events.add(after.id)
        if (kind === 'grant' && after !== undefined) changedGrants.add(after.id)
      }
      const change = { written, commit, database, journal }
      for (const law of laws) journal.breaches.push(...law(change))
    },
    takeChangedGrants() {
      const ids = [...changedGrants]
      changedGrants = new Set()
      return ids
    },
  }
}
