import { execFileSync } from 'node:child_process'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { type Figure, interleaved, median } from './measure.js'

const rounds = 15

/** Measures the CPU time to import the library, and its size in a bundle. */
export async function footprint(): Promise<Figure[]> {
  const told = 'const { user, system } = process.cpuUsage(); console.log(user + system)'
  const run = (code: string) => async () =>
    Number(execFileSync(process.execPath, ['--input-type=module', '--eval', code + told])) / 1e3
  const cpu = await interleaved(rounds, {
    empty: run(''),
    import: run('import "open-payments-server"; '),
  })
  const added = median(cpu.import.map((value, index) => value - (cpu.empty[index] ?? 0)))
  const name = 'import, over an empty process, CPU'
  return [
    { name, value: added, unit: 'ms', target: { most: 30 } },
    {
      name: 'bundle of a resource server with all dependencies, minified and gzipped',
      value: (await bundled()) / 1_000,
      unit: 'kB',
      target: { most: 50 },
    },
  ]
}

/** Bundles a resource server that runs in its own process. A `node:` import would fail on this platform. */
async function bundled(): Promise<number> {
  const { outputFiles } = await build({
    stdin: {
      contents: 'export { createResourceServer, remoteGrants } from "open-payments-server"',
      resolveDir: process.cwd(),
    },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    write: false,
  })
  return gzipSync(outputFiles[0]?.contents ?? '').length
}
