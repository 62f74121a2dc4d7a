import type * as NodeCrypto from 'node:crypto'
import { encodeUtf8, toBase64url } from './bytes.js'
import { nodeModule } from './node-module.js'

/** A digest: synchronous on Node, and a promise on runtimes with only Web Crypto. */
export type Digest = Uint8Array | Promise<Uint8Array>

const nodeCrypto = nodeModule<typeof NodeCrypto>('node:crypto')

export function sha256(data: Uint8Array | string): Digest {
  return digest('sha256', 'SHA-256', data)
}

/** Computes the SHA-256 in base64url, as in ids, thumbprints and stored hashes of secrets. */
export async function hashText(data: Uint8Array | string): Promise<string> {
  return toBase64url(await sha256(data))
}

export function sha512(data: Uint8Array | string): Digest {
  return digest('sha512', 'SHA-512', data)
}

export function hmacSha256(key: Uint8Array, data: Uint8Array): Digest {
  if (nodeCrypto !== undefined) {
    return nodeCrypto.createHmac('sha256', key).update(data).digest()
  }
  return webHmac(key, data)
}

function digest(nodeName: string, webName: string, data: Uint8Array | string): Digest {
  if (nodeCrypto !== undefined) return nodeDigest(nodeCrypto, nodeName, data)
  const bytes = typeof data === 'string' ? encodeUtf8(data) : data
  return crypto.subtle.digest(webName, asBuffer(bytes)).then((hash) => new Uint8Array(hash))
}

/** Prefers `crypto.hash` (Node 20.12 and later), which is about twice as fast for short inputs. */
function nodeDigest(
  { hash, createHash }: typeof NodeCrypto,
  name: string,
  data: Uint8Array | string,
): Uint8Array {
  return hash === undefined ? createHash(name).update(data).digest() : hash(name, data, 'buffer')
}

async function webHmac(key: Uint8Array, data: Uint8Array): Promise<Uint8Array> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', asBuffer(key), algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, asBuffer(data)))
}

/** The types of Web Crypto exclude views of shared memory, which the library never creates. */
function asBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>
}
