import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

describe('the time-out of a request', () => {
  test('ends it after a garbage collection too, whether the server is silent or sends byte after byte', async () => {
    const script = join(root, 'test/support/unanswered-requests.ts')
    const flags = ['--expose-gc', '--import', 'tsx', script]
    const { stdout } = await run(process.execPath, flags, { cwd: root })
    const { count, ended } = JSON.parse(stdout)
    expect(count).toBe(50)
    expect(ended).toEqual({
      'guarded fetch without a response': count,
      'guarded fetch of an endless body': count,
      'guarded fetch with a signal of its caller': count,
      'webhook without a response': count,
    })
  })

  // `AbortSignal.any` holds its sources weakly: on Node 20, and on 22 before 22.16, a collection removes a time-out.
  test('is never part of AbortSignal.any', () => {
    const folders = ['src', 'adapters', 'examples', 'packages', 'docs']
    const users = folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter(
          (name) => /\.(?:[cm]?[jt]sx?|md)$/.test(name) && !/\b(?:node_modules|dist)\b/.test(name),
        )
        .map((name) => join(folder, name))
        .filter((file) =>
          /AbortSignal\s*\.any\s*\(|\{[^}]*\bany\b[^}]*\}\s*=\s*AbortSignal/.test(
            readFileSync(join(root, file), 'utf8'),
          ),
        ),
    )
    expect(users).toEqual([])
  })
})
