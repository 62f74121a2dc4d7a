import type { Clock, Instant } from 'open-payments-server'
import { bodyOf, grantBody } from './bodies.js'
import { type Call, ended, waitFor, withinLimit } from './deadline.js'
import type { Exchange, Exchanged } from './exchange.js'
import type { Outgoing } from './message.js'
import { type Refused, refused } from './refusal.js'

/** Access that authorization servers grant without the consent of an owner. */
export interface OpenAccess {
  readonly type: 'incoming-payment' | 'quote'
  readonly actions: readonly string[]
}

/** Where a token is used. */
export interface TokenUse extends OpenAccess {
  readonly authServer: string
  /** The URL of the resource; its origin is the server that gets the token. */
  readonly at: string
}

/** Tokens for access that needs no consent. */
export interface Tokens {
  /** Sends a request with a token. */
  send(call: Call, use: TokenUse, request: Omit<Outgoing, 'token'>): Promise<Exchanged>
}

interface Token {
  readonly value: string
  usableUntil: Instant
  /** Whether the server of the resource has accepted it. */
  accepted: boolean
}

type Got = { readonly ok: true; readonly token: Token } | Refused

const tokensMax = 1_000
const ageMaxMs = 600_000
const marginMs = 30_000
/** How long a server that refuses a new token waits for another one. */
const refusedTokenMs = 30_000

export interface TokensOptions {
  readonly exchange: Exchange
  readonly clock: Clock
  readonly client: string | object
  readonly limitMs: number
}

/**
 * Keeps one token for each origin of resources, authorization server and actions, with one request for it at a time. A
 * hostile wallet can name the authorization server of another: it gets a token of its own, whose refusals cost only it.
 */
export function tokensWith({ exchange, clock, client, limitMs }: TokensOptions): Tokens {
  const kept = new Map<string, Promise<Got>>()

  function keep(key: string, use: TokenUse): Promise<Got> {
    // The request is shared, so no caller may end it for the others.
    const asked = withinLimit(limitMs, undefined, (call) => requestToken(call, use))
    kept.set(key, asked)
    const forget = () => {
      if (kept.get(key) === asked) kept.delete(key)
    }
    asked.then(({ ok }) => ok || forget(), forget)
    const [oldest] = kept.keys()
    if (kept.size > tokensMax && oldest !== undefined) kept.delete(oldest)
    return asked
  }

  async function requestToken(call: Call, { authServer, type, actions }: TokenUse): Promise<Got> {
    const body = { access_token: { access: [{ type, actions }] }, client }
    const request: Outgoing = { method: 'POST', url: authServer, body }
    const read = await bodyOf(grantBody, request, exchange(call, request))
    if (!read.ok) return read
    const { access_token: issued } = read.value
    if (issued === undefined) {
      return refused('consent_required', `${authServer} requires consent for ${type} ${actions}`)
    }
    const { value, expires_in } = issued
    const ageMs = Math.min((expires_in ?? ageMaxMs / 1_000) * 1_000, ageMaxMs)
    return {
      ok: true,
      token: { value, usableUntil: clock.now() + ageMs - marginMs, accepted: false },
    }
  }

  async function get(call: Call, use: TokenUse): Promise<Got> {
    const key = `${new URL(use.at).origin} ${use.authServer} ${use.type} ${use.actions}`
    try {
      const known = kept.get(key)
      const got = await waitFor(call, known ?? keep(key, use))
      if (known === undefined || !got.ok || clock.now() < got.token.usableUntil) return got
      // Another caller may have asked for the next one meanwhile.
      const next = kept.get(key)
      return await waitFor(call, next === undefined || next === known ? keep(key, use) : next)
    } catch (error) {
      if (call.signal.aborted) return ended(call, `the token of ${use.authServer}`)
      throw error
    }
  }

  async function send(call: Call, use: TokenUse, request: Omit<Outgoing, 'token'>) {
    for (;;) {
      const got = await get(call, use)
      if (!got.ok) return got
      const { token } = got
      const sent = await exchange(call, { ...request, token: token.value })
      const isRefused = !sent.ok && tokenRefusals.has(sent.refusal)
      if (!isRefused) {
        if (sent.ok) token.accepted = true
        return sent
      }
      const usableMs = token.accepted ? 0 : refusedTokenMs
      token.usableUntil = Math.min(token.usableUntil, clock.now() + usableMs)
      // A token that worked before may have been revoked. A request that creates something is not sent again.
      if (!token.accepted || request.creates !== undefined) return sent
    }
  }

  return { send }
}

/** The refusals that another token may change. */
const tokenRefusals: ReadonlySet<string> = new Set(['unauthenticated', 'forbidden'])
