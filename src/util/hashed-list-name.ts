import { sha256 } from './hash.js'

/**
 * Hashes the name of a list, for a store whose keys are shorter than the names of lists: SHA-256 of its JSON, as 64
 * hexadecimal characters. JSON keeps lone surrogates distinct, which UTF-8 does not.
 *
 * @example
 * ```ts
 * import { hashedListName, type RecordKind } from 'open-payments-server/adapter'
 *
 * const listKey = async (kind: RecordKind, list: string) =>
 *   `list/${kind}/${await hashedListName(list)}`
 * ```
 */
export async function hashedListName(list: string): Promise<string> {
  const hash = await sha256(JSON.stringify(list))
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
