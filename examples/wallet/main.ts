import { type AdapterName, adapters, startWallet } from './start.js'

const stopWithinMs = 9_000

async function main(): Promise<void> {
  const { PORT = '3000', ADAPTER = 'express', BASE_URL } = process.env
  if (!Object.hasOwn(adapters, ADAPTER)) {
    throw new Error(`ADAPTER must be one of ${Object.keys(adapters).join(', ')}`)
  }
  if (!/^\d{1,5}$/.test(PORT) || Number(PORT) > 65_535)
    throw new Error('PORT must be a port number')
  const adapter = ADAPTER as AdapterName
  const published = BASE_URL === undefined ? {} : { baseUrl: BASE_URL.replace(/\/$/, '') }
  const { wallet, baseUrl, stop } = await startWallet({ adapter, port: Number(PORT), ...published })

  console.log(`The example wallet is ready (${adapter}).`)
  console.log(`  authorization server  ${baseUrl}/auth`)
  console.log(`  resource server       ${baseUrl}/op`)
  for (const { url, assetCode } of wallet.accounts) {
    console.log(`  wallet address        ${url} (${assetCode})`)
  }
  console.log(`  funds arrive at       ${baseUrl}/ledger/transfers`)

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      setTimeout(() => process.exit(1), stopWithinMs).unref()
      stop().then(() => process.exit(0))
    })
  }
}

await main()
