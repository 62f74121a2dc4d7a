import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { freePort } from 'open-payments-programs'
import { openShop } from '../../examples/demo/shop.js'
import type { WalletProcess } from '../proxies/wallet-process.js'
import { typescript } from './clients/all.js'
import { runSequence, type SequenceOptions } from './clients/sequence.js'
import { freshPostgres, servers } from './databases.js'
import { type SeenRequest, startFaultyProxy } from './faulty-proxy.js'
import { type ReverseProxy, reverseProxies, startReverseProxy } from './proxies.js'

/** The names of the proxies that are installed, with commas. `.ci/proxies` sets it. */
const installed = process.env['TEST_PROXIES']?.split(',') ?? []

/** The proxies that `.ci/proxies` has installed. */
export const installedProxies = reverseProxies.filter(({ name }) => installed.includes(name))

export const metadata = {
  order: 'Fish & chips <large>, 1/2 "crisp"',
  'café/zoë': 'naïve 🐟 日本 \\',
}

export type ProxiedWallet = Awaited<ReturnType<typeof startProxiedWallet>>

/**
 * Starts a wallet of two processes on one PostgreSQL, with a link in front of each, which tests can break, and a
 * client. A proxy in front of both is started for each of its uses.
 */
export async function startProxiedWallet() {
  const fresh = await freshPostgres({ migrated: false })
  const shop = await openShop()
  const own = await freePort()
  const baseUrl = `http://localhost:${own}`
  const links = [await startFaultyProxy('127.0.0.1'), await startFaultyProxy('127.0.0.1')] as const
  const secret = randomBytes(32).toString('hex')
  const processes: ChildProcess[] = []
  for (const link of links) {
    const port = await freePort()
    link.upstream = port
    const connectionString = servers.PostgreSQL ?? ''
    const options = { baseUrl, port, connectionString, schema: fresh.schema, secret }
    processes.push(await startProcess(options))
  }
  await fresh.pool.query(`UPDATE ${fresh.schema}.accounts SET balance = 1000000000`)

  return {
    own,
    links,
    /** Runs the proxy meanwhile, in the state in which it starts. */
    async behind<Result>(
      proxy: ReverseProxy,
      work: () => Promise<Result>,
      config?: string,
    ): Promise<Result> {
      const upstreams = links.map(({ origin }) => Number(new URL(origin).port)) as [number, number]
      const { stop } = await startReverseProxy(proxy, { own, upstreams }, config)
      try {
        return await work()
      } finally {
        await stop()
      }
    },
    /** Lives as a client, from its first grant to its last. */
    live(options: Partial<SequenceOptions> = {}) {
      const [alice, bob, auth] = ['alice', 'bob', 'auth'].map((path) => `${baseUrl}/${path}`)
      const running = { alice, bob, auth, op: baseUrl } as SequenceOptions['running']
      const expiresAt = BigInt(Date.now() + 3_600_000) * 1_000_000n
      const given = { dialect: typescript, running, shop, expiresAt, metadata, waits: true }
      return runSequence({ ...given, ...options })
    },
    /** How many outgoing payments there are. */
    async payments(): Promise<number> {
      const { rows } = await fresh.pool.query(
        `SELECT count(*) FROM ${fresh.schema}.open_payments_records WHERE kind = 'outgoing-payment'`,
      )
      return Number(rows[0].count)
    },
    async stop() {
      await Promise.all(processes.map(stopProcess))
      await Promise.all(links.map((link) => link.stop()))
      shop.stop()
      await fresh.drop()
    },
  }
}

async function startProcess(options: WalletProcess): Promise<ChildProcess> {
  const program = new URL('../proxies/wallet-process.ts', import.meta.url)
  const child = fork(program, [JSON.stringify(options)], { execArgv: ['--import', 'tsx'] })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the process of the wallet has ended with ${code}`)
  })
  await Promise.race([once(child, 'message'), ended])
  ended.catch(() => undefined)
  return child
}

async function stopProcess(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.disconnect()
  await ended
}

/** The first value of a header of a request. */
export function headerOf({ headers }: SeenRequest, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1]
}
