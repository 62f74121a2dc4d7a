import { PGlite } from '@electric-sql/pglite'
import { openAccount } from 'create-open-payments-server/wallet/ledger'
import { migrate } from 'create-open-payments-server/wallet/tables'
import { databaseOn } from '../../examples/created-wallet/embedded-database.js'
import { startDemoWallet } from '../../examples/demo/wallet.js'
import { ilpAddressOf, peerWallet } from '../../examples/ilp/rail.js'
import { createIlpWallet } from '../../examples/ilp/wallet.js'

// A wallet with a peer, which a test kills and starts again. All that it knows is in its directory.
const { BASE_URL: baseUrl = '', PEER = '', DATA_DIR = '' } = process.env
const lite = await PGlite.create(DATA_DIR)
const database = databaseOn(lite)
await migrate(database)
const asset = { assetCode: 'USD', assetScale: 2 }
await openAccount(database, {
  url: `${baseUrl}/alice`,
  owner: 'alice',
  ...asset,
  balance: 500_000n,
})
const ilpAddress = ilpAddressOf(baseUrl)
const ilp = {
  ilpAddress,
  peers: [peerWallet(PEER, ilpAddress)],
  token: 'a-secret-that-both-share',
  assets: [asset],
  timeoutMs: 60_000,
  allowLoopback: true,
}
const { stop } = await startDemoWallet({
  adapter: 'express',
  outboundTimeoutMs: 60_000,
  baseUrl,
  database,
  create(settings, own, ports) {
    const kept = { ...settings, paymentDetailsSecret: Buffer.alloc(32, 1) }
    return createIlpWallet(kept, own, ilp, { ...ports, mustConfirm: () => false })
  },
})
process.once('SIGTERM', async () => {
  await stop()
  await lite.close()
})
console.log('ready')
