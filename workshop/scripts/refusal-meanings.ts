import type { Refusal } from '../../src/index.js'

/** What each refusal means, and what helps: for the client, or, where only the host can help, for the host. */
export const refusalMeanings: Readonly<
  Record<Refusal, readonly [meaning: string, remedy: string]>
> = {
  body_too_large: ['the body has more than 64 KiB', 'send fewer items'],
  route_unknown: [
    'no operation has this path',
    'use the URLs of the wallet address and of earlier responses; host: check `baseUrl` and the mount; `reason` names an absent option',
  ],
  method_unknown: [
    'the path has no such method',
    'use one of `Allow`; host: `reason` names an absent option, such as `pricing`',
  ],
  headers_invalid: ['header fields are too many, too long, or repeated', 'send each once'],
  media_type_unsupported: [
    'the body is not `application/json`',
    'send `Content-Type: application/json`',
  ],
  signature_invalid: [
    'the signature is missing, wrong or old, or the key is not published',
    'see [When a signature is refused](mounting.md#when-a-signature-is-refused)',
  ],
  token_missing: ['the request has no `Authorization`', 'send `GNAP` and the token'],
  token_malformed: ['`Authorization` is not one `GNAP` token', 'send `GNAP` and the token'],
  token_unknown: [
    'the token is expired, rotated, revoked, or of another client or kind',
    'rotate it if it has expired; else ask for a new grant',
  ],
  introspection_unavailable: [
    'the resource server got no answer about the token, and did nothing',
    'try again; host: is the authorization server up? see `onError`',
  ],
  resource_server_invalid: [
    'the resource server that asks is not known',
    'host: configure the key of the resource server',
  ],
  client_invalid: [
    'the key set of the client cannot be used, or lacks the key',
    'publish an Ed25519 key in `jwks.json` of the client’s wallet address',
  ],
  client_unavailable: ['the key set of the client did not arrive', 'try again; check `jwks.json`'],
  rate_limited: ['the `rateLimit` of the host refuses it', 'wait for `Retry-After`, then repeat'],
  replayed: [
    'another request had the same nonce',
    'sign with a new nonce; a payment with neither quote nor key only if no request for it was sent before',
  ],
  repeated: [
    'the bytes of a request arrived twice, and its result holds a secret',
    'read what the first did; see [A request that arrives twice](outgoing-payments.md#a-request-that-arrives-twice)',
  ],
  access_insufficient: [
    'the token has no access of this type with this action',
    'ask for a grant that has the action, such as `list`',
  ],
  key_rotation_unsupported: ['the rotation asks for another key', 'rotate without `key`'],
  body_invalid: ['the body is not valid', 'correct what `details` names'],
  query_invalid: ['the query is not valid', 'correct what `details` names'],
  idempotency_key_invalid: ['the `Idempotency-Key` is too long, or not a string', 'send a UUID'],
  subject_unsupported: ['this wallet names no subjects', 'ask without `subject`'],
  request_not_allowed: [
    'the `mayRequest` of the host refuses the client',
    'ask the wallet; host: see `mayRequest`',
  ],
  interaction_required: ['the access needs consent', 'ask with `interact`'],
  interaction_by_key: [
    'a client without a wallet address asks for access that needs consent',
    'send the wallet address as `client`',
  ],
  finish_required: ['the wallet requires a finish method', 'ask with `interact.finish`'],
  too_fast: ['the client polls before `wait` has passed', 'wait for `Retry-After`'],
  poll_with_finish: ['a grant with a finish method is polled', 'continue with `interact_ref`'],
  grant_gone: [
    'the grant has ended: it was revoked, cancelled, or its time was over',
    'ask for a new grant',
  ],
  grant_finalized: ['the grant has ended before', 'nothing: it is cancelled'],
  grant_denied: ['the owner denied', 'tell the user; a new request asks again'],
  interaction_timed_out: ['nobody decided in time', 'ask again'],
  interact_ref_wrong: ['`interact_ref` is of another grant', 'use that of the redirect'],
  interact_ref_used: [
    '`interact_ref` was used',
    'use the token of the first response; if it is lost, ask for a new grant, since a repeat works for 60 s only',
  ],
  already_issued: [
    'the tokens have been issued',
    'use them; if they are lost, ask for a new grant',
  ],
  token_not_managed_here: [
    'the token is not of this `manage` URL, or was rotated long ago',
    'use the newest token and its `manage` URL',
  ],
  token_revoked: ['the token was revoked', 'ask for a new grant'],
  grant_over: [
    'the grant of the token has ended: it was revoked, cancelled, or its time was over',
    'ask for a new grant',
  ],
  identifier_foreign: [
    'the token is for another account',
    'name the `identifier` of the access as `walletAddress`',
  ],
  request_differs: [
    'the quote or key was used for another payment',
    'repeat the same body; take a new key only for another payment: a second key pays a second time',
  ],
  confirmation_declined: ['the owner declined this payment', 'tell the user; do not repeat'],
  confirmation_expired: [
    'the owner did not answer in time, and nothing was paid',
    'pay with a new quote or key: the old one gets this answer again',
  ],
  grant_ended: [
    'the grant ended before the payment was made',
    'ask for a new grant, and pay with a new quote or key: the old one gets this answer again',
  ],
  wallet_address_unknown: [
    'no account has this wallet address',
    'correct it; host: see `walletAddresses.find`',
  ],
  wallet_address_inactive: [
    'the account is closed or not active',
    'tell the user; host: see `walletAddresses.find`',
  ],
  amount_invalid: [
    'an amount is not positive, or in another asset',
    'correct what `details` names',
  ],
  expiry_invalid: ['`expiresAt` is past, or too late', 'send an earlier one, in the future'],
  amount_missing: [
    'neither the quote nor the incoming payment has an amount',
    'send `debitAmount` or `receiveAmount`',
  ],
  amount_too_small: [
    'nothing would arrive',
    'send at least `minSendAmount` of `details`, if it is there',
  ],
  receiver_invalid: [
    'the `price` of the host cannot pay the receiver',
    'check that the incoming payment is open, and its URL; host: see `reason`',
  ],
  quote_unknown: ['this client has no such quote', 'ask for a quote'],
  quote_mismatch: ['the quote is of another account', 'name its `walletAddress`'],
  quote_expired: [
    'the quote has expired, and nothing was paid with it: a paid one returns its payment',
    'ask for a new quote',
  ],
  limits_exceeded: [
    'a limit that the client asked for is spent, or less than the payment',
    'pay at most what `details` says is left, or ask for a new grant',
  ],
  grant_paused: ['the owner has paused the app', 'try again later; the owner can resume it'],
  conditions_exceeded: ['a limit of the owner for the app', 'try later, or pay less'],
  account_limit_exceeded: ['a limit of the owner for all apps', 'try later, or pay less'],
  amount_too_large: ['`mayPay` or `mayReceive` of the host refuses the amount', 'send less'],
  payment_not_allowed: [
    '`mayPay` or `mayReceive` of the host refuses it',
    'do not repeat; host: see `reason`',
  ],
  funds_insufficient: [
    'the account does not cover it, and nothing was paid',
    'tell the user; once it does, pay with a new quote or key: the same one gets this refusal again',
  ],
  confirmation_required: [
    'the owner has to confirm this payment',
    'lead the user to `details.url`, then repeat the request with the same quote or key',
  ],
  resource_unknown: [
    'there is no such payment, quote or wallet address for this client',
    'correct the URL',
  ],
  payment_expired: ['`expiresAt` of the incoming payment has passed', 'create a new one'],
  busy: [
    'the same records change all the time, a first request still runs, or the store or a function of the host is slow',
    'send the same bytes again, or the same quote or key; a payment with neither is not signed again: see [A request that arrives twice](outgoing-payments.md#a-request-that-arrives-twice)',
  ],
  internal: ['a function of the host, or its store, failed', 'as for `busy`; host: see `onError`'],
}
