import type { ServerOperation } from './routes.js'

export type ErrorRow = readonly [status: number, code: string, description: string]

/** The error of each refusal at a server, and of single operations where it differs. */
export type ErrorTable = {
  readonly [Name in Refusal]?:
    | ErrorRow
    | ({ readonly [Operation in ServerOperation]?: ErrorRow } & { readonly otherwise?: ErrorRow })
}

/** All refusals in order of precedence: if several apply to a request, the first one counts. */
export const precedence = [
  'body_too_large',
  'route_unknown',
  'method_unknown',
  'headers_invalid',
  'media_type_unsupported',
  'signature_invalid',
  'token_missing',
  'token_malformed',
  'token_unknown',
  'introspection_unavailable',
  'resource_server_invalid',
  'client_invalid',
  'client_unavailable',
  'rate_limited',
  'replayed',
  'repeated',
  'access_insufficient',
  'key_rotation_unsupported',
  'body_invalid',
  'query_invalid',
  'idempotency_key_invalid',
  'subject_unsupported',
  'request_not_allowed',
  'interaction_required',
  'interaction_by_key',
  'finish_required',
  'too_fast',
  'poll_with_finish',
  'grant_gone',
  'grant_finalized',
  'grant_denied',
  'interaction_timed_out',
  'interact_ref_wrong',
  'interact_ref_used',
  'already_issued',
  'token_not_managed_here',
  'token_revoked',
  'grant_over',
  'identifier_foreign',
  'request_differs',
  'confirmation_declined',
  'confirmation_expired',
  'grant_ended',
  'wallet_address_unknown',
  'wallet_address_inactive',
  'amount_invalid',
  'expiry_invalid',
  'amount_missing',
  'amount_too_small',
  'receiver_invalid',
  'quote_unknown',
  'quote_mismatch',
  'quote_expired',
  'limits_exceeded',
  'grant_paused',
  'conditions_exceeded',
  'account_limit_exceeded',
  'amount_too_large',
  'payment_not_allowed',
  'funds_insufficient',
  'confirmation_required',
  'resource_unknown',
  'payment_expired',
  'busy',
  'internal',
] as const

/**
 * The precise code of a refusal, for the operator. Clients receive a `PublicError`. Minor versions add members: give a
 * `switch` a `default`.
 */
export type Refusal = (typeof precedence)[number]

/**
 * The error for a resource server that is not authenticated: 400 (RFC 9767 section 3.5), the same for unknown ids
 * and invalid signatures, so that it does not reveal which ids exist.
 */
const resourceServerInvalid: ErrorRow = [
  400,
  'invalid_resource_server',
  'Unknown resource server, or invalid signature',
]

/**
 * The error for a repeat of a request whose answer is not given again: 409, because 401 would say that the client is
 * not authenticated, and so that the first request was not carried out. What was answered is read, rotated or continued
 * by a request with a new signature.
 */
const answeredBefore: ErrorRow = [
  409,
  'signature_used',
  'Request has already been answered: sign it again',
]

/** The errors of the authorization server (RFC 9635 section 3.6; Open Payments OpenAPI, Authorization Server). */
export const authorizationErrors = {
  body_too_large: [413, 'invalid_request', 'Request body is too large'],
  route_unknown: [404, 'invalid_request', 'Not found'],
  method_unknown: [405, 'invalid_request', 'Method not allowed'],
  headers_invalid: [400, 'invalid_request', 'Malformed request headers'],
  media_type_unsupported: [415, 'invalid_request', 'Content must be application/json'],
  signature_invalid: {
    introspectToken: resourceServerInvalid,
    otherwise: [401, 'invalid_client', 'Invalid signature'],
  },
  token_missing: {
    continueGrant: [401, 'invalid_continuation', 'Missing continuation token'],
    cancelGrant: [401, 'invalid_continuation', 'Missing continuation token'],
    otherwise: [401, 'invalid_client', 'Missing access token'],
  },
  token_malformed: {
    continueGrant: [401, 'invalid_continuation', 'Malformed authorization'],
    cancelGrant: [401, 'invalid_continuation', 'Malformed authorization'],
    otherwise: [401, 'invalid_client', 'Malformed authorization'],
  },
  token_unknown: {
    continueGrant: [401, 'invalid_continuation', 'Unknown continuation'],
    cancelGrant: [401, 'invalid_continuation', 'Unknown continuation'],
    rotateToken: [404, 'invalid_rotation', 'Unknown token'],
    revokeToken: [401, 'invalid_client', 'Unknown token'],
  },
  introspection_unavailable: {
    introspectToken: [503, 'request_denied', 'Token cannot be checked at the moment'],
  },
  resource_server_invalid: {
    introspectToken: resourceServerInvalid,
  },
  // Deployed clients take this status and code as the sign that their key was withdrawn.
  client_invalid: [400, 'invalid_client', 'Could not determine client'],
  client_unavailable: [503, 'request_denied', 'Client keys cannot be fetched at the moment'],
  rate_limited: [429, 'request_denied', 'Too many requests'],
  replayed: {
    introspectToken: resourceServerInvalid,
    otherwise: [401, 'invalid_client', 'Signature has already been used'],
  },
  repeated: answeredBefore,
  key_rotation_unsupported: {
    rotateToken: [400, 'invalid_rotation', 'Key rotation is not supported'],
  },
  body_invalid: {
    rotateToken: [400, 'invalid_rotation', 'Invalid request body'],
    otherwise: [400, 'invalid_request', 'Invalid request body'],
  },
  subject_unsupported: {
    requestGrant: [400, 'invalid_request', 'Subject information is not supported'],
  },
  request_not_allowed: {
    requestGrant: [403, 'request_denied', 'Request is not allowed'],
  },
  interaction_required: {
    requestGrant: [400, 'invalid_request', "Missing required request field 'interact'"],
  },
  interaction_by_key: {
    requestGrant: [400, 'invalid_client', 'Interactive grants need a client wallet address'],
  },
  finish_required: {
    requestGrant: [400, 'invalid_request', 'Interaction needs a finish method'],
  },
  too_fast: {
    continueGrant: [400, 'too_fast', 'Continued before "wait" had passed'],
  },
  poll_with_finish: {
    continueGrant: [401, 'request_denied', 'Grant cannot be polled'],
  },
  grant_gone: {
    continueGrant: [404, 'invalid_continuation', 'Grant not found'],
  },
  grant_finalized: {
    cancelGrant: [404, 'invalid_request', 'Grant not found'],
  },
  grant_denied: {
    continueGrant: [401, 'request_denied', 'Grant was denied'],
  },
  interaction_timed_out: {
    continueGrant: [401, 'request_denied', 'Interaction has expired'],
  },
  interact_ref_wrong: {
    continueGrant: [404, 'invalid_continuation', 'Unknown interaction reference'],
  },
  interact_ref_used: {
    continueGrant: [401, 'request_denied', 'Interaction reference has been used'],
  },
  already_issued: {
    continueGrant: [401, 'request_denied', 'Grant cannot be continued'],
  },
  token_not_managed_here: {
    rotateToken: [404, 'invalid_rotation', 'Unknown token'],
    revokeToken: [401, 'invalid_client', 'Unknown token'],
  },
  token_revoked: {
    rotateToken: [404, 'invalid_rotation', 'Unknown token'],
  },
  grant_over: {
    rotateToken: [400, 'invalid_rotation', 'Grant is no longer active'],
  },
  busy: [503, 'request_denied', 'Temporarily unavailable'],
  internal: [500, 'request_denied', 'Internal server error'],
} as const satisfies ErrorTable

/** The errors of the wallet address server (Open Payments OpenAPI, Wallet Address Server). */
export const walletAddressErrors = {
  body_too_large: [413, 'invalid_request', 'Request body is too large'],
  route_unknown: [404, 'not_found', 'Not found'],
  method_unknown: [405, 'method_not_allowed', 'Method not allowed'],
  headers_invalid: [400, 'invalid_request', 'Malformed request headers'],
  media_type_unsupported: [415, 'unsupported_media_type', 'Content must be application/json'],
  rate_limited: [429, 'rate_limited', 'Too many requests'],
  resource_unknown: [404, 'not_found', 'Not found'],
  busy: [503, 'busy', 'Temporarily unavailable'],
  internal: [500, 'internal_error', 'Internal server error'],
} as const satisfies ErrorTable

/** What the owner does not permit at the moment: a pause, or a limit or condition of the owner. */
const notPermittedNow: ErrorRow = [
  403,
  'not_permitted_now',
  'The account owner does not permit this payment now',
]

/** The errors of the resource server (Open Payments OpenAPI, Resource Server). */
export const resourceErrors = {
  ...walletAddressErrors,
  // Deployed clients match this text.
  signature_invalid: [401, 'invalid_signature', 'Signature validation error'],
  token_missing: [401, 'missing_token', 'Missing access token'],
  token_malformed: [401, 'invalid_token', 'Malformed authorization'],
  // Deployed clients match this text.
  token_unknown: [401, 'invalid_token', 'Invalid Token'],
  introspection_unavailable: [
    503,
    'introspection_unavailable',
    'Token cannot be checked at the moment',
  ],
  // Deployed clients take the text of an invalid signature for a withdrawn key.
  replayed: [401, 'signature_used', 'Signature has already been used'],
  repeated: {
    createIncomingPayment: [409, 'signature_used', 'Incoming payment has already been created'],
    otherwise: answeredBefore,
  },
  access_insufficient: [403, 'insufficient_access', 'Insufficient Grant'],
  body_invalid: [400, 'invalid_request', 'Invalid request body'],
  query_invalid: [400, 'invalid_request', 'Invalid query parameters'],
  idempotency_key_invalid: [400, 'invalid_request', 'Invalid Idempotency-Key'],
  identifier_foreign: [403, 'insufficient_access', 'Insufficient Grant'],
  request_differs: [422, 'request_differs', 'Already used for another payment'],
  wallet_address_unknown: [404, 'unknown_wallet_address', 'Unknown wallet address'],
  wallet_address_inactive: [400, 'inactive_wallet_address', 'Inactive wallet address'],
  amount_invalid: [400, 'invalid_amount', 'Invalid amount'],
  expiry_invalid: [400, 'invalid_expiry', 'Invalid expiresAt'],
  amount_missing: [400, 'invalid_amount', 'Missing amount'],
  // Deployed clients match this text, and read `minSendAmount` in the details.
  amount_too_small: [400, 'invalid_amount', 'non-positive receive amount'],
  // Deployed clients match this text.
  receiver_invalid: [400, 'invalid_receiver', 'invalid receiver'],
  quote_unknown: [404, 'invalid_quote', 'unknown quote'],
  quote_mismatch: [400, 'invalid_quote', 'invalid quote'],
  quote_expired: [400, 'invalid_quote', 'invalid quote'],
  // Deployed clients take this text for an exhausted budget, and give the grant up.
  limits_exceeded: [403, 'insufficient_grant', 'unauthorized'],
  // One text, because a client does not learn what the owner has set. Deployed clients do not know it, and try again.
  grant_paused: notPermittedNow,
  conditions_exceeded: notPermittedNow,
  account_limit_exceeded: notPermittedNow,
  amount_too_large: [400, 'invalid_amount', 'Amount is too large'],
  payment_not_allowed: [403, 'payment_denied', 'Payment is not allowed'],
  funds_insufficient: [403, 'insufficient_funds', 'Insufficient funds'],
  // The status of the reference server.
  payment_expired: [409, 'payment_expired', 'The incoming payment has expired'],
  confirmation_required: [
    403,
    'confirmation_required',
    'The account owner must confirm the payment',
  ],
  confirmation_declined: [403, 'confirmation_declined', 'The account owner declined the payment'],
  confirmation_expired: [403, 'confirmation_expired', 'The payment was not confirmed in time'],
  grant_ended: [403, 'grant_ended', 'The grant of the payment has ended'],
} as const satisfies ErrorTable
