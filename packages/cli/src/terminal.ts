import { spawn } from 'node:child_process'
import { answerTo, standardOutput } from 'open-payments-programs'
import type { Machine } from './wire.js'

/** The terminal in which the program runs. */
export function terminal(): Machine {
  const interruption = new AbortController()
  // A second interruption ends the process at once.
  process.once('SIGINT', () => interruption.abort())
  const { signal } = interruption
  return {
    ...standardOutput,
    env: process.env,
    open: openBrowser,
    ask: process.stdin.isTTY ? (question) => asked(question, signal) : undefined,
    interrupted: signal,
  }
}

async function asked(question: string, interrupted: AbortSignal): Promise<boolean> {
  const { stdin: input, stderr: output } = process
  const interrupt = () => void process.emit('SIGINT')
  const asking = { input, output, interrupted, interrupt }
  return /^y(es)?$/i.test((await answerTo(`${question} [y/N] `, asking)) ?? '')
}

/** Opens a page with `BROWSER`, or with the program of the system. No shell reads the URL. */
function openBrowser(url: string): boolean {
  const { BROWSER } = process.env
  const [command, ...args] = BROWSER
    ? [BROWSER]
    : process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open']
  // In any case, the URL is printed, too.
  try {
    const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
    child.on('error', () => {})
    child.unref()
    return true
  } catch {
    return false
  }
}
