import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { Answer } from '../../test/support/world.js'
import { lostStatus, type Wallet } from './wallet.js'

export interface ServerProcess {
  readonly wallet: Wallet
  /** Starts or restarts the process; resolves when it serves requests. */
  start(): Promise<void>
  /** Kills the process without notice. */
  kill(): Promise<void>
  /** Stops the process in good order; rejects if it had already ended by itself. */
  stop(): Promise<void>
  runs(): boolean
  /** The error output of a process that ended by itself; otherwise `undefined`. */
  death(): string | undefined
}

const answerWithinMs = 120_000

/** Runs the wallet of `server.ts` in its own process, and connects to it. */
export function serverProcess(parameters: readonly string[]): ServerProcess {
  const script = fileURLToPath(new URL('server.ts', import.meta.url))
  let child: ChildProcessWithoutNullStreams | undefined
  let port = 0
  let errors = ''
  let death: string | undefined
  let agent = new Agent({ keepAlive: true })

  async function start(): Promise<void> {
    const started = spawn(process.execPath, ['--import', 'tsx', script, ...parameters])
    child = started
    agent = new Agent({ keepAlive: true })
    started.stderr.on('data', (text) => (errors += text))
    started.on('exit', (code, signal) => {
      if (child === started) death = `ended with ${code ?? signal}: ${errors}`
    })
    port = await new Promise<number>((resolve, reject) => {
      started.stdout.on('data', (text) => resolve(Number(/listening (\d+)/.exec(text)?.[1])))
      started.on('exit', () => reject(new Error(`the server did not start: ${errors}`)))
    })
  }

  async function end(how: (running: ChildProcessWithoutNullStreams) => void): Promise<void> {
    const running = child
    if (running === undefined || death !== undefined)
      throw new Error(death ?? 'the server was not started')
    child = undefined
    const exited = once(running, 'exit')
    how(running)
    const tooLate = setTimeout(() => running.kill('SIGKILL'), answerWithinMs)
    await exited
    clearTimeout(tooLate)
    agent.destroy()
  }

  function send(
    method: string,
    path: string,
    headers: readonly (readonly [string, string])[],
    body: Uint8Array,
  ): Promise<Answer> {
    return new Promise((resolve) => {
      const lost = () => resolve({ status: lostStatus, headers: {}, body: undefined })
      const outgoing = httpRequest(
        { host: '127.0.0.1', port, method, path, agent, timeout: answerWithinMs },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk) => chunks.push(chunk))
          response.on('error', lost)
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString()
            const status = response.statusCode ?? lostStatus
            resolve({ status, headers: {}, body: text === '' ? undefined : JSON.parse(text) })
          })
        },
      )
      for (const [name, value] of headers) outgoing.setHeader(name, value)
      outgoing.on('error', lost)
      outgoing.on('timeout', () => outgoing.destroy(new Error('no response in time')))
      outgoing.end(body)
    })
  }

  const host = (call: string, input: unknown) =>
    send('POST', `/host/${call}`, [], Buffer.from(JSON.stringify(input)))

  return {
    start,
    kill: () => end((running) => running.kill('SIGKILL')),
    stop: () => end((running) => running.stdin.end()),
    runs: () => child !== undefined && death === undefined,
    death: () => death,
    wallet: {
      send: ({ method, url, headers, body }) => send(method, url, headers, body),
      approve: (id) => host('approve', id),
      receive: (paymentId, funds) => host('receive', { paymentId, funds }),
      introspect: (tokens) => host('introspect', tokens),
    },
  }
}
