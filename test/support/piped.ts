import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'

/** A program whose output goes into pipes. */
export interface Piped {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  /** What was read from the pipes so far. */
  readonly printed: { out: string; err: string }
  /** Resolves to the exit code, or to the signal that ended the program. */
  readonly ended: Promise<number | string>
}

/** Starts a program of this repository from its sources. */
export function piped(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Piped {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.err += text
  })
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
  return { child, printed, ended }
}
