import { parseArgs } from 'node:util'

/** The command line is not valid. The message says what is wrong. */
export class UsageError extends Error {}

/** The options of a program, in the form of `parseArgs`. */
export type ProgramOptions = Readonly<
  Record<string, { readonly type: 'string' | 'boolean'; readonly multiple?: true }>
>

/** The options of every program. */
const everywhere = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

/**
 * Returns the options and the other arguments of a command line.
 *
 * @param othersMax how many other arguments there may be.
 * @throws a `UsageError` for anything else.
 */
export function readArguments<const Known extends ProgramOptions>(
  args: readonly string[],
  known: Known,
  othersMax: number,
): Arguments<Known> {
  const options = { ...known, ...everywhere }
  const config = { args: [...args], options, allowPositionals: true } as const
  const { tokens } = parseArgs({ ...config, strict: false, tokens: true })
  for (const token of tokens) if (token.kind === 'option') requireValid(token, options)
  const given = parseArgs(config)
  const surplus = given.positionals.slice(othersMax)
  if (surplus.length > 0) throw new UsageError(`unexpected argument: ${surplus.join(' ')}`)
  return given as Arguments<Known>
}

/** The arguments of a program with these options. */
export type Arguments<Known extends ProgramOptions> = ReturnType<
  typeof parseArgs<{ options: Known & typeof everywhere; allowPositionals: true }>
>

const timeoutMaxS = 600

/** Returns the value of `--timeout` in milliseconds. Throws a `UsageError`. */
export function timeoutOf(text = '10'): number {
  const seconds = Number(text)
  if (seconds > 0 && seconds <= timeoutMaxS) return Math.ceil(seconds * 1_000)
  throw new UsageError(`--timeout must be a number of seconds, at most ${timeoutMaxS}`)
}

interface OptionToken {
  readonly name: string
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

/** Refuses an option in words: those of `parseArgs` do not say which option was meant. */
function requireValid(token: OptionToken, options: ProgramOptions): void {
  const { name, rawName, value, inlineValue = false } = token
  const option = Object.hasOwn(options, name) ? options[name] : undefined
  if (option === undefined) {
    throw unknownWord('option', rawName, [...Object.keys(options).map((each) => `--${each}`), '-h'])
  }
  if (option.type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`)
    return
  }
  // A value that begins with a dash is more likely the next option.
  const isMissing = value === undefined || (!inlineValue && /^-./.test(value))
  if (isMissing) throw new UsageError(`${rawName} needs a value`)
}

/** The error of a word that is none of those known, with the one that was probably meant. */
export function unknownWord(kind: string, word: string, known: readonly string[]): UsageError {
  return new UsageError(`unknown ${kind} ${word}${meantBy(word, known)}`)
}

/** Returns the question for the known word that was probably meant, or nothing. */
export function meantBy(word: string, known: readonly string[]): string {
  const most = Math.max(1, Math.floor(word.replace(/^-+/, '').length / 3))
  const [nearest] = known
    .map((each) => ({ each, distance: distanceOf(word, each) }))
    .filter(({ distance }) => distance <= most)
    .sort((one, other) => one.distance - other.distance)
  return nearest === undefined ? '' : `: did you mean ${nearest.each}?`
}

/** Counts the letters to insert, delete, replace or swap with the next, to get from one word to the other. */
function distanceOf(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0
  for (let row = 1; row <= one.length; row += 1) {
    rows[row] = [row]
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = at(row - 1, column - 1) + (one[row - 1] === other[column - 1] ? 0 : 1)
      const isSwap = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const swapped = row > 1 && column > 1 && isSwap ? at(row - 2, column - 2) + 1 : replaced
      const changed = Math.min(at(row - 1, column), at(row, column - 1)) + 1
      rows[row]?.push(Math.min(replaced, swapped, changed))
    }
  }
  return at(one.length, other.length)
}
