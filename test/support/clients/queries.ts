/** As HTML forms escape values (`application/x-www-form-urlencoded`). */
export function formEscaped(value: string): string {
  return new URLSearchParams({ x: value }).toString().slice('x='.length)
}

/** Percent-encodes the UTF-8 bytes of every character that an expression does not match. */
export function percentEncoded(text: string, unreserved: RegExp): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      if (unreserved.test(character)) return character
      return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}
