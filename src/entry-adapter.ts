/**
 * For authors of adapters: the records and bounds of a store, the request and response of a handler, how to read a body
 * unchanged, and how to refuse unknown options.
 *
 * @module open-payments-server/adapter
 */

export type { ListEntry, Stored } from './core/stored.js'
export {
  type FetchRequest,
  RawBodyError,
  readFetchBody,
  requestFromFetch,
  responseForFetch,
} from './http/fetch.js'
export {
  bodyBytesMax,
  type Handler,
  type HttpRequest,
  type HttpResponse,
  type MountOptions,
  passesOn,
  requireHandler,
} from './http/message.js'
export { type BodyCollector, collectBody, type FetchBody } from './http/request-body.js'
export {
  type Commit,
  type ListQuery,
  type RecordChange,
  type RecordKey,
  type RecordKind,
  type RecordPage,
  type Store,
  storeBounds,
  type VersionGuard,
} from './ports/store.js'
export { hashedListName } from './util/hashed-list-name.js'
export { requireKnownOptions } from './util/invalid-input.js'
