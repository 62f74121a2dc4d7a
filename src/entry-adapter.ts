/**
 * For authors of adapters: the request and response of a handler, how to read a body unchanged, and how to
 * refuse unknown options.
 *
 * @module open-payments-server/adapter
 */

export {
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
  requireHandler,
} from './http/message.js'
export { requireKnownOptions } from './util/known-options.js'
