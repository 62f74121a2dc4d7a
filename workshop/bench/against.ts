import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { UsageError } from 'open-payments-programs'
import { runScript } from '../script.js'
import { benchWallet, creation, type Library, newToken, signed } from './fixtures.js'
import { cpuUs, interleaved, medianFigure, ratioFigure } from './measure.js'
import { newPayer, pay, paymentRequests } from './payer.js'

const run = promisify(execFile)
const folder = '.bench/against'
const rounds = 61
const calls = 100

const usage = `Usage: npm run bench:against -- --revision <commit>

Compares signed operations of the working tree with those of an earlier commit, on the memory store: both libraries in
one process, alternately. Prints the CPU time of one operation now and its ratio to that before, which other work on the
machine changes little.
`

/** Bundles the library's sources in this directory, and loads them. */
async function load(root: string, name: string): Promise<Library> {
  const outfile = join(folder, `${name}.mjs`)
  await build({
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    tsconfigRaw: '{}',
    entryPoints: [join(root, 'src/index.ts')],
    outfile,
  })
  return await import(pathToFileURL(outfile).href)
}

async function earlier(revision: string): Promise<Library> {
  const root = join(folder, 'earlier')
  await mkdir(root, { recursive: true })
  const archive = join(folder, 'earlier.tar')
  try {
    await run('git', ['archive', '--output', archive, revision, 'src', 'adapters'])
  } catch {
    throw new UsageError('--revision must name a commit')
  }
  await run('tar', ['-x', '-f', archive, '-C', root])
  return load(root, 'earlier-library')
}

/** Each operation returns the average CPU time of one call in microseconds. */
type Operations = Readonly<
  Record<'create incoming payment' | 'rotate token' | 'pay by quote', () => Promise<number>>
>

async function operationsOf(library: Library): Promise<Operations> {
  const incoming = benchWallet(library)
  const payer = await newPayer(benchWallet(library))
  const rotating = benchWallet(library)
  let token = await newToken(rotating)

  async function rotate(): Promise<number> {
    const { auth, key } = rotating
    let spent = 0
    for (let i = 0; i < calls; i += 1) {
      const request = await signed(key, { method: 'POST', url: token.manage, token: token.value })
      spent += await cpuUs(async () => {
        const { status, body = '' } = await auth.handle(request)
        if (status !== 200) throw new Error(body)
        token = JSON.parse(body).access_token
      })
    }
    return spent / calls
  }

  return {
    async 'create incoming payment'() {
      // A token of the first round expires while a busy machine measures.
      const request = await creation(incoming, (await newToken(incoming)).value)
      const used = await cpuUs(async () => {
        for (let i = 0; i < calls; i += 1) {
          const { status, body } = await incoming.resources.handle(request)
          if (status !== 201) throw new Error(body)
        }
      })
      return used / calls
    },
    'rotate token': rotate,
    async 'pay by quote'() {
      const requests = await paymentRequests(payer, calls)
      return (
        (await cpuUs(async () => {
          for (const request of requests) await pay(payer.wallet, request)
        })) / calls
      )
    },
  }
}

await runScript(
  { name: 'bench:against', usage, options: { revision: { type: 'string' } } },
  async ({ revision = 'HEAD' }) => {
    await rm(folder, { recursive: true, force: true })
    const before = await operationsOf(await earlier(revision))
    const now = await operationsOf(await load('.', 'library'))
    for (const name of Object.keys(now) as (keyof Operations)[]) {
      // Until the engine has compiled both.
      for (let i = 0; i < 10; i += 1) for (const each of [before, now]) await each[name]()
      const figures = await interleaved(rounds, { before: before[name], now: now[name] })
      const { value: us } = medianFigure(name, figures.now, 'µs')
      const { value: ratio } = ratioFigure(name, figures.now, figures.before)
      console.log(`${name.padEnd(24)} ${us.toFixed(1).padStart(7)} µs  ${ratio.toFixed(3)}`)
    }
    return true
  },
)
