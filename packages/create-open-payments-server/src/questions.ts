import { answerTo } from 'open-payments-programs'
import { ProblemError } from './choices.js'

/** Asks the user a question, and resolves to the answer. */
export type Ask = (question: string) => Promise<string>

/** Asks on a terminal. */
export function questionsOn(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Ask {
  return async (question) => {
    const answer = await answerTo(question, { input, output })
    if (answer === undefined) throw new ProblemError('cancelled')
    return answer
  }
}

/** Asks for one of several names, by name or number, until the answer is one of them. The first is the default. */
export async function chosen<Name extends string>(
  ask: Ask,
  question: string,
  known: Readonly<Partial<Record<Name, string>>>,
): Promise<Name> {
  const names = Object.keys(known) as Name[]
  const lines = names.map((name, index) => `  ${index + 1}) ${name.padEnd(10)}${known[name]}\n`)
  let asked = `${question}\n${lines.join('')}Name or number [1]: `
  for (;;) {
    const answer = (await ask(asked)).toLowerCase() || '1'
    const found = names.find((name, index) => answer === name || answer === `${index + 1}`)
    if (found !== undefined) return found
    asked = `${answer} is not one of them. Name or number [1]: `
  }
}
