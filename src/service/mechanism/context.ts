import type { Instant } from '../../core/instant.js'
import type { Clock } from '../../ports/clock.js'
import type { Store } from '../../ports/store.js'
import { newPath } from '../../protocol/credential.js'
import type { SignatureRules } from '../../protocol/http-signature/inspect.js'
import type { Combiner } from './combiner.js'
import type { RecordedEvents } from './event-types.js'
import type { TransactContext } from './transact.js'

/** The dependencies common to all services. */
export interface ServiceContext extends TransactContext {
  /** Absent inside a transaction of the host, whose commands cannot be part of another commit. */
  readonly combiner?: Combiner | undefined
  /** The store that the host passed, without telemetry, to compare whether two servers share a store. */
  readonly givenStore: Store
  readonly clock: Clock
  /** Resolves to the prefix of all ids of this server. */
  readonly namespace: () => Promise<string>
  /**
   * Resolves to the prefix of the ids of budgets: that of the authorization server, because all its resource
   * servers on one store spend from the same budgets.
   */
  readonly grantNamespace: () => Promise<string>
  readonly signatureRules: SignatureRules
  /** The canonical URL of this server, which its events name. */
  readonly serverUrl: string
  /** Which types of event commits also record. */
  readonly recordsEvents: RecordedEvents
  /** The consumers that each get every recorded event. Absent if there is one consumer without a name. */
  readonly eventConsumers?: readonly string[] | undefined
}

/** The time and command id of an operation, fixed when it begins. */
export interface Call {
  readonly now: Instant
  readonly commandId: string
}

export function newCall({ clock, random }: ServiceContext): Call {
  return { now: clock.now(), commandId: newPath(random) }
}
