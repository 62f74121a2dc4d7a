import { toFetch } from 'open-payments-server'
import { createWallet } from './wallet.ts'

const port = Number(Deno.env.get('PORT') ?? 3000)
const { handle } = createWallet(`http://localhost:${port}`)

Deno.serve({ port }, toFetch(handle))
