import type * as NodeDns from 'node:dns'
import { addressIn, isLocalName } from '../protocol/ip-address.js'
import { untilAborted } from './abort.js'
import { createGate } from './gate.js'
import { siteOf } from './site.js'

/** Resolves to all IP addresses of a hostname. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>

/**
 * Lookups per site, so that a domain whose name servers do not respond cannot use up all lookups. Requests for key
 * sets, with 8 per site for proved clients and 8 for others, never wait here.
 */
const perSite = { activeMax: 16, waitingMax: 16, keysMax: 256 }

/** The addresses of names that are never looked up. */
const loopback = ['127.0.0.1', '::1']

/**
 * Limits the lookups of a resolver per site. A lookup holds its slot until the resolver settles, not only until its
 * caller stops waiting.
 */
export function addressLookups(resolve: Resolve): Resolve {
  const sites = createGate(perSite)
  return async (hostname, signal) => {
    const address = addressIn(hostname)
    if (address !== undefined) return [address]
    if (isLocalName(hostname)) return loopback
    const lookUp = async () => {
      // Its caller may have stopped waiting while it had no slot.
      signal.throwIfAborted()
      const addresses = await resolve(hostname, signal)
      if (addresses.length === 0) throw new Error('the name has no address')
      return addresses
    }
    return untilAborted(signal, sites.run(siteOf(hostname), lookUp))
  }
}

/** How long to wait for a name server before the query is sent again, to the next one if there are several. */
const queryTimeoutMs = 500
const queriesMax = 2

/** The part of `node:dns` that the resolver needs. */
interface Dns {
  readonly promises: Pick<typeof NodeDns.promises, 'Resolver'>
}

/**
 * Creates a resolver that sends queries to the system's name servers. `dns.lookup` would occupy one of the few threads
 * that the process shares with file access and cryptography, for as long as the name servers do not respond, and cannot
 * be cancelled. Unlike it, this resolver does not read the hosts file.
 */
export function dnsResolve({ promises: { Resolver } }: Dns): Resolve {
  return async (hostname, signal) => {
    signal.throwIfAborted()
    const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queriesMax })
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    const [ipv4, ipv6] = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ])
    signal.removeEventListener('abort', cancel)
    const addresses = [ipv4, ipv6].flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    )
    if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
    return addresses
  }
}
