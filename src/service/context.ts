import type { Instant } from '../core/instant.js'
import type { Clock } from '../ports/host.js'
import { newUniqueText } from '../protocol/credential.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import type { RunnerContext } from './write/runner.js'
import type { RunWrite } from './write/write.js'

export interface ServiceContext extends RunnerContext {
  /** Executes a write. Every change of a record goes through it. */
  readonly run: RunWrite
  readonly clock: Clock
  /**
   * Resolves to the prefix of the ids of budgets: the namespace of the authorization server, because all its resource
   * servers on one store spend from the same budgets.
   */
  readonly grantNamespace: () => Promise<string>
  readonly signatureRules: SignatureRules
  /** The clock of the signatures, if it is not `clock`. */
  readonly signatureClock?: Clock
  /** The canonical URL of this server, which its events name. */
  readonly serverUrl: string
}

/** The time and command id of an operation, fixed when it begins. */
export interface Call {
  readonly now: Instant
  readonly commandId: string
}

export function newCall({ clock, random }: Pick<ServiceContext, 'clock' | 'random'>): Call {
  return { now: clock.now(), commandId: newUniqueText(random) }
}
