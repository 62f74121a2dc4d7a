import { Pool } from 'pg'
import { postgresStore } from '../../adapters/postgres.js'
import { custodianAt } from '../../examples/custodian/custodian.js'
import { startSettlements } from '../../examples/custodian/wallet.js'
import { createSpendingWorld } from '../support/spending.js'

// A wallet whose ledger is a custodian, which a test kills and starts again. All that it knows is in its database.
const {
  PORT = '0',
  DATABASE = '',
  SCHEMA = '',
  CUSTODIAN_URL = '',
  SECRET: secret = '',
} = process.env
const pool = new Pool({ connectionString: DATABASE, max: 4 })
pool.on('error', () => undefined)
const store = postgresStore(pool, { schema: SCHEMA })
const real = { clock: Date, random: crypto, onError: console.error }
const world = createSpendingWorld({ store, auth: real, resources: real })
const options = { store, custodian: custodianAt(CUSTODIAN_URL), validMs: 5_000, marginMs: 2_000 }
const quiet = { ...options, onError: () => undefined } // lost replies are what the test is about
await startSettlements(world, quiet, { port: Number(PORT), secret, leaseMs: 15_000 })
console.log('ready')
