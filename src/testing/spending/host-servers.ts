import type {
  AuthorizationServer,
  ClientKeys,
  Clock,
  ResourceServer,
  Store,
} from 'open-payments-server'
import { clientKeysOf } from '../client.js'
import { manualClock } from '../clock.js'
import { failingStore } from './failing-store.js'
import type { StoreFailure } from './history.js'
import { spendingClient } from './library-servers.js'
import type { ClientServers } from './servers-wallet.js'

/** What the test passes to the host's code. */
export interface SpendingPorts {
  /** The `clock` of both servers, and of host code that needs the time. The test moves it. */
  readonly clock: Clock
  /** The `clientKeys` of the authorization server: the keys of the client instance that pays. */
  readonly clientKeys: ClientKeys
  /** Returns a store that fails when the history says so. Wrap the store of both servers; without it, none fails. */
  failing(store: Store): Store
}

/** The host's servers, as the search uses them. */
export interface SpendingServers {
  readonly authorizationServer: AuthorizationServer
  readonly resourceServer: ResourceServer
  /** The options of the servers. */
  readonly grantEndpoint: string
  readonly baseUrl: string
  /** The option of both servers, if they have it. */
  readonly strippedPrefix?: string
  /** The host's identifier of the owner of the accounts in `scene`. Default `owner`. */
  readonly resourceOwner?: string
  /** Called at the end of the history. */
  close?(): void | Promise<void>
}

/** Creates the host's servers for a history, and the client instance that they know. */
export async function hostServers(
  create: (ports: SpendingPorts) => SpendingServers | Promise<SpendingServers>,
) {
  const clock = manualClock()
  const client = spendingClient(clock)
  const stores: ((failure: StoreFailure) => () => void)[] = []
  const host = await create({
    clock,
    clientKeys: clientKeysOf(client),
    failing(store) {
      const { store: failing, fail } = failingStore(store)
      stores.push(fail)
      return failing
    },
  })
  const { authorizationServer: auth, resourceServer: resources } = host
  const { grantEndpoint, baseUrl, strippedPrefix = '', resourceOwner = 'owner' } = host
  const servers: ClientServers = {
    ...{ grantEndpoint, baseUrl, clock, auth, resources, resourceOwner },
    client: {
      ...client,
      send: (handle, request) => client.send(handle, { ...request, strippedPrefix }),
    },
    pay: resources.handle,
    tokensExpire: true,
  }
  return {
    servers,
    failStore(failure: StoreFailure) {
      const restore = stores.map((fail) => fail(failure))
      return () => {
        for (const each of restore) each()
      }
    },
    close: async () => host.close?.(),
  }
}
