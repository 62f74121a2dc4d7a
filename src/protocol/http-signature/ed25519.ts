import type * as NodeCrypto from 'node:crypto'
import { Point } from '@noble/ed25519'
import { fromBase64url } from '../../util/bytes.js'
import { evictOldest } from '../../util/evict-oldest.js'
import { nodeModule } from '../../util/runtime.js'
import { native, nativeSigner } from './ed25519-node.js'
import { portable, portableSigner, type Signer, type Verifier } from './ed25519-portable.js'

export type { Signer, Verifier }

const nodeCrypto = nodeModule<typeof NodeCrypto>('node:crypto')
/**
 * Screens an Ed25519 public key given as the `x` of a JWK, and returns its verifier. Returns `undefined` for an
 * encoding that is not canonical, for a point that is not on the curve, and for a point of small order.
 *
 * Keeps the verifiers that were used last among those that verified a signature, so that keys without one, which
 * anybody can send, do not evict the keys of clients.
 */
export function verifierOf(x: string): Verifier | undefined {
  const known = verified.get(x)
  if (known !== undefined) {
    verified.delete(x)
    verified.set(x, known)
    return known
  }
  const candidate = screened.get(x)
  if (candidate !== undefined) return candidate
  const key = fromBase64url(x)
  if (key === undefined || !isSoundKey(key)) return undefined
  const verify = nodeCrypto === undefined ? portable(x, key) : native(nodeCrypto, x)
  const verifier: Verifier = async (signature, message) => {
    const holds = await verify(signature, message)
    if (holds && !verified.has(x)) {
      screened.delete(x)
      verified.set(x, verify)
      evictOldest(verified, verifiedMax)
    }
    return holds
  }
  screened.set(x, verifier)
  evictOldest(screened, screenedMax)
  return verifier
}

const verifiedMax = 10_000
const verified = new Map<string, Verifier>()

/** For the time between the screening of a key and its first verification. */
const screenedMax = 100
const screened = new Map<string, Verifier>()

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
  return nodeCrypto === undefined ? portableSigner(x, d, verify) : nativeSigner(nodeCrypto, x, d)
}

const privateKeyLength = 32
