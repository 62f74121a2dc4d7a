/** The maximum number of parameters in a query with a covered parameter. */
export const queryParametersMax = 64

/** Returns the value of a query parameter, or `undefined` unless the parameter occurs exactly once. */
export type QueryReader = (name: string) => string | undefined

/**
 * Reads the query parameters of a request target for `@query-param` (RFC 9421 section 2.2.8): names and values are
 * decoded and encoded again. Parses the query once, at the first call. In a query with more than 64 parameters, it
 * finds none.
 */
export function queryReader(target: string): QueryReader {
  let parameters: ReadonlyMap<string, string | undefined> | undefined
  return (name) => {
    const decoded = decodedName(name)
    if (decoded === undefined) return undefined
    parameters ??= parametersOf(target)
    const value = parameters.get(decoded)
    return value === undefined ? undefined : encode(value)
  }
}

/** Returns each parameter by its decoded name; `undefined` if it occurs more than once. */
function parametersOf(target: string): ReadonlyMap<string, string | undefined> {
  const query = target.includes('?') ? target.slice(target.indexOf('?') + 1) : ''
  const parameters = new Map<string, string | undefined>()
  if (query.split('&', queryParametersMax + 1).length > queryParametersMax) return parameters
  for (const [name, value] of new URLSearchParams(query)) {
    parameters.set(name, parameters.has(name) ? undefined : value)
  }
  return parameters
}

/** Decodes a name in its only valid encoding, so that comparing decoded names is enough. */
function decodedName(name: string): string | undefined {
  try {
    const decoded = decodeURIComponent(name)
    return encode(decoded) === name ? decoded : undefined
  } catch {
    return undefined
  }
}

/** The characters of the form-urlencoded set that `encodeURIComponent` leaves unchanged. */
const escapes: Readonly<Record<string, string>> = {
  '!': '%21',
  "'": '%27',
  '(': '%28',
  ')': '%29',
  '~': '%7E',
}

function encode(text: string): string {
  const encoded = encodeURIComponent(text)
  if (!/[!'()~]/.test(encoded)) return encoded
  return Array.from(encoded, (character) => escapes[character] ?? character).join('')
}
