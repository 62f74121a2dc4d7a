import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Http2Stream } from 'node:http2'
import { bodyBytesMax, collectBody, type HttpRequest, RawBodyError } from '../src/entry-adapter.js'

const empty = new Uint8Array()

/** Properties that a host may have added to a request before the adapter receives it. */
export interface MaybeParsed {
  readonly body?: unknown
  readonly rawBody?: unknown
}

/**
 * Reads the body of a Node.js request: the bytes that a body parser of the host kept, or else the stream, as
 * `collectBody` describes. Resolves to `undefined` if the client closes the connection before the end of the body, so
 * no response is sent.
 *
 * @throws a `RawBodyError` (`ERR_RAW_BODY_UNAVAILABLE`) if a parser consumed the bytes and kept none.
 */
export async function readNodeBody(
  request: IncomingMessage,
  { body, rawBody }: MaybeParsed,
  remedy: string,
): Promise<Uint8Array | undefined> {
  if (rawBody instanceof Uint8Array) return rawBody
  if (body instanceof Uint8Array) return body
  if (!request.readableDidRead && !request.readableEnded) return readStream(request)
  if (request.destroyed && !request.complete) return undefined
  if (hasBody(request)) throw new RawBodyError(remedy)
  return empty
}

/** Returns whether a request announces a body, even an empty one. */
export function hasBody(request: IncomingMessage): boolean {
  const { headers } = request
  if (headers['transfer-encoding'] !== undefined) return true
  const length = headers['content-length']
  if (length !== undefined) return length !== '0'
  // A body of HTTP/2 needs neither header: it begins unless the headers end the stream.
  const { stream } = request as { readonly stream?: Pick<Http2Stream, 'endAfterHeaders'> }
  return stream?.endAfterHeaders === false
}

function readStream(request: IncomingMessage): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    if (request.destroyed) {
      resolve(undefined)
      return
    }
    const { take, end, abandon } = collectBody((body) => {
      if (!request.readableEnded) request.off('data', take).pause()
      resolve(body)
    })
    const gone = () => {
      abandon()
      resolve(undefined)
    }
    request.on('data', take).once('end', end).once('error', gone).once('close', gone)
  })
}

/**
 * Prepares a response to a request whose body was not read to its end: the connection ends with the response, or the
 * stream of HTTP/2, so that the client stops sending.
 */
export function endUnread(
  request: IncomingMessage,
  response: ServerResponse,
  body: Uint8Array,
): void {
  if (body.length <= bodyBytesMax || request.complete) return
  if (request.httpVersionMajor < 2) {
    response.setHeader('connection', 'close')
    return
  }
  const { stream } = request as { readonly stream?: Pick<Http2Stream, 'close'> }
  // RFC 9113 section 8.1: a reset without an error, after the response.
  response.once('finish', () => stream?.close(0))
}

export function nodeRequest(request: IncomingMessage, url: string, body: Uint8Array): HttpRequest {
  const { method = '', rawHeaders, headers } = request
  // On platforms such as AWS Lambda, a request may have only headers whose lines were joined.
  return rawHeaders.length === 0
    ? { method, url, headers: linesOf(headers), headersMerged: true, body }
    : { method, url, headers: headerLines(request), body }
}

/** Returns the header lines as received, one entry each. */
export function headerLines({ rawHeaders }: IncomingMessage): [string, string][] {
  const lines: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    lines.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  }
  return lines
}

/** A platform may add values that are not text, such as a length. */
function linesOf(headers: IncomingHttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().map((line): [string, string] => [name, `${line}`]),
  )
}
