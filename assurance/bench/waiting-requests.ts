/**
 * Prints how much memory 5,000 grant requests with bodies of 60 KB hold while the key set of their client does not
 * arrive: `npx tsx assurance/bench/waiting-requests.ts`, or with another `timeoutMs` to keep them waiting.
 */
import { remoteClientKeys } from 'open-payments-server'
import { usedBytes } from '../../test/support/heap.js'
import { createWorld, grantEndpoint, incomingAccess } from '../../test/support/world.js'

const count = 5_000
const timeoutMs = Number(process.argv[2] ?? 20_000)
/** Held, as a network would hold the requests in progress. */
const unanswered: unknown[] = []
const clientKeys = remoteClientKeys({
  timeoutMs,
  fetch: () => new Promise((resolve) => unanswered.push(resolve)),
})
const world = createWorld({ auth: { clientKeys } })
const client = world.client('shop')
const body = { client: client.client, access_token: { access: [incomingAccess] } }

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const bytes = () => usedBytes() + process.memoryUsage().arrayBuffers
const before = bytes()
let answered = 0
function print(when: string): void {
  const used = Math.round((bytes() - before) / 2 ** 20)
  console.log(`${when}: ${used} MiB, ${answered} of ${count} requests answered`)
}

for (let i = 0; i < count; i++) {
  const padded = { ...body, padding: `${i}`.padEnd(60_000, 'x') }
  void client.post(grantEndpoint, padded).then(() => {
    answered += 1
  })
  if (i % 50 === 0) await pause(0)
}
await pause(500)
print('while they wait')
await pause(timeoutMs)
print(`after ${timeoutMs} ms`)
