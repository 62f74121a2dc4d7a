import type * as NodeNet from 'node:net'

/** Ranges that no public host has: private, local, reserved, documentation. */
const blockedIpv4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const

/** All that has been handed out of IPv6, and what of it leads elsewhere than to a public host. */
const globalUnicast = ['2000::', 3] as const
const blockedIpv6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

/** Tells addresses that may be connected to on behalf of a stranger from those that may not. */
export interface AddressGuard {
  /** An address on the public internet. */
  isPublic(address: string): boolean
  isLoopback(address: string): boolean
}

/**
 * Builds the guard from Node's own `BlockList`, one list for each family: in a list of both, a subnet of
 * mapped addresses would match every IPv4 address.
 */
export function addressGuard({ BlockList, isIP }: typeof NodeNet): AddressGuard {
  const ipv4 = new BlockList()
  for (const [net, prefix] of blockedIpv4) ipv4.addSubnet(net, prefix, 'ipv4')
  const ipv6 = new BlockList()
  for (const [net, prefix] of blockedIpv6) ipv6.addSubnet(net, prefix, 'ipv6')
  const given = new BlockList()
  given.addSubnet(...globalUnicast, 'ipv6')
  return {
    isPublic(address) {
      const version = isIP(address)
      if (version === 4) return !ipv4.check(address, 'ipv4')
      return version === 6 && given.check(address, 'ipv6') && !ipv6.check(address, 'ipv6')
    },
    isLoopback: (address) =>
      (isIP(address) === 4 && address.startsWith('127.')) || address === '::1',
  }
}
