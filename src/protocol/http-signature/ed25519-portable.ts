import type * as NodeCrypto from 'node:crypto'
import { verifyAsync } from '@noble/ed25519'
import { encodeUtf8 } from '../../util/bytes.js'

/** Verifies signatures of one public key that has been screened. */
export type Verifier = (signature: Uint8Array, message: string) => Promise<boolean>

export type Signer = (message: string) => Promise<Uint8Array>

type WebKey = NodeCrypto.webcrypto.CryptoKey

/**
 * The verifier for runtimes without `node:crypto`. Rejects if Web Crypto has Ed25519, but cannot import the screened
 * key. Without Ed25519 in Web Crypto, noble verifies: its equation contains the cofactor, as RFC 8032 allows, so it
 * also accepts signatures that the holder of the key crafts with a point of small order.
 */
export function portable(x: string, key: Uint8Array): Verifier {
  const importKey = importing({ x }, 'verify')
  return async (signature, message) => {
    const bytes = encodeUtf8(message)
    const imported = await importKey().catch((error: unknown) => {
      if ((error as Error).name !== 'NotSupportedError') throw error
    })
    if (imported !== undefined) return crypto.subtle.verify('Ed25519', imported, signature, bytes)
    return (
      signature.length === signatureLength && verifyAsync(signature, bytes, key, { zip215: false })
    )
  }
}

const signatureLength = 64

/** Returns a function that imports a key once, and again after a failure. The key cannot be exported. */
function importing(
  key: { readonly x: string; readonly d?: string },
  use: 'sign' | 'verify',
): () => Promise<WebKey> {
  const jwk = { kty: 'OKP', crv: 'Ed25519', ...key }
  let imported: Promise<WebKey> | undefined
  return async () => {
    imported ??= crypto.subtle.importKey('jwk', jwk, 'Ed25519', false, [use])
    try {
      return await imported
    } catch (error) {
      imported = undefined
      throw error
    }
  }
}

export function portableSigner(x: string, d: string, verify: Verifier): Signer {
  const importKey = importing({ x, d }, 'sign')
  let matches = false

  /** Some runtimes refuse to import a `d` that is not that of `x`, and others ignore `x`. */
  async function check(): Promise<void> {
    const key = await importKey().catch((error: unknown) => {
      if ((error as Error).name !== 'DataError') throw error
    })
    matches = key !== undefined && (await verify(await signWith(key, ''), ''))
    if (!matches) throw new Error('the private key does not match x')
  }

  return async (message) => {
    if (!matches) await check()
    return signWith(await importKey(), message)
  }
}

async function signWith(key: WebKey, message: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign('Ed25519', key, encodeUtf8(message)))
}
