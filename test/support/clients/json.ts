/** What differs between JSON encoders. */
export interface JsonForm {
  /** Escapes more than JSON requires, in a string that is already quoted. */
  readonly text?: (quoted: string) => string
  readonly number?: (value: number) => string
  /** Whether members are sorted by name. Default: the original order. */
  readonly sorted?: boolean
  /** What a member without a value becomes. Default: it is omitted. */
  readonly absent?: 'null'
}

/** An encoder that writes JSON without white space. */
export function jsonWriter(form: JsonForm = {}): (value: unknown) => string {
  const { text = (quoted) => quoted, number = String, sorted = false } = form

  function write(value: unknown): string {
    if (value === undefined) return 'null'
    if (typeof value === 'string') return text(JSON.stringify(value))
    if (typeof value === 'number') return number(value)
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
    const entries = Object.entries(value).filter(
      ([, member]) => member !== undefined || form.absent === 'null',
    )
    const ordered = sorted ? entries.toSorted(([a], [b]) => (a < b ? -1 : 1)) : entries
    return `{${ordered.map(([name, member]) => `${write(name)}:${write(member)}`).join(',')}}`
  }
  return write
}

/** Writes the characters that an expression matches as `\u` and four hexadecimal digits. */
export function escaping(characters: RegExp): (quoted: string) => string {
  return (quoted) =>
    quoted.replace(characters, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
