import type { Instant } from '../../core/decision.js'
import type { Clock } from '../../ports/clock.js'
import type { Store } from '../../ports/store.js'
import { newPath } from '../../protocol/credential.js'
import type { SignatureRules } from '../../protocol/http-signature/inspect.js'
import type { TransactContext } from './transact.js'

/** The dependencies common to all services. */
export interface ServiceContext extends TransactContext {
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
  /** Whether commits also record events. */
  readonly recordsEvents: boolean
}

/** The time and command id of an operation, fixed when it begins. */
export interface Call {
  readonly now: Instant
  readonly commandId: string
}

export function newCall({ clock, random }: ServiceContext): Call {
  return { now: clock.now(), commandId: newPath(random) }
}
