import type * as NodeCrypto from 'node:crypto'
import type * as NodeTimers from 'node:timers'
import { encodeUtf8 } from '../../util/bytes.js'
import { isCloudflareWorkers, nodeModule } from '../../util/runtime.js'
import type { Signer, Verifier } from './ed25519-portable.js'

/** Captured here, so that tests that replace the global timers do not block verification. */
const setImmediate = nodeModule<typeof NodeTimers>('node:timers')?.setImmediate

/** Whether one callback may settle the verifications of several requests. */
const mayShareWork = !isCloudflareWorkers()

interface Job {
  readonly crypto: typeof NodeCrypto
  readonly message: Uint8Array
  readonly key: NodeCrypto.KeyObject
  readonly signature: Uint8Array
  readonly settle: (verified: boolean) => void
}

/** The verifier for runtimes with `node:crypto`. */
export function native(crypto: typeof NodeCrypto, x: string): Verifier {
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

export function nativeSigner(crypto: typeof NodeCrypto, x: string, d: string): Signer | undefined {
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
