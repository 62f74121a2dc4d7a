import { addressIn } from '../protocol/ip-address.js'

/** Labels below which registries of country domains register names, as in `example.co.uk`. */
const registryLabels = new Set([
  ...['ac', 'co', 'com', 'edu', 'go', 'gob', 'gov', 'ltd', 'mil', 'ne', 'net', 'or', 'org', 'plc'],
])

/**
 * Returns the domain that was probably registered for a hostname: its last two labels, or three under a country domain
 * with registry labels. All IP addresses are one site, because a client can name any address.
 *
 * This decides who shares limits, so that using many subdomains does not raise a limit. It is an approximation: hosts
 * of different owners below one domain, as in `alice.hosting.example`, share the limits too. The exact boundary is in
 * the Public Suffix List, which changes every week and is larger than this library.
 */
export function siteOf(hostname: string): string {
  if (addressIn(hostname) !== undefined) return 'addresses'
  const labels = hostname.split('.')
  const [registry = '', country = ''] = labels.slice(-2)
  const depth = country.length === 2 && registryLabels.has(registry) ? 3 : 2
  return labels.slice(-depth).join('.')
}
