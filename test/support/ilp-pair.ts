import { randomUUID } from 'node:crypto'
import { freePort } from 'open-payments-programs'
import { ilpAddressOf, peerWallet, type RailSettings } from '../../examples/ilp/rail.js'
import { createIlpWallet, type IlpWallet } from '../../examples/ilp/wallet.js'
import { type CreatedWallet, startCreatedWallet } from './created-wallet.js'

/** Returns the origins of two wallets. */
export async function twoOrigins(): Promise<readonly [string, string]> {
  return [`http://localhost:${await freePort()}`, `http://localhost:${await freePort()}`]
}

/** Starts two wallets that are each other's peers. Both charge 1 %. */
export async function startIlpPair(more: Pick<RailSettings, 'creditMax'> = {}) {
  const token = randomUUID()
  const start = (baseUrl: string, peer: string): Promise<CreatedWallet<IlpWallet>> => {
    const ilpAddress = ilpAddressOf(baseUrl)
    const ilp = {
      ilpAddress,
      peers: [peerWallet(peer, ilpAddress)],
      token,
      assets: ['USD', 'EUR'].map((assetCode) => ({ assetCode, assetScale: 2 })),
      timeoutMs: 60_000,
      allowLoopback: true,
      ...more,
    }
    return startCreatedWallet({
      baseUrl,
      create: (settings, database, ports) => createIlpWallet(settings, database, ilp, ports),
    })
  }
  const [home, away] = await twoOrigins()
  const [one, two] = [await start(home, away), await start(away, home)]
  return { one, two, stop: () => Promise.all([one.stop(), two.stop()]) }
}
