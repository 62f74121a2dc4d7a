import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'

/** A person at a terminal. */
export interface Reader {
  /**
   * Types a command, answers what it asks, and resolves to what it printed when it has ended, or when it serves a
   * page, which it does until `leave`.
   *
   * @throws an error with the output for any exit code but 0.
   */
  type(command: string): Promise<string>
  /** Interrupts what runs. */
  leave(): Promise<void>
}

/** Names the page of what accepts requests. */
const servedPage = /^(?:Open first|Page): +(\S+)/m

/** What a program asks at the end of its output, and the answer. */
const answers = [
  { question: /\[y\/N\] $/, answer: 'y\r' },
  { question: /(?:\[1\]: |\(y\) )$/, answer: '\r' },
] as const

/** Returns the URL of the page that a program serves. */
export function pageIn(printed: string): string {
  const [, url] = servedPage.exec(printed) ?? []
  if (url === undefined) throw new Error(`nothing is served:\n${printed}`)
  return url
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: by these, programs move the cursor
const cursorMoves = /\x1b\[[\d;?]*[A-Za-z]/g

export function readerIn(home: string, env: NodeJS.ProcessEnv): Reader {
  let folder = home
  const running: ChildProcess[] = []

  async function type(command: string): Promise<string> {
    console.log(`$ ${command}`)
    const [, next] = /^cd (\S+)$/.exec(command) ?? []
    if (next !== undefined) {
      folder = resolve(folder, next)
      return ''
    }
    // A terminal, in which programs ask, and which interrupts what it runs when it is closed.
    const args = ['-qefc', command, '/dev/null']
    const child = spawn('script', args, { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    let [printed, unanswered] = ['', '']
    const serving = new Promise<void>((served) => {
      child.stdout.on('data', (chunk: Buffer) => {
        printed += chunk
        unanswered = (unanswered + chunk).replace(cursorMoves, '')
        const found = answers.find(({ question }) => question.test(unanswered))
        if (found !== undefined) {
          unanswered = ''
          child.stdin.write(found.answer)
        }
        if (servedPage.test(printed)) served()
      })
    })
    const code = await Promise.race([ended.then(([code]) => code), serving])
    if (code === undefined) running.push(child)
    else if (code !== 0) throw new Error(`${command}: exit code ${code}\n${printed}`)
    return printed
  }

  return {
    type,
    async leave() {
      for (const child of running.splice(0)) {
        const ended = once(child, 'exit')
        child.stdin?.write('\x03')
        await ended
      }
    },
  }
}
