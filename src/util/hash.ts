import type * as NodeCrypto from 'node:crypto'
import { encodeUtf8, toBase64url } from './bytes.js'
import { nodeCrypto } from './runtime.js'

/** A digest: synchronous on Node, and a promise on runtimes with only Web Crypto. */
export type Digest = Uint8Array | Promise<Uint8Array>

/** Bytes, or text that is hashed as UTF-8. */
type Data = Uint8Array | string

export function sha256(data: Data): Digest {
  return digest('sha256', 'SHA-256', data)
}

/** Computes the SHA-256 in base64url, as in ids, thumbprints and stored hashes of secrets. */
export async function hashText(data: Data): Promise<string> {
  const node = nodeCrypto()
  if (node?.hash !== undefined) return node.hash('sha256', data, 'base64url')
  return toBase64url(await sha256(data))
}

/** 132 bits in base64url: nobody finds a text with the same hash as that of another. */
const shortLength = 22

/**
 * Computes the beginning of the SHA-256 in base64url, for what a client can present again only itself, and for ids, of
 * which each character is in the record and in two indexes.
 */
export async function shortHashText(data: Data): Promise<string> {
  return (await hashText(data)).slice(0, shortLength)
}

export function sha512(data: Data): Digest {
  return digest('sha512', 'SHA-512', data)
}

export function hmacSha256(key: Data, data: Data): Digest {
  const node = nodeCrypto()
  return node === undefined
    ? webHmac(key, data)
    : node.createHmac('sha256', key).update(data).digest()
}

function digest(nodeName: string, webName: string, data: Data): Digest {
  const node = nodeCrypto()
  if (node !== undefined) return nodeDigest(node, nodeName, data)
  return crypto.subtle.digest(webName, bytesOf(data)).then((hash) => new Uint8Array(hash))
}

/** Prefers `crypto.hash` (Node 20.12 and later), which is about twice as fast for short inputs. */
function nodeDigest({ hash, createHash }: typeof NodeCrypto, name: string, data: Data): Uint8Array {
  return hash === undefined ? createHash(name).update(data).digest() : hash(name, data, 'buffer')
}

async function webHmac(key: Data, data: Data): Promise<Uint8Array> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', bytesOf(key), algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, bytesOf(data)))
}

/** The types of Web Crypto exclude views of shared memory, which the library never creates. */
function bytesOf(data: Data): Uint8Array<ArrayBuffer> {
  const bytes = typeof data === 'string' ? encodeUtf8(data) : data
  return bytes as Uint8Array<ArrayBuffer>
}
