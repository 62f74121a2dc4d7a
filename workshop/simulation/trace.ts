import { createHash } from 'node:crypto'

/** What happened in a life, line by line. Two lives with the same hash are the same, bit by bit. */
export interface Trace {
  note(line: string): void
  hash(): string
}

export function createTrace(print?: (line: string) => void): Trace {
  const hash = createHash('sha256')
  return {
    note(line) {
      hash.update(line).update('\n')
      print?.(line)
    },
    hash: () => hash.copy().digest('hex'),
  }
}
