import { Point } from '@noble/ed25519'
import { fromBase64url } from '../../util/bytes.js'
import { recentlyUsed } from '../../util/recently-used.js'
import { nodeCrypto } from '../../util/runtime.js'
import { native, nativeSigner } from './ed25519-node.js'
import { portable, portableSigner, type Signer, type Verifier } from './ed25519-portable.js'

export type { Signer, Verifier }

/**
 * Screens an Ed25519 public key given as the `x` of a JWK, and returns its verifier. Returns `undefined` for an
 * encoding that is not canonical, for a point that is not on the curve, and for a point of small order.
 *
 * Keeps the verifiers that were used last among those that verified a signature, so that keys without one, which
 * anybody can send, do not evict the keys of clients.
 */
export function verifierOf(x: string): Verifier | undefined {
  const known = verified.get(x) ?? screened.get(x)
  if (known !== undefined) return known
  const key = fromBase64url(x)
  if (key === undefined || !isSoundKey(key)) return undefined
  const node = nodeCrypto()
  const verify = node === undefined ? portable(x, key) : native(node, x)
  const verifier: Verifier = async (signature, message) => {
    const holds = await verify(signature, message)
    if (holds) {
      screened.delete(x)
      verified.set(x, verify)
    }
    return holds
  }
  screened.set(x, verifier)
  return verifier
}

const verified = recentlyUsed<Verifier>(10_000)

/** Holds verifiers between the screening of a key and its first verification. */
const screened = recentlyUsed<Verifier>(100)

/** OpenSSL accepts keys of small order, under which one signature is valid for many messages. */
function isSoundKey(key: Uint8Array): boolean {
  try {
    return !Point.fromBytes(key, false).isSmallOrder()
  } catch {
    return false
  }
}

/**
 * Returns a signer for an Ed25519 private key given as `x` and `d` of a JWK, or `undefined` for an invalid key. On
 * Node, checks immediately that `d` belongs to `x`. On other runtimes this check is asynchronous, so the signer
 * performs it before the first signature.
 */
export function signerOf({ x, d }: { readonly x: string; readonly d: string }): Signer | undefined {
  const verify = verifierOf(x)
  if (verify === undefined || fromBase64url(d)?.length !== privateKeyLength) return undefined
  const node = nodeCrypto()
  return node === undefined ? portableSigner(x, d, verify) : nativeSigner(node, x, d)
}

const privateKeyLength = 32
