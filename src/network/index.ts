/**
 * Requests to hosts that strangers choose: which addresses are public, how much a response may contain, how long a
 * request may take, and how many run at once. It knows nothing of payments.
 */

export { type BoundedCache, boundedCache } from './bounded-cache.js'
export { timeout, withDeadline } from './deadline.js'
export { createGate, isGateFull, type Rank } from './gate.js'
export {
  type DocumentFetch,
  type FetchedDocument,
  FetchRefusedError,
  fetchRefusal,
  type GuardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  guardedFetch,
  guardedFetchOptions,
  HostUnreachableError,
  isFetchRefusal,
  isHostUnreachable,
  NoResponseError,
} from './guarded-fetch.js'
export { isPublicAddress, mayBePublic } from './ip-address.js'
export { siteOf } from './site.js'
