import { parseItem } from 'structured-headers'

const lengthMax = 255
const bareKey = /^[\x21-\x7e]+$/

/**
 * Returns the key that a field `Idempotency-Key` names: bare, or as a String of Structured Fields (RFC 9651 section
 * 3.3.3), which is the same key. Returns `undefined` for a field without a key of 1 to 255 ASCII characters.
 */
export function readKey(field: string): string | undefined {
  const key = field.startsWith('"') ? stringIn(field) : field.match(bareKey)?.[0]
  return key !== undefined && key.length >= 1 && key.length <= lengthMax ? key : undefined
}

/** Returns the value of a String without parameters. */
function stringIn(field: string): string | undefined {
  try {
    const [value, parameters] = parseItem(field)
    return typeof value === 'string' && parameters.size === 0 ? value : undefined
  } catch {
    return undefined
  }
}
