import { createInterface } from 'node:readline/promises'

/** Where a question is shown and answered, and what ends the wait for its answer. */
export interface Asking {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
  readonly interrupted?: AbortSignal
  /** Called at Ctrl+C, which a terminal that is read line by line turns into no signal. */
  readonly interrupt?: () => void
}

/**
 * Asks a person on a terminal, and resolves to the answer; to `undefined` if there is none: after an interruption, at
 * the end of the input, such as Ctrl+D, and if the question cannot be shown. readline itself would wait for ever.
 */
export async function answerTo(question: string, asking: Asking): Promise<string | undefined> {
  const { input, output, interrupted, interrupt } = asking
  const lines = createInterface({ input, output })
  const ended = new AbortController()
  const end = () => ended.abort()
  lines.once('close', end)
  lines.once('SIGINT', () => {
    interrupt?.()
    end()
  })
  output.once('error', end)
  interrupted?.addEventListener('abort', end)
  try {
    return (await lines.question(question, { signal: ended.signal })).trim()
  } catch {
    return undefined
  } finally {
    output.removeListener('error', end)
    interrupted?.removeEventListener('abort', end)
    lines.close()
  }
}
