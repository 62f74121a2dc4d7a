/**
 * Prints the files of `src` that each operation executes, measured by V8 on the memory store, without an adapter. A
 * file counts if the operation calls one of its functions.
 *
 * Usage: npm run executed-files [-- --list <operation>]
 */
import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'
import { preparedOperations } from '../../test/support/prepared-operations.js'

const src = fileURLToPath(new URL('../../src/', import.meta.url))
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

async function executedBy(operation: () => Promise<unknown>): Promise<readonly string[]> {
  await session.post('Profiler.takePreciseCoverage')
  await operation()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return result
    .filter(({ url, functions }) => {
      const isOurs = url.startsWith('file:') && fileURLToPath(url).startsWith(src)
      return isOurs && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
    })
    .map(({ url }) => fileURLToPath(url).slice(src.length))
    .filter((file) => file !== 'built-in/memory-store.ts')
    .sort()
}

const measured: Record<string, readonly string[]> = {}
for (const [name, operation] of Object.entries(await preparedOperations())) {
  measured[name] = await executedBy(operation)
}
session.disconnect()
const listed = process.argv.indexOf('--list')
for (const [name, files] of Object.entries(measured)) {
  console.log(`${String(files.length).padStart(4)}  ${name}`)
  if (listed !== -1 && (process.argv[listed + 1] ?? name) === name) {
    for (const file of files) console.log(`        ${file}`)
  }
}
