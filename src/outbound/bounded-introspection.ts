import type { Introspect, Introspection } from '../ports/introspect.js'
import { evictOldest } from '../util/evict-oldest.js'
import { hashText } from '../util/hash.js'
import { createGate, isGateFull } from './gate.js'

/** Limits for each of the two groups of tokens, and per process. */
const limits = { activeMax: 64, waitingMax: 128, keysMax: 2 }
/** One request about a token, and one that waits. The group's limit also limits the number of tokens. */
const perToken = { activeMax: 1, waitingMax: 1, keysMax: Number.POSITIVE_INFINITY }
const knownMax = 10_000

/**
 * Limits the introspection requests that run and wait at the same time. Further ones are rejected immediately. Tokens
 * that were active when they were last introspected have slots of their own, so that a stranger, who can invent any
 * number of tokens, cannot use up those of clients.
 *
 * Callers that ask about the same token share a request that has not been sent yet. They never share one that has been
 * sent: its answer may predate a revocation that has completed since.
 */
export function boundedIntrospect(introspect: Introspect): Introspect {
  const groups = createGate(limits)
  const tokens = createGate(perToken)
  const unsent = new Map<string, Promise<Introspection>>()
  /** Hashes of tokens that were active, the least recently used first. */
  const known = new Set<string>()

  async function ask(id: string, accessToken: string): Promise<Introspection> {
    const send = () => {
      unsent.delete(id)
      return introspect({ accessToken })
    }
    const inGroup = () => groups.run(known.has(id) ? 'known' : 'unknown', send)
    try {
      const answer = await tokens.run(id, inGroup)
      remember(id, answer.active)
      return answer
    } catch (error) {
      throw isGateFull(error) ? new Error('too many introspection requests are in progress') : error
    }
  }

  function remember(id: string, active: boolean): void {
    known.delete(id)
    if (active) known.add(id)
    evictOldest(known, knownMax)
  }

  return async ({ accessToken }) => {
    const id = await hashText(accessToken)
    const shared = unsent.get(id)
    if (shared !== undefined) return shared
    const asked = ask(id, accessToken).finally(() => {
      if (unsent.get(id) === asked) unsent.delete(id)
    })
    // It has not been sent yet: a gate starts no request before its caller continues.
    unsent.set(id, asked)
    return asked
  }
}
