import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { type PostgresPool, postgresStore } from '../../../adapters/postgres.js'

/** A pool of `pg` whose client reports the end of its connection as soon as it is passed on. */
function poolOfEndedConnections() {
  const released: unknown[] = []
  const ended = Object.assign(new Error('terminating connection'), { code: '57P01' })
  const client = Object.assign(new EventEmitter(), {
    query: () => Promise.reject(ended),
    release: (broken?: boolean) => void released.push(broken),
  })
  const pool = {
    totalCount: 1,
    query: () => Promise.reject(new Error('not used')),
    connect(callback?: (error: unknown, taken: typeof client) => void) {
      callback?.(undefined, client)
      client.emit('error', ended)
      return Promise.resolve(client)
    },
  }
  return { pool: pool as unknown as PostgresPool, client, released, ended }
}

describe('a connection that ends as soon as the pool passes it on', () => {
  test('rejects the operation, and does not end the process', async () => {
    const { pool, client, released, ended } = poolOfEndedConnections()
    await expect(postgresStore(pool).load('grant', 'any')).rejects.toBe(ended)
    expect(released).toEqual([true])
    expect(client.listenerCount('error')).toBe(0)
  })
})
