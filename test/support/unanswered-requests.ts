/**
 * Sends requests to a server that never completes a response, collects garbage, and prints how many of them end.
 * Run it with `--expose-gc`, because Node 20 and early releases of Node 22 lose some time-outs in a collection.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type DeliveredEvent, type EventHandler, guardedFetch } from 'open-payments-server'
import { webhookSender } from '../../examples/webhooks/sender.js'

const count = 50
const timeoutMs = 1_000
const arrivalMs = 400
/** A later timer than all others: when it fires, every time-out that still exists has fired. */
const controlMs = 3_000

const server = createServer((request, response) => {
  if (request.url !== '/drip') return
  response.writeHead(200, { 'content-type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const guarded = guardedFetch({ allowLoopback: true, timeoutMs })
const lasting = new AbortController()
const delivery = { signal: lasting.signal, attempt: 1 } as Parameters<EventHandler>[1]
const webhook = webhookSender({
  url: `${origin}/hook`,
  secret: `whsec_${Buffer.alloc(24).toString('base64')}`,
  timeoutMs,
})
const event = { id: 'e', type: 'grant.approved', at: 0, data: {} } as unknown as DeliveredEvent

const senders: Readonly<Record<string, () => Promise<unknown>>> = {
  'guarded fetch without a response': () => guarded(new URL(`${origin}/silent`)),
  'guarded fetch of an endless body': () => guarded(new URL(`${origin}/drip`)),
  'guarded fetch with a signal of its caller': () =>
    guarded(new URL(`${origin}/silent`), { signal: lasting.signal }),
  'webhook without a response': async () => webhook(event, delivery),
}

const ended: Record<string, number> = {}
for (const [name, send] of Object.entries(senders)) {
  ended[name] = 0
  for (let i = 0; i < count; i++) {
    send().catch(() => {
      ended[name] = (ended[name] ?? 0) + 1
    })
  }
}
// Most requests have arrived then. On a slow machine time-outs may end some before, which does no harm.
await new Promise((resolve) => setTimeout(resolve, arrivalMs))
const collectGarbage = (globalThis as { gc?: () => void }).gc
if (collectGarbage === undefined) throw new Error('run it with --expose-gc')
collectGarbage()
collectGarbage()
await new Promise((resolve) => setTimeout(resolve, controlMs))
console.log(JSON.stringify({ node: process.version, count, ended }))
process.exit()
