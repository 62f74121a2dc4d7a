import { connect } from 'node:net'

/** A response as received. */
export interface RawResponse {
  /** Version, status and reason. */
  readonly statusLine: string
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The body without its transfer coding. */
  readonly body: Buffer
}

/**
 * Builds a request in bytes, with header lines in the given order and case, so that nothing normalizes them.
 */
export function requestBytes(
  method: string,
  target: string,
  headers: readonly (readonly [name: string, value: string])[],
  body: Uint8Array = new Uint8Array(),
): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`, 'latin1'),
    body,
  ])
}

/** Encodes a body in the chunked transfer coding, with chunks of this size. */
export function chunkedBytes(body: Uint8Array, size: number): Buffer {
  const parts: Uint8Array[] = []
  for (let start = 0; start < body.length; start += size) {
    const piece = body.subarray(start, start + size)
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

/** The server closed the connection without a whole response. */
export class NoResponse extends Error {}

/**
 * Writes bytes to a server on this machine and reads its response until the server closes the connection.
 * Ignores write errors: a server may respond and close before it has read everything.
 */
export function exchange(port: number, bytes: Uint8Array): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = []
    const socket = connect(port, 'localhost', () => socket.write(bytes))
    socket.on('data', (chunk) => received.push(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      try {
        resolve(parseResponse(Buffer.concat(received)))
      } catch (error) {
        reject(error)
      }
    })
  })
}

export function headerValues(response: RawResponse, name: string): string[] {
  return response.headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)
}

function parseResponse(bytes: Buffer): RawResponse {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1)
    throw new NoResponse(`no response, but ${bytes.length} bytes: ${bytes.toString()}`)
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const rest = bytes.subarray(end + 4)
  if (status < 200) return parseResponse(rest)
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  const response = { statusLine, status, headers, body: rest }
  const chunked = headerValues(response, 'transfer-encoding').includes('chunked')
  return chunked ? { ...response, body: dechunked(rest) } : response
}

function dechunked(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const end = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.subarray(at, end).toString('latin1'), 16)
    if (!(size > 0)) return Buffer.concat(parts)
    parts.push(bytes.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}
