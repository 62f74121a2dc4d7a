import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface DatabaseProxy {
  readonly url: string
  /** Stops all connections without closing them, as a machine that hangs does. New ones are not answered either. */
  freeze(): void
  /** Closes all connections, as a machine that dies does. New ones are refused. */
  cut(): void
  /** Leads new connections to this database. */
  serve(url: string): void
  close(): void
}

/** A proxy in front of the primary of a database, like the one that clients of a cluster connect to. */
export async function databaseProxy(url: string): Promise<DatabaseProxy> {
  let primary = new URL(url)
  let state: 'open' | 'frozen' | 'cut' = 'open'
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket)),
    )
  }
  const server = createServer((client) => {
    keep(client)
    if (state === 'frozen') return
    if (state === 'cut') return void client.destroy()
    const upstream = connect(Number(primary.port), primary.hostname)
    keep(upstream)
    client.pipe(upstream)
    upstream.pipe(client)
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const own = new URL(url)
  own.port = String((server.address() as AddressInfo).port)
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: own.href,
    freeze() {
      state = 'frozen'
      for (const socket of sockets) socket.unpipe().pause()
    },
    cut() {
      state = 'cut'
      destroyAll()
    },
    serve(to) {
      primary = new URL(to)
      state = 'open'
    },
    close() {
      server.close()
      destroyAll()
    },
  }
}
