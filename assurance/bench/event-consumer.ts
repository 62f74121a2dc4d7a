import * as library from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { connectionString } from './database.js'
import { benchWallet } from './fixtures.js'

/** What a consumer has done. */
export interface ConsumerResult {
  readonly delivered: number
  /** The calls of the store, each of which is one statement. */
  readonly calls: number
}

const [, , schema = '', handlerMs = ''] = process.argv

/** Delivers events from the message `start` to the message `stop`, and answers other messages with what it has done. */
const pool = new Pool({ connectionString, max: 10 })
let calls = 0
const counted = Object.entries(postgresStore(pool, { schema })).map(([name, call]) => [
  name,
  (...args: unknown[]) => {
    calls += 1
    return (call as (...args: unknown[]) => unknown)(...args)
  },
])
const { resources } = benchWallet(library, Object.fromEntries(counted) as library.Store)
await Promise.all(Array.from({ length: 4 }, () => pool.query('SELECT 1')))
let delivered = 0
let consumer: library.EventConsumer | undefined
process.on('message', async (message) => {
  if (message === 'start') {
    consumer = library.consumeEvents([resources.events], async () => {
      const ms = Number(handlerMs)
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
      delivered += 1
    })
  } else if (message === 'stop') {
    await consumer?.stop()
    await pool.end()
    process.disconnect()
  } else process.send?.({ delivered, calls })
})
process.send?.('ready')
