import { readFileSync } from 'node:fs'
import { connect } from 'node:net'

/**
 * Sends requests over keep-alive connections, the next one of each as soon as it has a response, and prints
 * the number of requests per second. It runs in a separate, lean process, because its CPU time is taken from
 * the server.
 */
const [, , port = '', file = '', connections = '', total = ''] = process.argv
const requests = (JSON.parse(readFileSync(file, 'utf8')) as string[]).map((text) =>
  Buffer.from(text, 'latin1'),
)
let sent = 0
let answered = 0
let failed = 0
let refusal = ''
let answerLength = 0
let slowestMs = 0
const start = process.hrtime.bigint()

for (let i = 0; i < Number(connections); i++) {
  let received = 0
  let sentAt = 0
  const socket = connect({
    port: Number(port),
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer: Buffer.alloc(16_384),
      callback(length, buffer) {
        if (received === 0 && buffer[9] !== '2'.charCodeAt(0)) {
          failed += 1
          refusal = Buffer.from(buffer.subarray(0, length)).toString('latin1')
        }
        received += length
        if (answerLength === 0) answerLength = lengthOf(Buffer.from(buffer.subarray(0, length)))
        if (received >= answerLength) {
          received = 0
          answered += 1
          slowestMs = Math.max(slowestMs, performance.now() - sentAt)
          if (answered === Number(total)) finish()
          else next()
        }
        return true
      },
    },
  })
  const next = () => {
    const request = requests[sent % requests.length]
    if (sent < Number(total) && request !== undefined) {
      sentAt = performance.now()
      socket.write(request)
    }
    sent += 1
  }
  socket.on('connect', next)
  socket.on('close', () => {
    throw new Error(`a connection ended after ${answered} responses, ${failed} refused: ${refusal}`)
  })
}

/** Returns the length of the first response; all responses have the same length. */
function lengthOf(answer: Buffer): number {
  const text = answer.toString('latin1')
  const body = /content-length: (\d+)/i.exec(text)
  return text.indexOf('\r\n\r\n') + 4 + Number(body?.[1] ?? 0)
}

function finish(): void {
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  process.stdout.write(
    JSON.stringify({ perSecond: answered / seconds, slowestMs, failed, response: refusal }),
  )
  process.exit(0)
}
