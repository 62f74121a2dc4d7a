import { randomUUID } from 'node:crypto'
import { createClient } from '@redis/client'
import { postgresStore } from '../../../adapters/postgres.js'
import { redisStore } from '../../../examples/stores/redis.js'
import type { Handler, Store } from '../../../src/index.js'
import { freshPglite, freshPostgres, servers } from '../databases.js'
import { hosts } from '../hosts.js'
import { type RunOptions, runInputs } from './run.js'
import { overSockets } from './sockets.js'
import type { Report } from './tally.js'

/** Where inputs go: a store, or an adapter over real sockets. */
export type Part = 'memory' | 'pglite' | 'postgres' | 'redis' | Adapter
type Adapter = 'express' | 'fastify' | 'hono'

export const parts: readonly Part[] = [
  'memory',
  'pglite',
  ...(servers.PostgreSQL === undefined ? [] : (['postgres'] as const)),
  ...(servers.Redis === undefined ? [] : (['redis'] as const)),
  'express',
  'fastify',
  'hono',
]

/** Runs inputs at a part, with resources of its own that are removed afterwards. */
export function runPart(part: Part, options: RunOptions): Promise<Report> {
  if (part === 'memory') return runInputs(options)
  if (part === 'express' || part === 'fastify' || part === 'hono') return runAdapter(part, options)
  return runStore(part, options)
}

async function runAdapter(adapter: Adapter, options: RunOptions): Promise<Report> {
  const host = hosts.find(({ name }) => name === adapter)
  if (host === undefined) throw new Error(`no host ${adapter}`)
  let close = async () => {}
  const over = async (handle: Handler) => {
    const served = await overSockets(host, handle)
    close = served.close
    return served.transport
  }
  try {
    return await runInputs({ ...options, over })
  } finally {
    await close()
  }
}

type Opened = { readonly store: Store; close(): Promise<unknown> }

async function runStore(part: keyof typeof open, options: RunOptions): Promise<Report> {
  const { store, close } = await open[part]()
  try {
    return await runInputs({ ...options, newStore: () => store })
  } finally {
    await close()
  }
}

const open = {
  async pglite(): Promise<Opened> {
    const database = await freshPglite()
    return { store: postgresStore(database), close: () => database.close() }
  },
  async postgres(): Promise<Opened> {
    const { pool, schema, drop } = await freshPostgres()
    return { store: postgresStore(pool, { schema }), close: drop }
  },
  async redis(): Promise<Opened> {
    const prefix = newPrefix()
    const client = createClient({ url: servers.Redis ?? '' })
    await client.connect()
    async function close() {
      const keys = await client.keys(`*${prefix}*`)
      if (keys.length > 0) await client.del(keys)
      await client.close()
    }
    return { store: redisStore(client, { prefix }), close }
  },
}

function newPrefix(): string {
  return `inputs_${randomUUID().replaceAll('-', '')}`
}
