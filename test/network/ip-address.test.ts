import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressIn, isLoopbackAddress, isPublicAddress } from '../../src/network/ip-address.js'
import { runs } from '../support/runs.js'

/** IANA special-purpose registries, multicast, and IPv6 ranges that embed an IPv4 address. */
const special = [
  ['this network', '0.0.0.0/8'],
  ['private', '10.0.0.0/8'],
  ['shared (CGNAT)', '100.64.0.0/10'],
  ['loopback', '127.0.0.0/8'],
  ['link-local, including metadata services', '169.254.0.0/16'],
  ['private', '172.16.0.0/12'],
  ['protocol assignments', '192.0.0.0/24'],
  ['documentation', '192.0.2.0/24'],
  ['deprecated 6to4 relays', '192.88.99.0/24'],
  ['private', '192.168.0.0/16'],
  ['benchmarking', '198.18.0.0/15'],
  ['documentation', '198.51.100.0/24'],
  ['documentation', '203.0.113.0/24'],
  ['multicast', '224.0.0.0/4'],
  ['reserved', '240.0.0.0/4'],
  ['broadcast', '255.255.255.255/32'],
  ['unspecified', '::/128'],
  ['loopback', '::1/128'],
  ['IPv4-compatible', '::/96'],
  ['IPv4-mapped', '::ffff:0:0/96'],
  ['IPv4-translated (SIIT)', '::ffff:0:0:0/96'],
  ['local NAT64', '64:ff9b:1::/48'],
  ['discard', '100::/64'],
  ['dummy prefix', '100:0:0:1::/64'],
  ['Teredo', '2001::/32'],
  ['protocol assignments', '2001::/23'],
  ['documentation', '2001:db8::/32'],
  ['6to4', '2002::/16'],
  ['documentation', '3fff::/20'],
  ['segment routing', '5f00::/16'],
  ['unique local', 'fc00::/7'],
  ['link-local', 'fe80::/10'],
  ['deprecated site-local', 'fec0::/10'],
  ['multicast', 'ff00::/8'],
] as const

interface Range {
  readonly bits: 32 | 128
  readonly first: bigint
  readonly last: bigint
}

function rangeOf(cidr: string): Range {
  const [address = '', prefix] = cidr.split('/')
  const bits = address.includes(':') ? 128 : 32
  const size = 1n << BigInt(bits - Number(prefix))
  const first = numberOf(address)
  return { bits, first, last: first + size - 1n }
}

function numberOf(address: string): bigint {
  if (!address.includes(':')) {
    return address.split('.').reduce((value, octet) => value * 256n + BigInt(octet), 0n)
  }
  const [left = '', right = ''] = address.split('::')
  const groups = (half: string) => half.split(':').filter((group) => group !== '')
  const missing = 8 - groups(left).length - groups(right).length
  const all = address.includes('::')
    ? [...groups(left), ...Array<string>(missing).fill('0'), ...groups(right)]
    : groups(address)
  return all.reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n)
}

/** Returns the canonical text, as a DNS lookup returns it. */
function textOf(value: bigint, bits: 32 | 128): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')
  const groups = Array.from({ length: 8 }, (_, i) => (value >> BigInt(112 - 16 * i)) & 0xffffn)
  const full = groups.map((group) => group.toString(16)).join(':')
  return new URL(`http://[${full}]/`).hostname.slice(1, -1)
}

const ranges = special.map(([, cidr]) => rangeOf(cidr))
const globalUnicast = rangeOf('2000::/3')
const nat64 = rangeOf('64:ff9b::/96')

function within(value: bigint, { first, last }: Range): boolean {
  return value >= first && value <= last
}

function isSpecial(value: bigint, bits: 32 | 128): boolean {
  return ranges.some((range) => range.bits === bits && within(value, range))
}

describe('a public address', () => {
  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '93.184.216.34',
    '9.255.255.255',
    '11.0.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '223.255.255.255',
    '2001:4860:4860::8888',
    '2606:4700:4700::1111',
    '2a00:1450:4001:81b::200e',
  ])('may be %s', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test.each(special)(
    'is not in the range %s (%s), from its first to its last address',
    (_, cidr) => {
      const range = rangeOf(cidr)
      const { first, last, bits } = range
      const samples = [first, first + 1n, (first + last) / 2n, last - 1n, last]
      for (const value of samples.filter((sample) => within(sample, range))) {
        expect(isPublicAddress(textOf(value, bits)), textOf(value, bits)).toBe(false)
      }
    },
  )

  test.each(special.filter(([, cidr]) => !cidr.includes(':')))(
    'is not in the range %s (%s), translated to IPv6 with the prefix of RFC 6052',
    (_, cidr) => {
      const { first, last } = rangeOf(cidr)
      for (const value of [first, first + 1n, (first + last) / 2n, last - 1n, last]) {
        const dotted = `64:ff9b::${textOf(value, 32)}`
        for (const text of [dotted, textOf(nat64.first + value, 128), dotted.toUpperCase()]) {
          expect(isPublicAddress(text), text).toBe(false)
          expect(isLoopbackAddress(text), text).toBe(false)
        }
      }
    },
  )

  test('translated to IPv6 with the prefix of RFC 6052 is judged as the IPv4 address', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }), (value) => {
        const translated = textOf(nat64.first + value, 128)
        expect(isPublicAddress(translated), translated).toBe(!isSpecial(value, 32))
      }),
      { numRuns: runs(2_000) },
    )
  })

  test.each([
    '64:ff9a:ffff:ffff:ffff:ffff:808:808',
    '64:ff9b::1:808:808',
    '64:ff9b:0:0:8000::808:808',
    '64:ff9b:1::808:808',
    '64:ff9b:1:fffe:8:808:800:0',
    '164:ff9b::808:808',
    '::64:ff9b:808:808',
  ])('is not %s, which that prefix does not contain', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test('may be directly adjacent to those ranges', () => {
    const neighbours = ranges
      .flatMap(({ bits, first, last }) => [
        { bits, value: first - 1n },
        { bits, value: last + 1n },
      ])
      .filter(({ bits, value }) => value >= 0n && value < 1n << BigInt(bits))
      .filter(({ bits, value }) => !isSpecial(value, bits))
      .filter(({ bits, value }) => bits === 32 || within(value, globalUnicast))
    expect(neighbours.length).toBeGreaterThan(15)
    for (const { bits, value } of neighbours) {
      expect(isPublicAddress(textOf(value, bits)), textOf(value, bits)).toBe(true)
    }
  })

  test('in IPv4 is any address outside the special ranges', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }), (value) => {
        expect(isPublicAddress(textOf(value, 32))).toBe(!isSpecial(value, 32))
      }),
      { numRuns: runs(5_000) },
    )
  })

  test('in IPv6 is any global unicast address outside the special ranges', () => {
    fc.assert(
      fc.property(fc.bigInt(globalUnicast.first, globalUnicast.last), (value) => {
        expect(isPublicAddress(textOf(value, 128))).toBe(!isSpecial(value, 128))
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('in IPv6 agrees with the ranges of Node at their borders', () => {
    const list = new BlockList()
    for (const [, cidr] of special) {
      const [network = '', prefix] = cidr.split('/')
      if (network.includes(':')) list.addSubnet(network, Number(prefix), 'ipv6')
    }
    const group = fc.constantFrom(
      '0',
      '1',
      '1ff',
      '200',
      'db8',
      'fff',
      '1000',
      '2000',
      '2001',
      '2002',
      '3fff',
      '3ffe',
    )
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const text = groups.join(':')
        const allocated = within(numberOf(text), globalUnicast)
        expect(isPublicAddress(text)).toBe(allocated && !list.check(text, 'ipv6'))
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('is otherwise never outside 2000::/3, from which all others are allocated', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 128n - 1n), (value) => {
        fc.pre(!within(value, globalUnicast) && !within(value, nat64))
        expect(isPublicAddress(textOf(value, 128)), textOf(value, 128)).toBe(false)
      }),
      { numRuns: runs(1_000) },
    )
  })

  test.each([
    ['127.0.0.1', '::ffff:127.0.0.1'],
    ['10.1.2.3', '::ffff:10.1.2.3'],
    ['169.254.169.254', '::ffff:169.254.169.254'],
    ['8.8.8.8', '::ffff:8.8.8.8'],
    ['127.0.0.1', '::127.0.0.1'],
    ['127.0.0.1', '64:ff9b::127.0.0.1'],
  ])('is not %s written as %s', (_, address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each(['fe80::1%eth0', 'fe80::1%1', '::1%lo', 'fd00::1%eth0'])(
    'is not %s with any zone',
    (address) => {
      expect(isPublicAddress(address)).toBe(false)
    },
  )

  test.each([
    ['a hostname', 'localhost'],
    ['a public hostname', 'shop.example'],
    ['an empty string', ''],
    ['a short IPv4 form', '127.1'],
    ['a decimal IPv4 form', '2130706433'],
    ['an octal IPv4 form', '0177.0.0.1'],
    ['a hexadecimal IPv4 form', '0x7f.0.0.1'],
    ['a decimal form of a public address', '134744072'],
    ['an address with a port', '8.8.8.8:443'],
    ['an address in brackets', '[2606:4700::1111]'],
    ['an address with a trailing dot', '8.8.8.8.'],
    ['an address after a space', ' 8.8.8.8'],
  ])('must be a valid address, not %s', (_, text) => {
    expect(isPublicAddress(text)).toBe(false)
    expect(isLoopbackAddress(text)).toBe(false)
  })
})

describe('a loopback address', () => {
  test.each(['127.0.0.1', '127.0.0.2', '127.255.255.254', '::1'])('is %s', (address) => {
    expect(isLoopbackAddress(address)).toBe(true)
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each([
    '126.255.255.255',
    '128.0.0.0',
    '0.0.0.0',
    '10.0.0.1',
    '169.254.169.254',
    '192.168.1.1',
    '8.8.8.8',
    '::',
    '::2',
    'fe80::1',
    'fd00::1',
    '127.example.com',
  ])('is not %s', (address) => {
    expect(isLoopbackAddress(address)).toBe(false)
  })
})

describe('the address in a URL', () => {
  test.each([
    ['http://127.1/', '127.0.0.1'],
    ['https://2130706433/', '127.0.0.1'],
    ['https://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['https://[2606:4700::1111]/', '2606:4700::1111'],
    ['https://8.8.8.8./', '8.8.8.8'],
  ])('of %s is %s', (url, address) => {
    expect(addressIn(new URL(url).hostname)).toBe(address)
  })

  test.each(['https://localhost/', 'https://1.example/', 'https://127.0.0.1.nip.io/'])(
    'of %s is not known before it is looked up',
    (url) => {
      expect(addressIn(new URL(url).hostname)).toBeUndefined()
    },
  )
})
