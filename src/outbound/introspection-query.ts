import type { ActiveToken, IntrospectionQuery } from '../ports/host.js'
import { hashText } from '../util/hash.js'

/** Identifies what is asked: the answer for one `keyid` is not the answer for another. */
export function hashOfQuery({ accessToken, keyid }: IntrospectionQuery): Promise<string> {
  return hashText(JSON.stringify([accessToken, keyid]))
}

/**
 * Whether an answer is about the key that was asked about. Other answers must not take the place of answers for
 * clients: anyone with a token, which need not be theirs, can invent any number of `keyid`s.
 */
export function isForKey(token: ActiveToken, { keyid }: IntrospectionQuery): boolean {
  return keyid === undefined || keyid === token.key.kid
}
