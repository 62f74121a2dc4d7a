import type * as NodeCrypto from 'node:crypto'
import type * as NodeTimers from 'node:timers'
import { Point, verifyAsync } from '@noble/ed25519'
import { encodeUtf8, fromBase64url } from '../../util/bytes.js'
import { evictOldest } from '../../util/evict-oldest.js'
import { isCloudflareWorkers, nodeModule } from '../../util/runtime.js'

const nodeCrypto = nodeModule<typeof NodeCrypto>('node:crypto')
/** Captured here, so that tests that replace the global timers do not block verification. */
const setImmediate = nodeModule<typeof NodeTimers>('node:timers')?.setImmediate

/** Whether one callback may settle the verifications of several requests. */
const mayShareWork = !isCloudflareWorkers()

/** Verifies signatures of one public key that has been screened. */
export type Verifier = (signature: Uint8Array, message: string) => Promise<boolean>

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

type WebKey = NodeCrypto.webcrypto.CryptoKey

/**
 * The verifier for runtimes without `node:crypto`. Rejects if Web Crypto has Ed25519, but cannot import the screened
 * key. Without Ed25519 in Web Crypto, noble verifies: its equation contains the cofactor, as RFC 8032 allows, so it
 * also accepts signatures that the holder of the key crafts with a point of small order.
 */
function portable(x: string, key: Uint8Array): Verifier {
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
  const verify = verifierOf(x)
  if (verify === undefined || fromBase64url(d)?.length !== privateKeyLength) return undefined
  return nodeCrypto === undefined ? portableSigner(x, d, verify) : nativeSigner(nodeCrypto, x, d)
}

const privateKeyLength = 32

function portableSigner(x: string, d: string, verify: Verifier): Signer {
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
