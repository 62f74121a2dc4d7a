import type { AccessItem, Instant } from 'open-payments-server'
import type * as v from 'valibot'
import { pageIn } from './answers.js'
import { grantBody, hasOriginOf, readBody, type rotationBody } from './bodies.js'
import { invalid } from './exchange.js'
import type { Answer, Outgoing } from './message.js'
import type { Refused } from './refusal.js'

/** The continuation of a grant (RFC 9635 section 3.1). */
export interface GrantContinuation {
  readonly uri: string
  /** The continuation token: a secret. */
  readonly token: string
}

/** The servers of the wallet address that was asked for a grant. Its tokens are sent there alone. */
export interface GrantServers {
  readonly authServer: string
  readonly resourceServer: string
}

/** A grant with its token. Keep it as JSON, as a secret. */
export interface IssuedGrant extends GrantServers {
  /** The access token: a secret. */
  readonly token: string
  /** Where the token is rotated and revoked. */
  readonly manage: string
  /** Absent if the server does not say. */
  readonly expiresAt?: Instant
  /** What the owner has granted, which may be less than what was requested. */
  readonly access: readonly AccessItem[]
  /** Absent if the grant cannot be continued, and therefore not be cancelled. */
  readonly continuation?: GrantContinuation
}

/** A grant that waits for its owner. Keep it as JSON, as a secret, until the owner has decided. */
export interface PendingGrant extends GrantServers {
  /** The page to which the browser of the owner is sent. Absent after a continuation. */
  readonly redirect?: string
  readonly continuation: GrantContinuation
  /** Before this the server refuses a continuation. */
  readonly continueAt: Instant
  /** What proves that the redirect comes from the authorization server. Absent without a `finishUri`. */
  readonly finish?: { readonly clientNonce: string; readonly serverNonce: string }
}

/** The state of a grant after a request or a continuation. */
export type GrantState =
  | { readonly ok: true; readonly status: 'issued'; readonly grant: IssuedGrant }
  | { readonly ok: true; readonly status: 'pending'; readonly pending: PendingGrant }
  | Refused

const waitDefaultS = 5

/** Where a grant stands before a response. */
export interface Before {
  readonly servers: GrantServers
  readonly clientNonce?: string | undefined
  readonly pending?: PendingGrant
}

/** Reads the response to a grant request or to a continuation. */
export function stateIn(
  answer: Answer,
  request: Outgoing,
  { servers, clientNonce, pending }: Before,
  now: Instant,
): GrantState {
  const read = readBody(grantBody, answer, request)
  if (!read.ok) return read
  const { access_token: token, continue: continued, interact } = read.value
  const uris = [token?.manage, continued?.uri].filter((uri) => uri !== undefined)
  // A token is sent there. Another server would use it.
  if (!uris.every((uri) => hasOriginOf(uri, servers.authServer))) {
    return invalid(request, 'with a URL of another server')
  }
  const continuation =
    continued === undefined
      ? pending?.continuation
      : { uri: continued.uri, token: continued.access_token.value }
  if (token !== undefined) {
    return { ok: true, status: 'issued', grant: grantOf(servers, token, continuation, now) }
  }
  const needsFinish = clientNonce !== undefined && interact?.finish === undefined
  const needsPage = pending === undefined && interact === undefined
  if (continuation === undefined || needsPage || needsFinish) {
    return invalid(request, 'with neither a token nor an interaction')
  }
  const redirect = pageIn(interact?.redirect, servers.authServer)
  if (interact !== undefined && redirect === undefined) {
    return invalid(request, 'with an interact.redirect that is no page for the owner')
  }
  const continueAt = now + (continued?.wait ?? waitDefaultS) * 1_000
  const finish =
    clientNonce === undefined || interact?.finish === undefined
      ? pending?.finish
      : { clientNonce, serverNonce: interact.finish }
  const next: PendingGrant = {
    ...{ ...servers, continuation, continueAt },
    ...(redirect !== undefined && { redirect }),
    ...(finish !== undefined && { finish }),
  }
  return { ok: true, status: 'pending', pending: next }
}

type TokenBody = v.InferOutput<typeof rotationBody>['access_token']

/** Returns the servers alone, of a grant or of an address. */
export function serversOf({ authServer, resourceServer }: GrantServers): GrantServers {
  return { authServer, resourceServer }
}

export function grantOf(
  servers: GrantServers,
  { value, manage, expires_in, access }: TokenBody,
  continuation: GrantContinuation | undefined,
  now: Instant,
): IssuedGrant {
  return {
    ...{ ...servers, token: value, manage, access },
    ...(expires_in !== undefined && { expiresAt: now + expires_in * 1_000 }),
    ...(continuation !== undefined && { continuation }),
  }
}
