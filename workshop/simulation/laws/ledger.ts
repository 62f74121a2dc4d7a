import type { Commit } from '../../../src/entry-adapter.js'
import { withoutSlice } from '../../../test/support/outbox.js'
import type { Climate } from '../connection.js'
import type { Database, Written } from '../database.js'
import type { Holds } from '../holds.js'
import type { Journal } from '../journal.js'
import type { Scheduler } from '../scheduler.js'
import {
  accessIsAttenuated,
  amendmentsTellWhatChanged,
  endedGrantsRemain,
  grantsOnlyGoForward,
  nobodyPaysWithoutConsent,
  noTokenComesBack,
  tokensChangeAlone,
} from './grants.js'
import type { Law } from './law.js'
import { completionIsFinal, everyTransferCountsOnce } from './receiving.js'
import {
  everyIntentionPaysOnce,
  everyLargePaymentIsConfirmed,
  everyPaymentIsHeld,
  everyPaymentMeetsItsConditions,
  noEndedGrantPays,
  noOwnersLimitIsExceeded,
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
  /** The ids of all events that were ever written, without their slices. */
  readonly events: ReadonlySet<string>
  /** Returns the grants that have changed since the last call. */
  takeChangedGrants(): readonly string[]
}

/** The parts of a world that the laws are about. */
interface Watched {
  readonly database: Database
  readonly journal: Journal
  readonly scheduler: Scheduler
  readonly climate: Climate
  readonly isRemote: boolean
}

export function createLedger(
  { database, journal, scheduler, climate, isRemote }: Watched,
  holds: () => Holds,
): Ledger {
  const laws: readonly Law[] = [
    everyWriteIsTheNextVersion,
    everyChangeHasItsEvents,
    nothingIsRemovedEarly,
    grantsOnlyGoForward,
    accessIsAttenuated,
    amendmentsTellWhatChanged,
    endedGrantsRemain,
    nobodyPaysWithoutConsent,
    noTokenComesBack(),
    tokensChangeAlone,
    everyTransferCountsOnce(),
    completionIsFinal,
    sendingOnlyGoesForward,
    noWindowIsOverspent(),
    noOwnersLimitIsExceeded(isRemote),
    everyPaymentMeetsItsConditions(isRemote),
    noEndedGrantPays(isRemote),
    everyIntentionPaysOnce(),
    everyLargePaymentIsConfirmed,
    everyPaymentIsHeld(holds),
  ]
  const events = new Set<string>()
  let changedGrants = new Set<string>()
  return {
    events,
    see(written, commit) {
      for (const { kind, after } of written) {
        if (kind === 'event' && after !== undefined && 'event' in after) {
          events.add(withoutSlice(after.id))
        }
        if (kind === 'grant' && after !== undefined) changedGrants.add(after.id)
      }
      const { skewMaxMs } = climate.weather
      const change = { written, commit, database, journal, at: scheduler.now(), skewMaxMs }
      for (const law of laws) journal.breaches.push(...law(change))
    },
    takeChangedGrants() {
      const ids = [...changedGrants]
      changedGrants = new Set()
      return ids
    },
  }
}
