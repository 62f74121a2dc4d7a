import { start } from 'open-payments-programs'

await start(async () => (await import('./program.js')).runWallet)
