import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type DataDirectory,
  takeDirectory,
  temporaryDirectory,
} from '../../examples/wallet/data-directory.js'
import { startOf } from '../../examples/wallet/process-start.js'

const hooks = vi.hoisted(() => ({ beforeLink: [] as (() => Promise<void>)[] }))

vi.mock('node:fs/promises', async (original) => {
  const files = await original<typeof import('node:fs/promises')>()
  const link: typeof files.link = async (...paths) => {
    await hooks.beforeLink.shift()?.()
    return files.link(...paths)
  }
  return { ...files, link }
})

let path: string
beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'data-directory-test-'))
})
afterEach(() => rm(path, { recursive: true, force: true }))

const own = { pid: process.pid, start: startOf(process.pid), host: hostname() }
const gone = () => ({ ...own, pid: spawnSync(process.execPath, ['--version']).pid })

function leaveLock(holder: object, number = 1): Promise<void> {
  return writeFile(join(path, `wallet.lock.${number}`), JSON.stringify(holder))
}

const inUse = expect.objectContaining({ code: 'ERR_DATA_DIR_IN_USE' })

describe('a data directory', () => {
  test('is created if it does not exist, and is readable only by its owner', async () => {
    const taken = await takeDirectory(join(path, 'new', 'wallet'))
    expect(taken.path).toBe(join(path, 'new', 'wallet'))
    expect((await stat(taken.path)).mode & 0o077).toBe(0)
    await taken.release()
  })

  test('is refused while another process holds it, and the error names that process', async () => {
    const taken = await takeDirectory(path)
    const again = takeDirectory(path)
    await expect(again).rejects.toMatchObject({ code: 'ERR_DATA_DIR_IN_USE' })
    await expect(again).rejects.toThrow(`${path} is in use by process ${process.pid}: `)
    await taken.release()
    await (await takeDirectory(path)).release()
  })

  test('is taken over from a process that has ended', async () => {
    await leaveLock(gone())
    await (await takeDirectory(path)).release()
  })

  test('is taken over if another process has the id of the one that has ended', async () => {
    await leaveLock({ ...own, start: `${own.start} earlier` })
    await (await takeDirectory(path)).release()
  })

  test('is not taken over from a running process whose start is unknown', async () => {
    await leaveLock({ ...own, start: '' })
    await expect(takeDirectory(path)).rejects.toThrow('in use')
  })

  test('is not taken over from a process of another machine', async () => {
    await leaveLock({ ...gone(), host: 'elsewhere' })
    const file = join(path, 'wallet.lock.1')
    await expect(takeDirectory(path)).rejects.toThrow(
      `on elsewhere (if that process has ended, remove ${file})`,
    )
  })

  test.each([1, 7])(
    'with a stale lock number %i goes to one of eight processes',
    async (number) => {
      for (let round = 1; round <= 20; round++) {
        await rm(path, { recursive: true })
        await (await takeDirectory(path)).release()
        await rm(join(path, 'wallet.lock.1'))
        await leaveLock({ ...own, start: 'long ago' }, number)
        const attempts = Array.from({ length: 8 }, () => takeDirectory(path))
        const outcomes = await Promise.allSettled(attempts)
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      }
    },
  )

  test('is refused to a slow process after others have taken and released it', async () => {
    await leaveLock(gone())
    let holder: DataDirectory | undefined
    hooks.beforeLink.push(async () => {
      await (await takeDirectory(path)).release()
      holder = await takeDirectory(path)
    })
    await expect(takeDirectory(path)).rejects.toThrow('in use')
    expect(await readdir(path)).toEqual(['wallet.lock.3'])
    await expect(takeDirectory(path)).rejects.toThrow('in use')
    await holder?.release()
  })

  test('never has two holders while many processes take and release it', async () => {
    let holders = 0
    let turns = 0
    async function comeAndGo(): Promise<void> {
      while (turns < 150) {
        let taken: DataDirectory
        try {
          taken = await takeDirectory(path)
        } catch (error) {
          expect(error).toEqual(inUse)
          continue
        }
        expect(++holders).toBe(1)
        turns += 1
        await readdir(path)
        holders -= 1
        await taken.release()
      }
    }
    await Promise.all(Array.from({ length: 6 }, comeAndGo))
    expect(turns).toBeGreaterThanOrEqual(150)
  })
})

test('a temporary directory is unique and removed when it is released', async () => {
  const [one, two] = [await temporaryDirectory(), await temporaryDirectory()]
  expect(one.path).not.toBe(two.path)
  await writeFile(join(one.path, 'file'), 'text')
  await one.release()
  await expect(readdir(one.path)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await readdir(two.path)).toEqual([])
  await two.release()
})

describe('the start of a process', () => {
  test('is constant, and differs from that of another process', () => {
    expect(startOf(process.pid)).toBe(startOf(process.pid))
    expect(startOf(process.pid)).not.toBe('')
    expect(startOf(process.pid)).not.toBe(startOf(1))
  })

  test('is unknown for a process that has ended', () => {
    expect(startOf(gone().pid)).toBeUndefined()
  })
})
