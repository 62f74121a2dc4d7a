import type { Random } from '../ports/random.js'
import { encodeUtf8, toBase64url } from '../util/bytes.js'
import { hashText, hmacSha256 } from '../util/hash.js'

/**
 * What a token is good for, written on it. An access token is of no use for continuing a grant, nor a
 * continuation token at a resource server, whatever else agrees.
 */
export type CredentialClass = 'opa_' | 'opc_'

export const accessTokenClass: CredentialClass = 'opa_'
export const continuationTokenClass: CredentialClass = 'opc_'

/** A token taken apart: `<class><grant id>.<secret>`. */
export interface Credential {
  readonly grantId: string
  readonly secret: string
}

const secretBytes = 32
const pathBytes = 16
const namespaceLength = 8

const grantIdPattern = '[A-Za-z0-9_-]{1,100}'
const randomPattern = '[A-Za-z0-9_-]{22}'
const secretPattern = '[A-Za-z0-9_-]{43}'
const credential = new RegExp(`^(op[ac]_)(${grantIdPattern})\\.(${secretPattern})$`)
const path = new RegExp(`^(${grantIdPattern})\\.(${randomPattern})$`)
const idPattern = new RegExp(`^${grantIdPattern}$`)

/** 256 random bits, base64url: a secret that is stored as its SHA-256 only. */
export function newSecret(random: Random): string {
  return toBase64url(random.getRandomValues(new Uint8Array(secretBytes)))
}

/** 128 random bits, base64url: the part of a path that nobody guesses, but that is no secret. */
export function newPath(random: Random): string {
  return toBase64url(random.getRandomValues(new Uint8Array(pathBytes)))
}

/** An id that begins with the namespace of the server that gave it. */
export function newId(namespace: string, random: Random): string {
  return namespace + newPath(random)
}

/** Whether an id is one that a server of this namespace may have given. */
export function isIdOf(namespace: string, id: string): boolean {
  return id.startsWith(namespace) && idPattern.test(id)
}

/** Tells servers on one store apart: the first 8 characters of the SHA-256 of the server's URL. */
export async function namespaceOf(serverUrl: string): Promise<string> {
  return (await hashText(serverUrl)).slice(0, namespaceLength)
}

export function formatCredential(kind: CredentialClass, { grantId, secret }: Credential): string {
  return `${kind}${grantId}.${secret}`
}

export function parseCredential(kind: CredentialClass, text: string): Credential | undefined {
  const [, found, grantId, secret] = credential.exec(text) ?? []
  if (found !== kind || grantId === undefined || secret === undefined) return undefined
  return { grantId, secret }
}

/** The last segment of a `continue`, `token` or interaction path: a grant's id and its random part. */
export function formatPath(grantId: string, own: string): string {
  return `${grantId}.${own}`
}

export function parsePath(segment: string): { grantId: string; own: string } | undefined {
  const [, grantId, own] = path.exec(segment) ?? []
  return grantId === undefined || own === undefined ? undefined : { grantId, own }
}

export function hashSecret(text: string): Promise<string> {
  return hashText(text)
}

/**
 * The secret that follows from one presented secret and a stored salt. Whoever lost the response and
 * presents the same secret again gets the same successor, though no token was ever stored.
 */
export async function deriveSecret(presented: string, salt: string): Promise<string> {
  return toBase64url(await hmacSha256(encodeUtf8(presented), encodeUtf8(salt)))
}
