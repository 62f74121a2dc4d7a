import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from 'open-payments-programs'

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
  const control = newControl(bin, user)
  const { directory } = control
  await run(control, 'initdb', ['-D', directory, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'])
  return startIn(control)
}

/** Copies the data of a server that runs. Started, the copy follows that server, which knows it by this name. */
export async function copyCluster(primary: Cluster, name: string): Promise<ClusterControl> {
  const { bin, user } = primary.control
  const control = newControl(bin, user)
  const source = new URL(primary.url)
  source.searchParams.set('application_name', name)
  const copied = ['-d', source.href, '-D', control.directory, '-R', '-X', 'stream', '-c', 'fast']
  await run(control, 'pg_basebackup', copied)
  return control
}

/** Makes a standby the primary. */
export function promote({ control }: Cluster): Promise<void> {
  return run(control, 'pg_ctl', ['-D', control.directory, '-w', 'promote'])
}

/** Kills all processes of a server without notice, as the failure of its machine does. */
export function killCluster({ control: { directory } }: Cluster): void {
  const [first = ''] = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
  const parent = Number(first)
  const children = readdirSync('/proc').filter(
    (pid) => /^\d+$/.test(pid) && parentOf(pid) === parent,
  )
  for (const pid of [parent, ...children.map(Number)]) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself, because its parent is gone.
    }
  }
}

function parentOf(pid: string): number | undefined {
  try {
    // The name of the program, in parentheses, may contain spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')
    return Number(fields?.[1])
  } catch {
    return undefined
  }
}

function newControl(bin: string, user: SystemUser | undefined): ClusterControl {
  const home = mkdtempSync(join(tmpdir(), 'faults-postgres-'))
  if (user !== undefined) chownSync(home, user.uid, user.gid)
  return { bin, directory: join(home, 'data'), user }
}

/** Starts a server over its directory, on a port of its own. */
export async function startIn(control: ClusterControl): Promise<Cluster> {
  const { directory } = control
  const port = await freePort()
  const home = join(directory, '..')
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${home}`
  const keeper = keep(control)
  await run(control, 'pg_ctl', [
    '-D',
    directory,
    '-l',
    logOf(control),
    '-o',
    options,
    '-w',
    'start',
  ])
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

function logOf({ directory }: ClusterControl): string {
  return join(directory, '..', 'log')
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
  const stopped = run(control, 'pg_ctl', ['-D', control.directory, '-m', 'immediate', '-w', 'stop'])
  // A server that a test has killed cannot stop.
  await stopped.catch(() => undefined)
  rmSync(join(control.directory, '..'), { recursive: true, force: true })
}

/** `fast` ends the sessions and shuts down; `immediate` is a crash, after which the server recovers. */
export function restartCluster(
  control: ClusterControl,
  mode: 'fast' | 'immediate',
): Promise<unknown> {
  const { directory } = control
  return run(control, 'pg_ctl', [
    '-D',
    directory,
    '-l',
    logOf(control),
    '-m',
    mode,
    '-w',
    'restart',
  ])
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
    ['initdb', 'pg_ctl', 'pg_basebackup'].every(
      (name) => folder !== '' && existsSync(join(folder, name)),
    ),
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
