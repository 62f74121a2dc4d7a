import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../examples/wallet/free-port.js'

/** A PostgreSQL server that belongs to the tests alone, so that they can restart it. */
export interface Cluster {
  readonly url: string
  /** The input of `restartCluster`, which may run in another process. */
  readonly control: ClusterControl
  stop(): Promise<void>
}

export interface ClusterControl {
  readonly bin: string
  readonly directory: string
  readonly user: SystemUser | undefined
}

/** The user that runs the server: PostgreSQL refuses to run as root. */
interface SystemUser {
  readonly uid: number
  readonly gid: number
}

/** Starts a server in its own directory, or returns `undefined` if PostgreSQL is not installed. */
export async function startCluster(): Promise<Cluster | undefined> {
  const bin = findBinaries()
  const user = process.getuid?.() === 0 ? postgresUser() : undefined
  if (bin === undefined || (process.getuid?.() === 0 && user === undefined)) return undefined
  const home = mkdtempSync(join(tmpdir(), 'faults-postgres-'))
  if (user !== undefined) chownSync(home, user.uid, user.gid)
  const directory = join(home, 'data')
  const control = { bin, directory, user }
  const port = await freePort()
  await run(control, 'initdb', ['-D', directory, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'])
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${home}`
  const log = join(home, 'log')
  const keeper = keep(control)
  await run(control, 'pg_ctl', ['-D', directory, '-l', log, '-o', options, '-w', 'start'])
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    control,
    async stop() {
      const exited = once(keeper, 'exit')
      keeper.stdin.end()
      await exited
    },
  }
}

/** Starts a process that outlives this one until the server is removed. */
function keep(control: ClusterControl) {
  const script = fileURLToPath(new URL('keeper.ts', import.meta.url))
  return spawn(process.execPath, ['--import', 'tsx', script, JSON.stringify(control)], {
    stdio: ['pipe', 'inherit', 'inherit'],
    detached: true,
  })
}

/** Stops the server and removes all its files. */
export async function removeCluster(control: ClusterControl): Promise<void> {
  await run(control, 'pg_ctl', ['-D', control.directory, '-m', 'immediate', '-w', 'stop'])
  rmSync(join(control.directory, '..'), { recursive: true, force: true })
}

/** `fast` ends the sessions and shuts down; `immediate` is a crash, after which the server recovers. */
export function restartCluster(
  control: ClusterControl,
  mode: 'fast' | 'immediate',
): Promise<unknown> {
  const log = join(control.directory, '..', 'log')
  return run(control, 'pg_ctl', ['-D', control.directory, '-l', log, '-m', mode, '-w', 'restart'])
}

function findBinaries(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => +b - +a) : []
  const folders = [
    process.env['FAULT_POSTGRES_BIN'] ?? '',
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ]
  return folders.find((folder) =>
    ['initdb', 'pg_ctl'].every((name) => folder !== '' && existsSync(join(folder, name))),
  )
}

function postgresUser(): SystemUser | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('postgres:'))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: +uid, gid: +gid }
}

/** The server that stays behind must not inherit our output, or this process would wait for it to close. */
function run(
  { bin, user }: Pick<ClusterControl, 'bin' | 'user'>,
  program: string,
  parameters: readonly string[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(join(bin, program), parameters, { cwd: '/', ...user })
    let output = ''
    child.stdout?.on('data', (text) => (output += text))
    child.stderr?.on('data', (text) => (output += text))
    child.on('error', reject)
    child.on('exit', (code) => {
      child.stdout?.destroy()
      child.stderr?.destroy()
      if (code === 0) resolve()
      else reject(new Error(`${program} ended with ${code}: ${output}`))
    })
  })
}
