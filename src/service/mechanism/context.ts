import type { Instant } from '../../core/decision.js'
import type { Clock } from '../../ports/clock.js'
import type { Store } from '../../ports/store.js'
import { newPath } from '../../protocol/credential.js'
import type { SignatureRules } from '../../protocol/http-signature/inspect.js'
import type { TransactContext } from './transact.js'

/** What every service works with. */
export interface ServiceContext extends TransactContext {
  /** The store as the host gave it: whether two servers share one is seen by this. */
  readonly givenStore: Store
  readonly clock: Clock
  /** What the ids of this server begin with. */
  readonly namespace: () => Promise<string>
  readonly signatureRules: SignatureRules
  /** Whether what happens is written down as events, for a consumer to deliver. */
  readonly recordsEvents: boolean
}

/** One operation: its time and its command id, fixed when it begins. */
export interface Call {
  readonly now: Instant
  readonly commandId: string
}

export function newCall({ clock, random }: ServiceContext): Call {
  return { now: clock.now(), commandId: newPath(random) }
}
