import type { Instant } from '../core/instant.js'
import type { Random } from '../ports/host.js'
import { toBase64url } from '../util/bytes.js'
import { hashText, hmacSha256 } from '../util/hash.js'

/**
 * The prefix that states the class of a token. An access token never continues a grant, and a resource server never
 * accepts a continuation token.
 */
export type CredentialClass = 'opa_' | 'opc_'

export const accessTokenClass: CredentialClass = 'opa_'
export const continuationTokenClass: CredentialClass = 'opc_'

/** The parts of a token `<class><grant id>.<secret>`. */
export interface Credential {
  readonly grantId: string
  readonly secret: string
}

const secretBytes = 32
/** Enough that no two values are equal. */
const uniqueBytes = 16
/** The length of the namespaces with which ids begin. */
const namespaceLength = 8

const grantIdPattern = '[A-Za-z0-9_-]{1,100}'
const randomPattern = '[A-Za-z0-9_-]{22}'
const secretPattern = '[A-Za-z0-9_-]{43}'
const credential = new RegExp(`^op[ac]_${grantIdPattern}\\.${secretPattern}$`)
const path = new RegExp(`^${grantIdPattern}\\.${randomPattern}$`)
const idPattern = new RegExp(`^${grantIdPattern}$`)

/**
 * Reads random bytes in batches, because each call has a fixed cost of more than a microsecond. Each byte is used once.
 */
export function pooled(random: Random): Random {
  const pool = new Uint8Array(1_024)
  let used = pool.length
  return {
    getRandomValues(array) {
      if (array.length > pool.length) return random.getRandomValues(array)
      if (used + array.length > pool.length) {
        random.getRandomValues(pool)
        used = 0
      }
      array.set(pool.subarray(used, used + array.length))
      pool.fill(0, used, used + array.length)
      used += array.length
      return array
    },
  }
}

/** Creates a secret of 256 random bits in base64url. The store contains only its SHA-256. */
export function newSecret(random: Random): string {
  return randomText(random, secretBytes)
}

/**
 * Creates 128 random bits in base64url, unguessable but not secret: the random part of a path, the id by which a
 * command recognizes its own commit, or a nonce.
 */
export function newUniqueText(random: Random): string {
  return randomText(random, uniqueBytes)
}

function randomText(random: Random, bytes: number): string {
  return toBase64url(random.getRandomValues(new Uint8Array(bytes)))
}

/**
 * Creates the id of a grant: the namespace of the server, the second of its creation, and 128 random bits. The ids of
 * one server ascend with time, so that a store adds them at the end of its indexes, where pages are already in memory.
 */
export function newId(namespace: string, now: Instant, random: Random): string {
  return namespace + timeText(now) + newUniqueText(random)
}

/** Base64url in the order of its bytes. */
const ascending = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
/** Enough for 2,177 years. */
const timeLength = 6

/** Formats the second of an instant so that later texts are greater, byte by byte. */
function timeText(at: Instant): string {
  let seconds = Math.max(0, Math.floor(at / 1_000))
  let text = ''
  for (let i = 0; i < timeLength; i++) {
    text = ascending.charAt(seconds % ascending.length) + text
    seconds = Math.floor(seconds / ascending.length)
  }
  return text
}

/** Whether an id has the form of ids from a server with this namespace. */
export function isIdOf(namespace: string, id: string): boolean {
  return id.startsWith(namespace) && idPattern.test(id)
}

/** Returns the first 8 characters of the SHA-256 of a server's URL, which separate servers that share a store. */
export async function namespaceOf(serverUrl: string): Promise<string> {
  return (await hashText(serverUrl)).slice(0, namespaceLength)
}

export function namespaceAt(serverUrl: string): () => Promise<string> {
  let namespace: Promise<string> | undefined
  return () => (namespace ??= namespaceOf(serverUrl))
}

export function formatCredential(kind: CredentialClass, { grantId, secret }: Credential): string {
  return `${kind}${grantId}.${secret}`
}

export function parseCredential(kind: CredentialClass, text: string): Credential | undefined {
  if (!text.startsWith(kind) || !credential.test(text)) return undefined
  const [grantId, secret] = aroundDot(text.slice(kind.length))
  return { grantId, secret }
}

/** Formats the last segment of a `continue`, `token` or interaction path: the grant id and a random part. */
export function formatPath(grantId: string, own: string): string {
  return `${grantId}.${own}`
}

export function parsePath(segment: string): { grantId: string; own: string } | undefined {
  if (!path.test(segment)) return undefined
  const [grantId, own] = aroundDot(segment)
  return { grantId, own }
}

/** Splits a matched text. Grant ids, secrets and random parts contain no dot. */
function aroundDot(text: string): readonly [string, string] {
  const dot = text.indexOf('.')
  return [text.slice(0, dot), text.slice(dot + 1)]
}

/**
 * Derives the next secret from the presented secret and a stored salt. A client that lost the response and presents the
 * same secret again gets the same next token, although the store contains no token. With a label, the secret belongs to
 * one of several tokens.
 */
export async function deriveSecret(
  presented: string,
  salt: string,
  label?: string,
): Promise<string> {
  const message = label === undefined ? salt : `${salt} ${label}`
  return toBase64url(await hmacSha256(presented, message))
}
