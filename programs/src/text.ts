/**
 * Escapes, as in JSON, the characters with which text of a server could control the terminal or change the order of
 * what it shows: C0 without the line feed, C1, line separators and the marks of the Unicode Bidirectional Algorithm.
 * JSON text remains valid, with the same value.
 */
export function escaped(text: string): string {
  const unsafe =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape
    /[\0-\t\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
  return text.replace(unsafe, escapeOf)
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Escapes text that must not begin a line of its own. */
export function onOneLine(text: string): string {
  return escaped(text).replaceAll('\n', '\\n')
}

/** Prints a value on one line, shortened for messages and without invisible characters. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  const visible = text.replace(/[^ -~]/g, escapeOf)
  return visible.length > 160 ? `${visible.slice(0, 157)}…` : visible
}
