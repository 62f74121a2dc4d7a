import type * as NodeNet from 'node:net'

/** Address ranges without public hosts: private, local, reserved, documentation. */
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

/** The allocated range of IPv6, and its subranges without public hosts. */
const globalUnicast = ['2000::', 3] as const
const blockedIpv6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

/** Distinguishes addresses to which the library may connect on behalf of an untrusted party. */
export interface AddressGuard {
  /** An address on the public internet. */
  isPublic(address: string): boolean
  isLoopback(address: string): boolean
}

/**
 * Creates a guard from `BlockList` of Node. Each address family has its own list, because in a common list a subnet
 * of mapped addresses would match every IPv4 address.
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
