import { toFetch } from 'open-payments-server'
import { createWallet } from './wallet.js'

const port = Number(process.env['PORT'] ?? 3000)
const { handle } = createWallet(`http://localhost:${port}`)

Bun.serve({ port, fetch: toFetch(handle) })
