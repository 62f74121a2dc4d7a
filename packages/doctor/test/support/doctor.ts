import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express, { type Express } from 'express'
import { toExpress } from 'open-payments-server/express'
import { manualClock } from 'open-payments-test-support/clock'
import {
  type FaultyProxy,
  type ProxyFault,
  startFaultyProxy,
} from 'open-payments-test-support/faulty-proxy'
import { listening, stopped } from 'open-payments-test-support/hosts'
import { jwkOf, testKey } from 'open-payments-test-support/keys'
import { createWorld, type World, type WorldOptions } from 'open-payments-test-support/world'
import { keepingLoneQuery } from '../../src/lone-query.js'
import type { DoctorNetwork } from '../../src/network.js'
import type { DoctorReport } from '../../src/report.js'
import { runProgram } from '../../src/run.js'

/** A wallet whose servers run on the true time. */
export function livingWorld(options: WorldOptions = {}): World {
  const world = createWorld({ clock: { ...manualClock(), now: Date.now }, ...options })
  world.client('shop')
  return world
}

/** Mounts the servers of a wallet as the README does. */
export function mounted(world: World, app: Express = express()): Express {
  return app
    .set('env', 'test')
    .use('/auth', toExpress(world.auth.handle))
    .use('/op', toExpress(world.resources.handle))
    .use(toExpress(world.wallets.handle))
}

export interface Examination {
  readonly fault?: ProxyFault
  /** How long the certificate is valid. Default 90. */
  readonly certificateDays?: number
  /** The addresses of every host in DNS. */
  readonly addresses?: readonly string[]
  /** The arguments of the program. Default: the wallet address of Alice. */
  readonly args?: readonly string[]
  /** Identifies the client by its wallet address. */
  readonly asShop?: boolean
}

/** Runs the doctor on an application that is published as `https://wallet.example`. */
export async function examined(app: Express | Server, options: Examination = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'doctor-'))
  const server = app instanceof Server ? app : createServer(app)
  const proxy = await startFaultyProxy()
  try {
    proxy.upstream = await listening(server)
    proxy.fault = options.fault
    const { args = ['https://wallet.example/alice'] } = options
    const shop = options.asShop === true ? asShop(folder) : []
    // A slow machine may take long. What the test itself says comes later, and counts.
    const given = ['--allow-private', '--json', '--timeout', '600', ...shop, ...args]
    const { code, out } = await ran(given, published(proxy, options))
    return { code, report: JSON.parse(out) as DoctorReport }
  } finally {
    rmSync(folder, { recursive: true })
    await proxy.stop()
    await stopped(server)
  }
}

/** Runs the program, and returns its exit code and what it printed. */
export async function ran(args: readonly string[], network?: DoctorNetwork, isInteractive = false) {
  const printed = { out: '', err: '' }
  const terminal = {
    out(text: string) {
      printed.out += text
    },
    err(text: string) {
      printed.err += text
    },
    isInteractive,
  }
  return { code: await runProgram(args, terminal, network), ...printed }
}

function asShop(folder: string): readonly string[] {
  const file = join(folder, 'key.pem')
  writeFileSync(file, testKey('shop').privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return ['--client', 'https://shop.example', '--key', file]
}

/** Returns the checks with a finding, each with its severity. */
export function found({ findings }: DoctorReport): readonly string[] {
  return findings.map(({ check, severity }) => `${severity} ${check}`)
}

/** Returns the finding of a check, with the lines of its fix as one text. */
export function findingOf({ findings }: DoctorReport, check: string) {
  const one = findings.find((each) => each.check === check)
  if (one === undefined) throw new Error(`no finding of ${check}`)
  return { ...one, fix: one.fix.join('\n') }
}

/** Terminates TLS for the wallet, and serves the key set of the shop. Other hosts are not in DNS. */
function published(
  { origin }: FaultyProxy,
  { certificateDays = 90, addresses = ['93.184.216.34', '2606:2800:220:1::7'] }: Examination,
): DoctorNetwork {
  const send = keepingLoneQuery(fetch)
  return {
    async fetch(input, init) {
      const { hostname, origin: published } = new URL(String(input))
      if (hostname === 'localhost') return fetch(input, init)
      if (hostname === 'shop.example') return Response.json({ keys: [jwkOf(testKey('shop'))] })
      if (!/^(\w+\.)?(wallet|login)\.example$/.test(hostname)) throw notInDns(hostname)
      return send(origin + String(input).slice(published.length), init)
    },
    certificateDays: async () => certificateDays,
    addresses: async (hostname) => {
      if (hostname.endsWith('.invalid')) throw notInDns(hostname)
      return addresses
    },
  }
}

function notInDns(hostname: string) {
  const cause = Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' })
  return new TypeError('fetch failed', { cause })
}

const uuid = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g

/** Returns each finding as one line. Ids are replaced by `{id}`. */
export function headlines({ findings }: DoctorReport): readonly string[] {
  return findings.map(({ severity, check, what }) =>
    `${severity.toUpperCase()} ${check}: ${what}`
      .replace(uuid, '{id}')
      .replace(/(?<=\/)(?=[\w.-]*\d)[\w.-]{21,}/g, '{id}'),
  )
}
