import { toFetch } from '../../src/http/fetch.js'
import type { Handler, PrivateJwk } from '../../src/index.js'
import { type TestKey, testKey } from './keys.js'

/** The resource server of these tests, and the key that it signs with. */
export const bankId = 'https://bank.example/op'
export const bankKey = testKey('bank')

export function privateJwkOf({ privateKey }: TestKey): PrivateJwk {
  return privateKey.export({ format: 'jwk' })
}

/** A `fetch` that reaches one handler, and no network. */
export function fetchTo(handle: Handler): typeof fetch {
  const serve = toFetch(handle)
  return (input, init) => serve(new Request(input, init))
}

/** What a promise was rejected with; fails if it was not. */
export async function rejectionOf(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(outcome instanceof Error)) throw new Error('it was not rejected with an error')
  return outcome
}
