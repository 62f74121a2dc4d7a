import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { link, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startOf } from './process-start.js'

/** A directory that belongs to this process until it is released. */
export interface DataDirectory {
  readonly path: string
  release(): Promise<void>
}

export interface DirectoryInUseError extends Error {
  readonly code: 'ERR_DATA_DIR_IN_USE'
}

/** Creates a directory that is removed on release, or else when the process exits. */
export async function temporaryDirectory(): Promise<DataDirectory> {
  const path = await mkdtemp(join(tmpdir(), 'open-payments-wallet-'))
  const remove = () => rmSync(path, { recursive: true, force: true })
  process.once('exit', remove)
  return {
    path,
    async release() {
      process.off('exit', remove)
      remove()
    },
  }
}

/**
 * Takes a directory for this process, and creates it if it does not exist. A lock file in it keeps other
 * processes out until this process releases it or ends in any way.
 *
 * Lock files are numbered and the highest number counts. To take over from a process that has ended, a
 * process creates the next number, which the file system allows only once.
 *
 * @throws {DirectoryInUseError} if another process holds it.
 */
export async function takeDirectory(directory: string): Promise<DataDirectory> {
  const path = resolve(directory)
  await mkdir(path, { recursive: true, mode: 0o700 })
  // Written first and then linked to its name, so that no process reads a partial lock.
  const draft = join(path, `.${randomUUID()}`)
  const us: Holder = { pid: process.pid, start: startOf(process.pid) ?? '', host: hostname() }
  await writeFile(draft, JSON.stringify(us))
  try {
    for (;;) {
      const number = await takeNext(path, draft)
      if (number !== undefined) return { path, release: () => release(path, number, us) }
    }
  } finally {
    await rm(draft, { force: true })
  }
}

/** The content of a lock file. A released lock stays behind, so that numbers are never used again. */
interface Holder {
  readonly pid: number
  readonly start: string
  readonly host: string
  readonly released?: true
}

const lockName = /^wallet\.lock\.(\d+)$/

/** Resolves to `undefined` if another process interfered, so that the caller has to try again. */
async function takeNext(path: string, draft: string): Promise<number | undefined> {
  const newest = Math.max(0, ...(await lockNumbers(path)))
  if (newest > 0) {
    const holder = await holderOf(lockFile(path, newest))
    if (holder === undefined) return undefined
    if (isHeld(holder)) throw inUse(path, lockFile(path, newest), holder)
  }
  const own = newest + 1
  try {
    await link(draft, lockFile(path, own))
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined
    throw error
  }
  const numbers = await lockNumbers(path)
  // A slow process may have created a number that others have already passed.
  const superseded = Math.max(...numbers) > own
  const discarded = superseded ? [own] : numbers.filter((number) => number < own)
  for (const number of discarded) await rm(lockFile(path, number), { force: true })
  return superseded ? undefined : own
}

async function release(path: string, number: number, us: Holder): Promise<void> {
  const draft = join(path, `.${randomUUID()}`)
  await writeFile(draft, JSON.stringify({ ...us, released: true } satisfies Holder))
  await rename(draft, lockFile(path, number))
}

async function lockNumbers(path: string): Promise<number[]> {
  const names = await readdir(path)
  return names.flatMap((name) => lockName.exec(name)?.[1] ?? []).map(Number)
}

async function holderOf(file: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Holder
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** A process id alone proves nothing: another process may have it by now. */
function isHeld({ pid, start, host, released }: Holder): boolean {
  if (released === true) return false
  // Processes of another machine or container are not visible here.
  if (host !== hostname()) return true
  const running = startOf(pid)
  if (running === undefined) return false
  return running === start || running === '' || start === ''
}

function inUse(path: string, file: string, { pid, host }: Holder): DirectoryInUseError {
  const elsewhere =
    host === hostname() ? '' : ` on ${host} (if that process has ended, remove ${file})`
  const error = new Error(
    `${path} is in use by process ${pid}${elsewhere}: stop it, or set DATA_DIR to another directory`,
  )
  return Object.assign(error, { code: 'ERR_DATA_DIR_IN_USE' as const })
}

function lockFile(path: string, number: number): string {
  return join(path, `wallet.lock.${number}`)
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
