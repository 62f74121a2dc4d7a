import type { PrivateJwk } from 'open-payments-server'
import { type TestKey, testKey } from './keys.js'

/** The resource server of these tests and its signing key. */
export const bankId = 'https://bank.example/op'
export const bankKey = testKey('bank')

export function privateJwkOf({ privateKey }: TestKey): PrivateJwk {
  return privateKey.export({ format: 'jwk' })
}

/** How these tests introspect tokens at another server. A slow machine may take long to answer. */
export const introspection = {
  resourceServerId: bankId,
  key: { kid: bankKey.kid, privateKey: privateJwkOf(bankKey) },
  timeoutMs: 60_000,
} as const

/** Returns the reason of a rejected promise; fails if the promise was not rejected. */
export async function rejectionOf(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(outcome instanceof Error)) throw new Error('it was not rejected with an error')
  return outcome
}
