/**
 * The groups before the zeros and the IPv4 address in 64:ff9b::/96, to which DNS64 and NAT64 translate (RFC 6052).
 * Prefixes for local use (64:ff9b:1::/48, RFC 8215) are not public: they may lead to private IPv4 addresses, and do not
 * show where they embed them.
 */
const translatedPrefix = '64:ff9b'

/** IPv4 ranges without public hosts: private, local, reserved, documentation. */
const specialIpv4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
].map(rangeOf)

/** The allocated range of IPv6, and its subranges without public hosts. */
const globalUnicast = rangeOf('2000::/3')
const specialIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(rangeOf)

/**
 * An address. Its first 32 bits determine the range to which it belongs. An IPv4 address that a network without IPv4
 * translates is the IPv4 address: it leads there.
 */
interface Address {
  readonly version: 4 | 6
  readonly leading: number
}

interface Range {
  readonly leading: number
  readonly prefix: number
}

/**
 * Whether the text is an IP address on the public internet, to which a URL of an untrusted party may lead: for a host
 * that sends such requests with its own `fetch` instead of `guardedFetch`. An IPv6 address that translates an IPv4
 * address (RFC 6052) is as public as that.
 *
 * @example
 * ```ts
 * import { lookup } from 'node:dns/promises'
 * import { isPublicAddress } from 'open-payments-server'
 *
 * const addresses = await lookup('wallet.example', { all: true })
 * const arePublic = addresses.every(({ address }) => isPublicAddress(address))
 * ```
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address?.version === 4) return !specialIpv4.some((range) => isIn(address, range))
  return (
    address !== undefined &&
    isIn(address, globalUnicast) &&
    !specialIpv6.some((range) => isIn(address, range))
  )
}

export function isLoopbackAddress(text: string): boolean {
  return (parseIpv4(text) !== undefined && text.startsWith('127.')) || text === '::1'
}

/** Returns the IP address in the host of a URL, or `undefined` for a name. `hostname` must come from a parsed URL. */
export function addressIn(hostname: string): string | undefined {
  return /^[\d.]+$|:/.test(hostname) ? hostname.replace(/^\[|\]$/g, '') : undefined
}

/** Whether a hostname always leads to this machine (RFC 6761 section 6.3). */
export function isLocalName(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost')
}

/**
 * Whether a URL can lead to the public internet, as far as its text shows: a name can still resolve to another address.
 */
export function mayBePublic({ hostname }: URL): boolean {
  const address = addressIn(hostname)
  return address === undefined ? !isLocalName(hostname) : isPublicAddress(address)
}

function isIn({ leading }: Address, range: Range): boolean {
  return (leading ^ range.leading) >>> (32 - range.prefix) === 0
}

function rangeOf(cidr: string): Range {
  const [network = '', prefix] = cidr.split('/')
  return { leading: parseAddress(network)?.leading ?? 0, prefix: Number(prefix) }
}

function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

function parseIpv4(text: string): Address | undefined {
  const octets = text.split('.')
  const valid =
    octets.length === 4 &&
    octets.every((octet) => /^(?:0|[1-9]\d{0,2})$/.test(octet) && +octet < 256)
  return valid
    ? { version: 4, leading: octets.reduce((bits, octet) => (bits << 8) | +octet, 0) }
    : undefined
}

function parseIpv6(text: string): Address | undefined {
  const url = `http://[${text}]/`
  if (!/^[\da-f:.]+$/i.test(text) || !URL.canParse(url)) return undefined
  // Canonical: `::` replaces the longest run of zeros.
  const [before = '', after = ''] = new URL(url).hostname.slice(1, -1).split('::')
  const groups = after.split(':')
  if (before === translatedPrefix && groups.length <= 2) {
    const [last = '', secondToLast = ''] = groups.toReversed()
    return { version: 4, leading: bitsOf(secondToLast, last) }
  }
  const [first = '', second = ''] = before.split(':')
  return { version: 6, leading: bitsOf(first, second) }
}

function bitsOf(high: string, low: string): number {
  return (groupOf(high) << 16) | groupOf(low)
}

function groupOf(text: string): number {
  return text === '' ? 0 : Number.parseInt(text, 16)
}
