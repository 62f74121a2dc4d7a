import type { Introspect, Introspection, IntrospectionQuery } from '../ports/host.js'
import { recentlyUsed } from '../util/recently-used.js'
import { hashOfQuery, isForKey } from './introspection-query.js'

/** Requests in progress and waiting, for each of the two groups of tokens. */
const activeMax = 64
const waitingMax = 128
const knownMax = 10_000

interface Group {
  active: number
  readonly waiting: (() => void)[]
}

/**
 * Limits the introspection requests that run and wait at the same time. Further ones are rejected immediately. Tokens
 * that were active when they were last introspected, with the key that was asked about, have slots of their own, so
 * that a caller that invents tokens and keys cannot use up the slots of clients. A token has one request in progress
 * for each `keyid`.
 *
 * Callers that ask about the same token and `keyid` share a request that has not been sent yet. They never share one
 * that has been sent: its answer may predate a revocation that has completed since.
 */
export function boundedIntrospect(introspect: Introspect): Introspect {
  const groups: Readonly<Record<'known' | 'unknown', Group>> = {
    known: { active: 0, waiting: [] },
    unknown: { active: 0, waiting: [] },
  }
  /** By the hash of the query. */
  const sent = new Map<string, Promise<unknown>>()
  const unsent = new Map<string, Promise<Introspection>>()
  /** Hashes of queries for tokens that were active. */
  const known = recentlyUsed<true>(knownMax)

  async function ask(id: string, query: IntrospectionQuery): Promise<Introspection> {
    await sent.get(id)
    const group = groups[known.get(id) ? 'known' : 'unknown']
    if (group.active < activeMax) group.active += 1
    else if (group.waiting.length >= waitingMax) {
      throw new Error('too many introspection requests are in progress')
    } else {
      // A request that ends passes its slot on, so the slot is already counted when the wait ends.
      await new Promise<void>((resolve) => group.waiting.push(resolve))
    }
    unsent.delete(id)
    const answer = introspect(query)
    const ended = answer.then(
      (token) => {
        if (token.active && isForKey(token, query)) known.set(id, true)
        else known.delete(id)
      },
      () => undefined,
    )
    sent.set(id, ended)
    await ended
    sent.delete(id)
    const next = group.waiting.shift()
    if (next === undefined) group.active -= 1
    else next()
    return answer
  }

  return async (query) => {
    const id = await hashOfQuery(query)
    const shared = unsent.get(id)
    if (shared !== undefined) return shared
    const asked = ask(id, query).finally(() => {
      if (unsent.get(id) === asked) unsent.delete(id)
    })
    unsent.set(id, asked)
    return asked
  }
}
