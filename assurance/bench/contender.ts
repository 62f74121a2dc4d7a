import { once } from 'node:events'
import * as library from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { connectionString } from './database.js'
import { benchWallet } from './fixtures.js'

/** What one process did. */
export interface ContenderResult {
  received: number
  /** The number of calls that lost races until their deadline. */
  gaveUp: number
  /** The number of connections that the pool closed. */
  closed: number
}

const [, , schema = '', durationMs = '', ...ids] = process.argv
const callers = 4

/** Receives into the payments from several callers until the time is over, and reports the counts. */
const pool = new Pool({ connectionString, max: callers })
const result: ContenderResult = { received: 0, gaveUp: 0, closed: 0 }
const { resources } = benchWallet(library, postgresStore(pool, { schema }))
await Promise.all(Array.from({ length: callers }, () => pool.query('SELECT 1')))
process.send?.('ready')
await once(process, 'message')
pool.on('remove', () => {
  result.closed += 1
})

const end = performance.now() + Number(durationMs)
await Promise.all(
  Array.from({ length: callers }, async (_, caller) => {
    for (let turn = caller; performance.now() < end; turn++) {
      const transferId = `${process.pid} ${caller} ${turn}`
      const amount = { value: '1', assetCode: 'USD', assetScale: 2 }
      try {
        await resources.incomingPayments.receive(ids[turn % ids.length] ?? '', {
          transferId,
          amount,
        })
        result.received += 1
      } catch (error) {
        if (!(error instanceof library.ContentionError)) throw error
        result.gaveUp += 1
      }
    }
  }),
)
process.send?.({ ...result })
pool.removeAllListeners('remove')
await pool.end()
process.disconnect()
