import type { Instant, JsonObject } from '../core/decision.js'
import type { Result } from '../core/result.js'
import type { HttpResponse } from './message.js'

/** The names of all operations of the servers. */
export type ServerOperation =
  | 'requestGrant'
  | 'discover'
  | 'continueGrant'
  | 'cancelGrant'
  | 'rotateToken'
  | 'revokeToken'
  | 'introspectToken'
  | 'createIncomingPayment'
  | 'listIncomingPayments'
  | 'getIncomingPayment'
  | 'completeIncomingPayment'
  | 'createQuote'
  | 'getQuote'
  | 'createOutgoingPayment'
  | 'listOutgoingPayments'
  | 'getOutgoingPayment'
  | 'getOutgoingPaymentGrant'
  | 'getWalletAddress'
  | 'getWalletAddressKeys'
  | 'preflight'

type Server = 'authorizationServer' | 'resourceServer' | 'walletAddressServer'

/** The error that a client receives: a status, a machine-readable code and a description without details. */
export interface PublicError {
  readonly status: number
  readonly code: string
  readonly description: string
}

type Row = { readonly [Where in ServerOperation | Server]?: PublicError }

/**
 * Every refusal with its public error: per server, and per operation where it differs. Rows are in order of
 * precedence: if several apply to a request, the response is that of the first.
 *
 * @see RFC 9635 section 3.6; Open Payments OpenAPI, responses of each operation
 */
export const refusals = {
  body_too_large: everywhere(413, 'invalid_request', 'Request body is too large'),
  route_unknown: {
    authorizationServer: error(404, 'invalid_request', 'Not found'),
    resourceServer: error(404, 'not_found', 'Not found'),
    walletAddressServer: error(404, 'not_found', 'Not found'),
  },
  method_unknown: {
    authorizationServer: error(405, 'invalid_request', 'Method not allowed'),
    resourceServer: error(405, 'method_not_allowed', 'Method not allowed'),
    walletAddressServer: error(405, 'method_not_allowed', 'Method not allowed'),
  },
  headers_invalid: everywhere(400, 'invalid_request', 'Malformed request headers'),
  media_type_unsupported: {
    authorizationServer: error(415, 'invalid_request', 'Content must be application/json'),
    resourceServer: error(415, 'unsupported_media_type', 'Content must be application/json'),
    walletAddressServer: error(415, 'unsupported_media_type', 'Content must be application/json'),
  },
  signature_invalid: {
    introspectToken: resourceServerInvalid(),
    authorizationServer: error(401, 'invalid_client', 'Invalid signature'),
    // Deployed clients match this text.
    resourceServer: error(401, 'invalid_signature', 'Signature validation error'),
  },
  token_missing: {
    continueGrant: error(401, 'invalid_continuation', 'Missing continuation token'),
    cancelGrant: error(401, 'invalid_continuation', 'Missing continuation token'),
    authorizationServer: error(401, 'invalid_client', 'Missing access token'),
    resourceServer: error(401, 'missing_token', 'Missing access token'),
  },
  token_malformed: {
    continueGrant: error(401, 'invalid_continuation', 'Malformed authorization'),
    cancelGrant: error(401, 'invalid_continuation', 'Malformed authorization'),
    authorizationServer: error(401, 'invalid_client', 'Malformed authorization'),
    resourceServer: error(401, 'invalid_token', 'Malformed authorization'),
  },
  token_unknown: {
    continueGrant: error(401, 'invalid_continuation', 'Unknown continuation'),
    cancelGrant: error(401, 'invalid_continuation', 'Unknown continuation'),
    rotateToken: error(404, 'invalid_rotation', 'Unknown token'),
    revokeToken: error(401, 'invalid_client', 'Unknown token'),
    // Deployed clients match this text.
    resourceServer: error(401, 'invalid_token', 'Invalid Token'),
  },
  introspection_unavailable: {
    introspectToken: error(503, 'request_denied', 'Token cannot be checked for now'),
    resourceServer: error(503, 'introspection_unavailable', 'Token cannot be checked for now'),
  },
  resource_server_invalid: {
    introspectToken: resourceServerInvalid(),
  },
  client_invalid: {
    requestGrant: error(400, 'invalid_client', 'Could not determine client'),
    continueGrant: error(400, 'invalid_client', 'Could not determine client'),
    authorizationServer: error(401, 'invalid_client', 'Could not determine client'),
  },
  client_unavailable: {
    authorizationServer: error(503, 'request_denied', 'Client keys cannot be fetched for now'),
  },
  rate_limited: {
    authorizationServer: error(429, 'request_denied', 'Too many requests'),
    resourceServer: error(429, 'rate_limited', 'Too many requests'),
    walletAddressServer: error(429, 'rate_limited', 'Too many requests'),
  },
  replayed: {
    introspectToken: resourceServerInvalid(),
    authorizationServer: error(401, 'invalid_client', 'Invalid signature'),
    resourceServer: error(401, 'invalid_signature', 'Signature validation error'),
  },
  access_insufficient: {
    resourceServer: error(403, 'insufficient_access', 'Insufficient Grant'),
  },
  key_rotation_unsupported: {
    rotateToken: error(400, 'invalid_rotation', 'Key rotation is not supported'),
  },
  body_invalid: {
    rotateToken: error(400, 'invalid_rotation', 'Invalid request body'),
    authorizationServer: error(400, 'invalid_request', 'Invalid request body'),
    resourceServer: error(400, 'invalid_request', 'Invalid request body'),
  },
  query_invalid: {
    resourceServer: error(400, 'invalid_request', 'Invalid query parameters'),
  },
  idempotency_key_invalid: {
    resourceServer: error(400, 'invalid_request', 'Invalid Idempotency-Key'),
  },
  subject_unsupported: {
    requestGrant: error(400, 'invalid_request', 'Subject information is not supported'),
  },
  request_not_allowed: {
    requestGrant: error(403, 'request_denied', 'Request is not allowed'),
  },
  interaction_required: {
    requestGrant: error(400, 'invalid_request', "Missing required request field 'interact'"),
  },
  interaction_by_key: {
    requestGrant: error(400, 'invalid_client', 'Interactive grants need a client wallet address'),
  },
  finish_required: {
    requestGrant: error(400, 'invalid_request', 'Interaction needs a finish method'),
  },
  too_fast: {
    continueGrant: error(400, 'too_fast', 'Continued before "wait" had passed'),
  },
  poll_with_finish: {
    continueGrant: error(401, 'request_denied', 'Grant cannot be polled'),
  },
  grant_gone: {
    continueGrant: error(404, 'invalid_continuation', 'Grant not found'),
  },
  grant_finalized: {
    cancelGrant: error(404, 'invalid_request', 'Grant not found'),
  },
  grant_denied: {
    continueGrant: error(401, 'request_denied', 'Grant was denied'),
  },
  interaction_timed_out: {
    continueGrant: error(401, 'request_denied', 'Interaction has expired'),
  },
  interact_ref_wrong: {
    continueGrant: error(404, 'invalid_continuation', 'Unknown interaction reference'),
  },
  interact_ref_spent: {
    continueGrant: error(401, 'request_denied', 'Interaction reference has been used'),
  },
  already_issued: {
    continueGrant: error(401, 'request_denied', 'Grant cannot be continued'),
  },
  token_not_managed_here: {
    rotateToken: error(404, 'invalid_rotation', 'Unknown token'),
    revokeToken: error(401, 'invalid_client', 'Unknown token'),
  },
  token_revoked: {
    rotateToken: error(404, 'invalid_rotation', 'Unknown token'),
  },
  grant_over: {
    rotateToken: error(400, 'invalid_rotation', 'Grant is no longer active'),
  },
  identifier_foreign: {
    resourceServer: error(403, 'insufficient_access', 'Insufficient Grant'),
  },
  request_differs: {
    resourceServer: error(422, 'request_differs', 'Used for another payment already'),
  },
  wallet_address_unknown: {
    resourceServer: error(404, 'unknown_wallet_address', 'Unknown wallet address'),
  },
  wallet_address_inactive: {
    resourceServer: error(400, 'inactive_wallet_address', 'Inactive wallet address'),
  },
  amount_invalid: {
    resourceServer: error(400, 'invalid_amount', 'Invalid amount'),
  },
  expiry_invalid: {
    resourceServer: error(400, 'invalid_expiry', 'Invalid expiresAt'),
  },
  amount_missing: {
    resourceServer: error(400, 'invalid_amount', 'Missing amount'),
  },
  amount_too_small: {
    // Deployed clients match this text, and read `minSendAmount` in the details.
    resourceServer: error(400, 'invalid_amount', 'non-positive receive amount'),
  },
  receiver_invalid: {
    // Deployed clients match this text.
    resourceServer: error(400, 'invalid_receiver', 'invalid receiver'),
  },
  quote_unknown: {
    resourceServer: error(404, 'invalid_quote', 'unknown quote'),
  },
  quote_mismatch: {
    resourceServer: error(400, 'invalid_quote', 'invalid quote'),
  },
  quote_expired: {
    resourceServer: error(400, 'invalid_quote', 'invalid quote'),
  },
  limits_exceeded: {
    // Deployed clients read this text as an exhausted budget.
    resourceServer: error(403, 'insufficient_grant', 'unauthorized'),
  },
  resource_unknown: {
    resourceServer: error(404, 'not_found', 'Not found'),
    walletAddressServer: error(404, 'not_found', 'Not found'),
  },
  busy: {
    authorizationServer: error(503, 'request_denied', 'Too many changes at once'),
    resourceServer: error(503, 'busy', 'Too many changes at once'),
    walletAddressServer: error(503, 'busy', 'Too many changes at once'),
  },
  internal: {
    authorizationServer: error(500, 'request_denied', 'Internal server error'),
    resourceServer: error(500, 'internal_error', 'Internal server error'),
    walletAddressServer: error(500, 'internal_error', 'Internal server error'),
  },
} as const satisfies Record<string, Row>

/** The precise code of a refusal, for the operator. Clients receive a `PublicError`. */
export type Refusal = keyof typeof refusals

/**
 * A refused request: the code and reason for the operator, and the additional content of the response
 * (`Retry-After`, error `details`, `Allow`).
 */
export interface HttpRefusal {
  readonly ok: false
  readonly outcome: 'refused'
  readonly refusal: Refusal
  readonly reason: string
  readonly retryAt?: Instant
  readonly details?: JsonObject
  readonly allow?: string
}

/** A value, or the refusal of the request. */
export type HttpResult<Value> = Result<Value, HttpRefusal>

export interface RefusalContext {
  readonly server: Server
  readonly operation: ServerOperation | undefined
  readonly challenge: string | undefined
  readonly now: Instant
}

const retryLaterSeconds = 1

/** Returns the public error of a refusal for a server and operation. */
export function publicError(
  refusal: Refusal,
  { server, operation }: Pick<RefusalContext, 'server' | 'operation'>,
): PublicError {
  const row: Row = refusals[refusal]
  const internal: Row = refusals.internal
  const found = (operation && row[operation]) ?? row[server] ?? internal[server]
  return found ?? error(500, 'internal_error', 'Internal server error')
}

/** Returns the response for a refusal. */
export function refusalResponse(refused: HttpRefusal, context: RefusalContext): HttpResponse {
  const { status, code, description } = publicError(refused.refusal, context)
  const { details, allow, retryAt } = refused
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
  }
  if (status === 401 && context.challenge) headers['www-authenticate'] = context.challenge
  if (allow !== undefined) headers['allow'] = allow
  if (retryAt !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil((retryAt - context.now) / 1000)))
  } else if (status === 503) {
    headers['retry-after'] = String(retryLaterSeconds)
  }
  const error = details === undefined ? { code, description } : { code, description, details }
  return { status, headers, body: JSON.stringify({ error }) }
}

function error(status: number, code: string, description: string): PublicError {
  return { status, code, description }
}

/**
 * Returns the error for a resource server that is not authenticated: 400 (RFC 9767 section 3.5), the same for
 * unknown ids and invalid signatures, so that it does not reveal which ids exist.
 */
function resourceServerInvalid(): PublicError {
  return error(400, 'invalid_resource_server', 'Unknown resource server, or invalid signature')
}

function everywhere(status: number, code: string, description: string) {
  const same = error(status, code, description)
  return { authorizationServer: same, resourceServer: same, walletAddressServer: same }
}
