import {
  type Handler,
  memoryStore,
  type RemoteGrantsOptions,
  remoteGrants,
} from '../../src/index.js'
import { manualClock } from './clock.js'
import { bankId, bankKey, introspection } from './introspection.js'
import { createSpendingWorld } from './spending.js'
import { grantEndpoint, type WorldOptions } from './world.js'

/**
 * Creates a wallet whose servers share a store, or are two processes: the resource server then has a store of its own,
 * and introspects tokens over HTTP.
 *
 * @param cache of the second process.
 */
export function walletInProcesses(
  processes: 1 | 2,
  options: WorldOptions = {},
  cache?: RemoteGrantsOptions['cache'],
) {
  const { clock = manualClock() } = options
  let handle: Handler | undefined
  const grants = remoteGrants({
    grantEndpoint,
    ...introspection,
    clock,
    ...(cache && { cache }),
    async fetch(url, init) {
      const body = init?.body as Uint8Array
      const headers = [...new Headers(init?.headers)]
      const path = new URL(String(url)).pathname
      const answer = await handle?.({ method: 'POST', url: path, headers, body })
      return new Response(answer?.body ?? null, answer)
    },
  })
  const world = createSpendingWorld({
    ...options,
    clock,
    auth: { resourceServers: [{ id: bankId, keys: [bankKey] }], ...options.auth },
    resources: { ...(processes === 2 && { grants, store: memoryStore() }), ...options.resources },
  })
  handle = world.auth.handle
  return world
}
