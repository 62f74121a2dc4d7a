/**
 * For authors of framework adapters: the request and response of a handler, and how to read a body unchanged.
 *
 * @module
 */

export {
  RawBodyError,
  readFetchBody,
  requestFromFetch,
  responseForFetch,
} from './http/fetch.js'
export { bodyBytesMax, type Handler, type HttpRequest, type HttpResponse } from './http/message.js'
