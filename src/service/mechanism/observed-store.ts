import type { Store } from '../../ports/store.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { aroundStore } from './around-store.js'

/** Returns the store of a server with each call measured. */
export function observedStore(store: Store, server: string, telemetry: Telemetry): Store {
  return aroundStore(store, (call, kind, work) => {
    const activity = { type: 'store', server, call, ...(kind !== undefined && { kind }) } as const
    return telemetry.observe(activity, work)
  })
}
