import { once } from 'node:events'
import { openDatabase } from './database.js'
import { readSettings } from './settings.js'
import { startWallet } from './start.js'

const settings = readSettings()
const database = openDatabase(settings.database)
const { baseUrl, stop } = await startWallet(settings, database)
console.log(`Wallet addresses: ${baseUrl}/alice and ${baseUrl}/bob`)
console.log(
  `Connected apps:   ${baseUrl}/apps (sign in as alice or bob with DEMO_PASSWORD of .env)`,
)
console.log(`Keys of apps:     ${baseUrl}/keys`)
console.log(`Check it:         npx open-payments-doctor --allow-private ${baseUrl}/alice`)

await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
await stop()
await database.close()
