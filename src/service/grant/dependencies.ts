import type { GrantPolicy } from '../../core/grant/record.js'
import type { ServiceContext } from '../context.js'

/** What the operations on grants need. */
export interface Dependencies {
  readonly context: ServiceContext
  readonly policy: GrantPolicy
}
