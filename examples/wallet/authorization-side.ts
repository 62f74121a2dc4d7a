import {
  type AuthorizationServer,
  createAuthorizationServer,
  remoteClientKeys,
  walletAddressSubjects,
} from 'open-payments-server'
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

/** The authorization server. */
export function authorizationSide(
  surroundings: Surroundings,
  { authUrl, resourceServerKey: key }: AuthorizationSideOptions,
): AuthorizationSide {
  const { baseUrl, grantEndpoint, resourceServerUrl, accounts, storage, watch, time } = surroundings
  const auth = createAuthorizationServer({
    ...watch,
    ...time,
    grantEndpoint,
    store: storage.store,
    recordsEvents: true, // the log of the demo shows every event
    consentUrl: `${authUrl}/consent`,
    clientKeys:
      surroundings.clientKeys ??
      remoteClientKeys({
        allowLoopback: true, // clients of the demo are on this machine: a real wallet omits this option
        timeoutMs: surroundings.outboundTimeoutMs,
        // The keys of the accounts, unless they are in the storage of another process.
        ...(key === undefined && { ownAccounts: { baseUrl, walletAddresses: accounts.published } }),
      }),
    subjects: walletAddressSubjects,
    ...(key && { resourceServers: [{ id: resourceServerUrl, keys: [{ kid: key, x: key }] }] }),
  })
  return {
    auth,
    mounts: [{ path: '/auth', handle: auth.handle, servesAnyHost: true }],
    events: auth.events,
    sweep: auth.sweep,
  }
}
