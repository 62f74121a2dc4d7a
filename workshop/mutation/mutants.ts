/** A position in a file. Lines and columns count from 1. */
interface Position {
  readonly line: number
  readonly column: number
}

/** The part of Stryker's report that is read here. */
export interface Report {
  readonly files: Readonly<
    Record<
      string,
      {
        readonly source: string
        readonly mutants: readonly {
          readonly status: string
          readonly replacement?: string
          readonly location: { readonly start: Position; readonly end: Position }
        }[]
      }
    >
  >
}

/** A changed expression: its lines before and after the change, each as one line. */
interface Change {
  readonly file: string
  readonly at: string
  readonly becomes: string
}

export interface Mutant extends Change {
  readonly line: number
  readonly status: string
}

/** A surviving mutant with the reason why no test has to kill it. */
export interface Listed extends Change {
  readonly reason: string
}

const collapsed = (text: string) => text.replace(/\s+/g, ' ').trim()

/** Returns the mutants of a report. */
export function mutantsOf({ files }: Report): readonly Mutant[] {
  return Object.entries(files).flatMap(([file, { source, mutants }]) => {
    const lines = source.split('\n')
    return mutants.map(({ status, replacement = '', location: { start, end } }) => {
      const own = lines.slice(start.line - 1, end.line)
      const before = own[0]?.slice(0, start.column - 1) ?? ''
      const after = own.at(-1)?.slice(end.column - 1) ?? ''
      const becomes = collapsed(`${before}${replacement}${after}`)
      return { file, line: start.line, status, at: collapsed(own.join(' ')), becomes }
    })
  })
}

/**
 * Reads the list of survivors: under the heading of a file, paragraphs with a reason, each followed by a block `diff`
 * whose lines `-` show the source and whose lines `+` show mutants of it.
 */
export function readSurvivors(markdown: string): readonly Listed[] {
  const listed: Listed[] = []
  let [file, reason, at] = ['', '', '']
  let isIn: 'text' | 'diff' = 'text'
  for (const line of markdown.split('\n')) {
    const rest = line.slice(2)
    if (line.startsWith('```')) {
      isIn = line === '```diff' ? 'diff' : 'text'
      if (isIn === 'text') reason = ''
    } else if (isIn === 'text') {
      if (line.startsWith('## ')) [file, reason] = [line.slice(3), '']
      else reason = collapsed(`${reason} ${line}`)
    } else if (line.startsWith('- ')) at = collapsed(rest)
    else if (line.startsWith('+ ')) listed.push({ file, at, becomes: collapsed(rest), reason })
  }
  return listed
}
