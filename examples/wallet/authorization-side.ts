import {
  type AuthorizationServer,
  createAuthorizationServer,
  remoteClientKeys,
  walletAddressSubjects,
} from 'open-payments-server'
import { connectedApps } from './connected-apps.js'
import { consentPage } from './consent-page.js'
import { keysPage } from './keys-page.js'
import { secretKey } from './secrets.js'
import { cookieSession } from './session.js'
import type { Side, Surroundings } from './side.js'

export interface AuthorizationSide extends Side {
  readonly auth: AuthorizationServer
}

export interface AuthorizationSideOptions {
  /** The origin of the authorization server and of the pages for owners. */
  readonly authUrl: string
  /**
   * The public key of a resource server in another process. Default: the resource server is in this process.
   */
  readonly resourceServerKey?: string
}

/** The authorization server and the pages for owners. */
export async function authorizationSide(
  surroundings: Surroundings,
  { authUrl, resourceServerKey: key }: AuthorizationSideOptions,
): Promise<AuthorizationSide> {
  const { baseUrl, grantEndpoint, resourceServer, accounts, storage, watch, time } = surroundings
  const auth = createAuthorizationServer({
    ...watch,
    ...time,
    grantEndpoint,
    store: storage.store,
    recordsEvents: true, // the log of the demo shows every event
    consentUrl: `${authUrl}/consent`,
    // Clients of the demo publish their keys on this machine, which may be busy. A real wallet omits these options.
    clientKeys:
      surroundings.clientKeys ??
      remoteClientKeys({
        allowLoopback: true,
        timeoutMs: 20_000,
        // The keys of the accounts, unless they are in the storage of another process.
        ...(key === undefined && { ownAccounts: { baseUrl, walletAddresses: accounts.published } }),
      }),
    subjects: walletAddressSubjects,
    ...(key && { resourceServers: [{ id: resourceServer, keys: [{ kid: key, x: key }] }] }),
  })
  const session = cookieSession(await secretKey(storage.secrets, 'session'))

  return {
    auth,
    mounts: [
      { path: '/auth', handle: auth.handle },
      { path: '/consent', handle: consentPage(auth.interactions, accounts, session) },
      { path: '/grants', handle: connectedApps(auth.grants, accounts, session) },
      // The other process, which publishes keys, may have another database.
      ...(key === undefined
        ? [{ path: '/keys', handle: keysPage(storage.keys, accounts, session) }]
        : []),
    ],
    events: auth.events,
    sweep: auth.sweep,
  }
}
