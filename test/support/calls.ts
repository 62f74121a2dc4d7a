import { newCall, type ServiceContext } from '../../src/service/mechanism/context.js'
import type { SignedCall } from '../../src/service/mechanism/nonces.js'

/** The call of a request whose repeats are accepted. */
export function unguardedCall(context: ServiceContext): SignedCall {
  return { ...newCall(context), replay: { consumed: false } }
}
