const utf8Encoder = new TextEncoder()
const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const noDigit = 255
const urlAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const urlDigits = digitsOf(urlAlphabet)
const standardDigits = digitsOf(`${urlAlphabet.slice(0, 62)}+/`)

export function encodeUtf8(text: string): Uint8Array {
  return utf8Encoder.encode(text)
}

/** Returns `undefined` for bytes that are not UTF-8. Keeps a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8Decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Joins parts with `length` bytes in all. Returns the part itself if there is only one. */
export function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [only, ...others] = chunks
  if (only !== undefined && others.length === 0) return only
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}

/** Encodes base64url without padding (RFC 4648 section 5). */
export function toBase64url(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const first = bytes[i] ?? 0
    const second = bytes[i + 1] ?? 0
    const third = bytes[i + 2] ?? 0
    const triple = (first << 16) | (second << 8) | third
    text += urlAlphabet.charAt(triple >> 18) + urlAlphabet.charAt((triple >> 12) & 63)
    if (i + 1 < bytes.length) text += urlAlphabet.charAt((triple >> 6) & 63)
    if (i + 2 < bytes.length) text += urlAlphabet.charAt(triple & 63)
  }
  return text
}

/**
 * Decodes canonical base64url: without padding, and without stray bits in the last character, which would give
 * one key several encodings and thumbprints. Returns `undefined` for other text.
 */
export function fromBase64url(text: string): Uint8Array | undefined {
  return decode(text, urlDigits)
}

/** Decodes standard base64 with padding and without stray bits. Returns `undefined` for other text. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined
  return decode(text.replace(/={1,2}$/, ''), standardDigits)
}

function decode(text: string, digits: Uint8Array): Uint8Array | undefined {
  if (text.length % 4 === 1) return undefined
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4))
  let bits = 0
  let bitCount = 0
  let length = 0
  for (let i = 0; i < text.length; i++) {
    const value = digits[text.charCodeAt(i)] ?? noDigit
    if (value === noDigit) return undefined
    bits = ((bits << 6) | value) & 0xffff
    bitCount += 6
    if (bitCount >= 8) {
      bitCount -= 8
      bytes[length++] = (bits >> bitCount) & 0xff
    }
  }
  const strayBits = bits & ((1 << bitCount) - 1)
  return strayBits === 0 ? bytes : undefined
}

/** Encodes standard base64 with padding (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  const unpadded = toBase64url(bytes).replaceAll('-', '+').replaceAll('_', '/')
  return unpadded.padEnd(Math.ceil(unpadded.length / 4) * 4, '=')
}

/** Compares byte strings in constant time, so that the duration does not reveal how many bytes match. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0)
  return difference === 0
}

function digitsOf(alphabet: string): Uint8Array {
  const digits = new Uint8Array(128).fill(noDigit)
  for (let value = 0; value < alphabet.length; value++) digits[alphabet.charCodeAt(value)] = value
  return digits
}
