import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What a server process has used since its start. */
export interface Sample {
  readonly heapUsed: number
  readonly rss: number
  readonly external: number
  readonly cpuMs: number
  readonly errors: number
  readonly statements: number
}

/** Starts a process with the servers of a wallet. */
export async function startServer(connectionString: string, schema: string) {
  const path = fileURLToPath(new URL('server.ts', import.meta.url))
  const server = fork(path, [connectionString, schema], {
    execArgv: ['--import', 'tsx', '--expose-gc'],
  })
  const [{ port }] = (await once(server, 'message')) as [{ port: number }]
  return { server, port }
}

export async function sampleOf(server: ChildProcess): Promise<Sample> {
  server.send('memory')
  const [sample] = await once(server, 'message')
  return sample as Sample
}
