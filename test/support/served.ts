import { postgresStore } from '../../adapters/postgres.js'
import { type Handler, memoryStore, type Store } from '../../src/index.js'
import { anyPostgres } from './databases.js'
import { hosts, listening, stopped } from './hosts.js'
import { exchange, requestBytes } from './raw-http.js'

/** Creates stores, and servers behind real ports, until `close` stops and removes them. */
export function servedDeployments() {
  const closing: (() => Promise<unknown>)[] = []

  const stores: Readonly<Record<string, () => Promise<Store>>> = {
    memory: async () => memoryStore(),
    async PostgreSQL() {
      const { client, options, close } = await anyPostgres()
      closing.push(close)
      return postgresStore(client, options)
    },
  }

  /** Starts a server with a handler. Returns a function that sends it a request. */
  async function served(adapter: string, handler: Handler): Promise<Handler> {
    const host = hosts.find(({ name }) => name === adapter)
    if (host === undefined) throw new Error(`no adapter ${adapter}`)
    const server = await host.create(handler)
    const port = await listening(server)
    closing.push(() => stopped(server))
    return async ({ method, url, headers, body }) => {
      const own = [
        ['Host', 'wallet.example'],
        ['Connection', 'close'],
      ] as const
      const others = headers.filter(([name]) => name.toLowerCase() !== 'host')
      const content = body as Uint8Array | undefined
      const response = await exchange(
        port,
        requestBytes(method, url, [...own, ...others], content ?? new Uint8Array()),
      )
      const text = response.body.toString()
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        ...(text !== '' && { body: text }),
      }
    }
  }

  async function close(): Promise<void> {
    for (const each of closing.toReversed()) await each()
  }

  return { stores, served, close }
}
