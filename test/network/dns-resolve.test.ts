import { createSocket, type Socket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { dnsResolve } from '../../src/network/guarded-fetch.js'

const never = new AbortController().signal

describe('the resolver of this library', () => {
  let servers: Socket[] = []
  afterEach(() => {
    for (const server of servers) server.close()
    servers = []
  })

  /** A module like `node:dns` whose queries go to a server that the test controls. */
  async function dnsWith(answer: (query: Buffer) => Buffer | undefined) {
    const queries: Buffer[] = []
    const server = createSocket('udp4')
    servers.push(server)
    server.on('message', (query, { port, address }) => {
      queries.push(query)
      server.emit('query')
      const response = answer(query)
      if (response !== undefined) server.send(response, port, address)
    })
    server.bind(0, '127.0.0.1')
    await once(server, 'listening')
    class Resolver extends dns.promises.Resolver {
      constructor(options?: dns.ResolverOptions) {
        super(options)
        this.setServers([`127.0.0.1:${server.address().port}`])
      }
    }
    return { dns: { promises: { Resolver } }, server, queries }
  }

  test('asks for IPv4 and IPv6 addresses', async () => {
    const { dns, queries } = await dnsWith((query) => response(query, { 1: '08080808' }))
    expect(await dnsResolve(dns)('shop.example', never)).toEqual(['8.8.8.8'])
    expect(queries.map(typeOf).sort()).toEqual([1, 28])
  })

  test('returns all addresses, IPv4 first', async () => {
    const six = '26064700000000000000000000001111'
    const { dns } = await dnsWith((query) => response(query, { 1: '08080808', 28: six }))
    const found = await dnsResolve(dns)('shop.example', never)
    expect(found).toEqual(['8.8.8.8', '2606:4700::1111'])
  })

  test('rejects for a name without addresses', async () => {
    const { dns } = await dnsWith((query) => response(query, {}))
    await expect(dnsResolve(dns)('shop.example', never)).rejects.toMatchObject({ code: 'ENODATA' })
  })

  test('cancels its queries when the signal aborts, and then ends', async () => {
    const { dns, server, queries } = await dnsWith(() => undefined)
    const controller = new AbortController()
    const found = dnsResolve(dns)('slow.example', controller.signal)
    while (queries.length < 2) await once(server, 'query')
    controller.abort()
    await expect(found).rejects.toMatchObject({ code: 'ECANCELLED' })
  })

  test('asks nothing for a signal that has already aborted', async () => {
    const { dns, queries } = await dnsWith(() => undefined)
    const aborted = AbortSignal.abort(new Error('too late'))
    await expect(dnsResolve(dns)('shop.example', aborted)).rejects.toThrow('too late')
    expect(queries).toEqual([])
  })
})

/** Returns the type of the question (RFC 1035 section 4.1.2): 1 is A, 28 is AAAA. */
function typeOf(query: Buffer): number {
  return query.readUInt16BE(query.indexOf(0, 12) + 1)
}

/** Answers a query with one record, given as hexadecimal data by type, or with none (RFC 1035 section 4.1). */
function response(query: Buffer, records: Readonly<Record<number, string>>): Buffer {
  const type = typeOf(query)
  const data = Buffer.from(records[type] ?? '', 'hex')
  const question = query.subarray(12, query.indexOf(0, 12) + 5)
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(data.length === 0 ? 0 : 1, 6)
  header.writeUInt16BE(0, 10)
  if (data.length === 0) return Buffer.concat([header, question])
  const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length])
  return Buffer.concat([header, question, record, data])
}
