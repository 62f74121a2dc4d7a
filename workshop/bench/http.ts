import { spawn } from 'node:child_process'
import { hash, verify } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { validateSignature, validateSignatureHeaders } from '@interledger/http-signature-utils'
import type { HttpRequest } from 'open-payments-server/adapter'
import { toExpress } from 'open-payments-server/express'
import {
  type BenchWallet,
  benchWallet,
  creation,
  floorSignature,
  type Library,
  newToken,
  origin,
  pairs,
} from './fixtures.js'
import { type Figure, interleaved, medianFigure, ratioFigure } from './measure.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const rounds = 9
const requestsPerRound = 4_000
const connections = 16

/** A server, and the requests to send to it. */
export interface Contestant {
  readonly server: Server
  /** Signs the requests of one run, directly before it, because a signature is accepted for five minutes only. */
  readonly requests: () => Promise<readonly HttpRequest[]>
  /** Returns why the server refused the last request that it refused. */
  readonly refusal?: () => string
}

/** The result of one run under load. */
export interface LoadResult {
  readonly perSecond: number
  /** The longest time of any request, in milliseconds. */
  readonly slowestMs: number
  /** CPU time of this process per request, in microseconds. */
  readonly cpuUs: number
}

/**
 * Measures verification behind HTTP: a server that verifies with this library and responds, the same server
 * with the published verifier, and a floor server that only does what every verification needs. Then measures
 * the whole creation of an incoming payment on the memory store with both verifiers.
 */
export async function behindHttp(library: Library, withPublished: Library): Promise<Figure[]> {
  const run = (contestant: Contestant) => async () =>
    (await load(contestant, requestsPerRound, connections)).perSecond
  const figures = await interleaved(rounds, {
    ours: run(await verifyingServer(library, 'ours')),
    published: run(await verifyingServer(library, 'published')),
    floor: run(await verifyingServer(library, 'floor')),
    create: run(await creatingServer(benchWallet(library))),
    createPublished: run(await creatingServer(benchWallet(withPublished))),
  })
  return [
    medianFigure(
      `verification behind HTTP, ${connections} connections`,
      figures.ours,
      'requests/s',
    ),
    medianFigure('with the published verifier', figures.published, 'requests/s'),
    medianFigure('floor server', figures.floor, 'requests/s'),
    ratioFigure(
      'verification behind HTTP: throughput against the published verifier',
      figures.ours,
      figures.published,
      { least: 1.8 },
    ),
    ratioFigure(
      'verification behind HTTP: throughput against the floor server',
      figures.ours,
      figures.floor,
      { least: 0.7 },
    ),
    medianFigure(`creation behind HTTP, ${connections} connections`, figures.create, 'requests/s'),
    ratioFigure(
      'creation behind HTTP: throughput against the published verifier',
      figures.create,
      figures.createPublished,
    ),
    ratioFigure(
      'creation behind HTTP: throughput against the floor server',
      figures.create,
      figures.floor,
    ),
  ]
}

/** A server where every request creates an incoming payment. */
export async function creatingServer(wallet: BenchWallet): Promise<Contestant> {
  const { value } = await newToken(wallet)
  return {
    server: createServer(toExpress(wallet.resources.handle)),
    requests: async () => [await creation(wallet, value)],
    refusal: () => wallet.refusals.last,
  }
}

/** A server that only verifies; its response is as long as that of a created payment. */
async function verifyingServer(
  library: Library,
  verifier: 'ours' | 'published' | 'floor',
): Promise<Contestant> {
  const wallet = benchWallet(library)
  const { value } = await newToken(wallet)
  const signedRequest = () => creation(wallet, value)
  const { body: answer = '' } = await wallet.resources.handle(await signedRequest())
  const check = verifiers(library, wallet)[verifier]
  const listener: RequestListener = (incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', async () => {
      const verified = await check(incoming, Buffer.concat(chunks))
      response.statusCode = verified ? 201 : 401
      response.setHeader('content-type', 'application/json')
      response.end(answer)
    })
  }
  return { server: createServer(listener), requests: async () => [await signedRequest()] }
}

function verifiers(library: Library, { key }: BenchWallet) {
  const verifySignature = library.createSignatureVerifier({ url: origin })
  const { base, signature } = floorSignature(key)
  return {
    async ours({ method = '', url = '', rawHeaders }: IncomingMessage, body: Buffer) {
      const { ok } = await verifySignature(
        { method, url, headers: pairs(rawHeaders), body },
        key.jwk,
      )
      return ok
    },
    async published({ method = '', url = '', headers }: IncomingMessage, body: Buffer) {
      const request = { method, url: origin + url, headers, body: body.toString() } as never
      return validateSignatureHeaders(request) && validateSignature(key.jwk as never, request)
    },
    floor(_: IncomingMessage, body: Buffer) {
      hash('sha512', body, 'buffer')
      return new Promise<boolean>((resolve) => {
        verify(null, base, key.publicKey, signature, (_error, verified) => resolve(verified))
      })
    },
  }
}

/** Loads a server in this process from a separate process. */
export async function load(
  { server, requests, refusal }: Contestant,
  total: number,
  connectionCount: number,
): Promise<LoadResult> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const file = join(mkdtempSync(join(tmpdir(), 'bench-')), 'requests.json')
  writeFileSync(file, JSON.stringify((await requests()).map(rawText)))
  // Collect garbage left by the preparation or by the previous contestant, so that this one does not pay for
  // it.
  collectGarbage()
  const before = process.cpuUsage()
  const output = await outputOf(
    'load.js',
    String(port),
    file,
    String(connectionCount),
    String(total),
  )
  const { user, system } = process.cpuUsage(before)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  const { perSecond, slowestMs, failed, response } = JSON.parse(output)
  if (failed > 0) {
    const reason = refusal?.() ?? 'unknown'
    throw new Error(
      `${failed} of ${total} requests failed. Reason: ${reason}. Last response:\n${response}`,
    )
  }
  return { perSecond, slowestMs, cpuUs: (user + system) / total }
}

function rawText({ method, url, headers, body }: HttpRequest): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  return `${method} ${url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${Buffer.from(body).toString('latin1')}`
}

function outputOf(script: string, ...parameters: string[]): Promise<string> {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const child = spawn(process.execPath, [path, ...parameters], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (text) => {
      output += text
    })
    child.on('error', reject)
    child.on('close', () => resolve(output))
  })
}
