import type * as NodeCrypto from 'node:crypto'
import type * as NodeTimers from 'node:timers'
import { getPublicKeyAsync, Point, signAsync, verifyAsync } from '@noble/ed25519'
import { encodeUtf8, fromBase64url, toBase64url } from '../../util/bytes.js'
import { evictOldest } from '../../util/evict-oldest.js'
import { nodeModule } from '../../util/node-module.js'
import { isCloudflareWorkers } from '../../util/runtime.js'

const nodeCrypto = nodeModule<typeof NodeCrypto>('node:crypto')
/** Captured here, so that tests that replace the global timers do not block verification. */
const setImmediate = nodeModule<typeof NodeTimers>('node:timers')?.setImmediate

/** Whether one callback may settle the verifications of several requests. */
const mayShareWork = !isCloudflareWorkers()

const keyLength = 32

/** Verifies signatures of one public key that has been screened. */
export type Verifier = (signature: Uint8Array, message: string) => Promise<boolean>

/**
 * Screens an Ed25519 public key given as the `x` of a JWK, and returns its verifier. Returns
 * `undefined` for an encoding that is not canonical, for points that are not on the curve, and for points of small
 * order, with which one signature is valid for any message. OpenSSL accepts those.
 */
export function verifierOf(x: string): Verifier | undefined {
  const known = verifiers.get(x)
  if (known !== undefined) return known
  const key = fromBase64url(x)
  if (key === undefined || !isSoundKey(key)) return undefined
  const verifier = nodeCrypto === undefined ? portable(key) : native(nodeCrypto, x)
  verifiers.set(x, verifier)
  evictOldest(verifiers, verifiersMax)
  return verifier
}

const verifiersMax = 10_000
const verifiers = new Map<string, Verifier>()

function isSoundKey(key: Uint8Array): boolean {
  if (key.length !== keyLength) return false
  try {
    return !Point.fromBytes(key, false).isSmallOrder()
  } catch {
    return false
  }
}

/**
 * The verifier for runtimes other than Node. It multiplies by the cofactor, as RFC 8032 allows; OpenSSL does not. The
 * results differ only for signatures that the holder of the key deliberately crafts.
 */
function portable(key: Uint8Array): Verifier {
  return async (signature, message) =>
    verifyAsync(signature, encodeUtf8(message), key, { zip215: false }).catch(() => false)
}

interface Job {
  readonly crypto: typeof NodeCrypto
  readonly message: Uint8Array
  readonly key: NodeCrypto.KeyObject
  readonly signature: Uint8Array
  readonly settle: (verified: boolean) => void
}

function native(crypto: typeof NodeCrypto, x: string): Verifier {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x }
  const key = crypto.createPublicKey({ key: jwk, format: 'jwk' })
  if (!mayShareWork) {
    return async (signature, message) =>
      verifySync({ crypto, message: encodeUtf8(message), key, signature })
  }
  return (signature, message) =>
    new Promise((settle) => {
      enqueue({ crypto, message: encodeUtf8(message), key, signature, settle })
    })
}

let waiting: Job[] = []
let inFlight = 0
let busyUntilMs = 0
const calmAfterMs = 2

/**
 * Verifies a single signature on this thread, because the thread pool would cost more time than it saves. Jobs are
 * collected until the end of the event loop iteration. Several jobs go to the pool, and so do later ones until the
 * pool has been idle for a while, because a verification on this thread would delay them.
 */
function enqueue(job: Job): void {
  if (inFlight > 0 || performance.now() < busyUntilMs) {
    verifyOnPool(job)
    return
  }
  waiting.push(job)
  if (waiting.length === 1) setImmediate?.(flush)
}

function flush(): void {
  const jobs = waiting
  waiting = []
  const [first] = jobs
  if (jobs.length === 1 && first !== undefined) first.settle(verifySync(first))
  else for (const job of jobs) verifyOnPool(job)
}

function verifySync({ crypto, message, key, signature }: Omit<Job, 'settle'>): boolean {
  try {
    return crypto.verify(null, message, key, signature)
  } catch {
    return false
  }
}

function verifyOnPool({ crypto, message, key, signature, settle }: Job): void {
  inFlight += 1
  crypto.verify(null, message, key, signature, (_error, verified) => {
    inFlight -= 1
    busyUntilMs = performance.now() + calmAfterMs
    // `verified` is undefined if there is an error.
    settle(verified === true)
  })
}

/** Signs with one private key. */
export type Signer = (message: string) => Promise<Uint8Array>

/**
 * Returns a signer for an Ed25519 private key given as `x` and `d` of a JWK, or `undefined` for an invalid key. On
 * Node, checks immediately that `d` belongs to `x`. On other runtimes this check is asynchronous, so the signer
 * performs it before the first signature.
 */
export function signerOf({ x, d }: { readonly x: string; readonly d: string }): Signer | undefined {
  const seed = fromBase64url(d)
  if (seed?.length !== keyLength || verifierOf(x) === undefined) return undefined
  return nodeCrypto === undefined ? portableSigner(seed, x) : nativeSigner(nodeCrypto, x, d)
}

function portableSigner(seed: Uint8Array, x: string): Signer {
  let matches: Promise<boolean> | undefined
  return async (message) => {
    matches ??= getPublicKeyAsync(seed).then((own) => toBase64url(own) === x)
    if (!(await matches)) throw new Error('the private key is not that of x')
    return signAsync(encodeUtf8(message), seed)
  }
}

function nativeSigner(crypto: typeof NodeCrypto, x: string, d: string): Signer | undefined {
  const key = privateKeyOf(crypto, x, d)
  return key && (async (message) => crypto.sign(null, encodeUtf8(message), key))
}

function privateKeyOf(
  crypto: typeof NodeCrypto,
  x: string,
  d: string,
): NodeCrypto.KeyObject | undefined {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x, d }
  try {
    const key = crypto.createPrivateKey({ key: jwk, format: 'jwk' })
    return crypto.createPublicKey(key).export({ format: 'jwk' }).x === x ? key : undefined
  } catch {
    // Node 26 rejects a `d` that does not match `x`; earlier versions ignore `x`.
    return undefined
  }
}
