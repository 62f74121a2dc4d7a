/** Hashes a list name of any length to 64 characters. JSON keeps lone surrogates distinct. */
export async function hashedListName(list: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(list)))
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
