import { connect } from 'node:net'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import type { Handler } from '../../../src/index.js'
import { type Host, listening, stopped } from '../hosts.js'
import { chunkedBytes, requestBytes } from '../raw-http.js'
import type { Dice } from './dice.js'
import { mutatedBytes } from './mutations.js'
import type { Transport } from './run.js'

/** Serves a handler by a framework, and sends inputs as bytes, half of which are changed once more. */
export async function overSockets(host: Host, handle: Handler) {
  let open = 0
  let called = 0
  const counted: Handler = async (request) => {
    open += 1
    called += 1
    try {
      return await handle(request)
    } finally {
      open -= 1
    }
  }
  const server = await host.create(counted)
  const port = await listening(server)
  const transport: Transport = async (request, dice) => {
    called = 0
    const { status, text } = await answerTo(port, wireOf(request, dice))
    // A server may respond before the handler does; the next input must not be served meanwhile.
    while (open > 0) await new Promise((resolve) => setImmediate(resolve))
    const problem = wireProblem(status, text, called > 0)
    return { status, problem }
  }
  return { transport, close: () => stopped(server) }
}

function wireProblem(status: number, text: string, called: boolean): string | undefined {
  if (called && text === '') return 'a request that was served, and no response'
  if (/\bat .*\.[jt]s:\d+|node_modules/.test(text)) return 'a stack trace'
  return text !== '' && !(status >= 100) ? 'a response that is not HTTP' : undefined
}

type Line = readonly [name: string, value: string]

function wireOf({ method, url, headers, body }: HttpRequest, dice: Dice): Buffer {
  const chunked = dice.chance(10)
  const length: Line = chunked
    ? ['Transfer-Encoding', 'chunked']
    : ['Content-Length', `${body.length}`]
  const others = headers.filter(([name]) => name.toLowerCase() !== 'content-length')
  const content = body.length > 0 ? [length] : []
  const all: Line[] = [['Host', 'wallet.example'], ...others, ...content, ['Connection', 'close']]
  const bytes = requestBytes(method, url, all, chunked ? chunkedBytes(body, 100) : body)
  return dice.chance(50) ? mutatedBytes(bytes, dice) : bytes
}

/** Writes bytes, and reads until the server closes the connection. The status is 0 without a response. */
function answerTo(port: number, bytes: Buffer): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const received: Buffer[] = []
    // The end of the bytes is the end of the request, also if it promises more.
    const socket = connect(port, 'localhost', () => socket.end(bytes))
    socket.on('data', (chunk) => received.push(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      const text = Buffer.concat(received).toString('latin1')
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text })
    })
  })
}
