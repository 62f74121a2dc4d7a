import * as library from 'open-payments-server'
import { type StoreName, storeKinds } from './event-stores.js'
import { benchWallet } from './fixtures.js'

/** What a consumer has done. */
export interface ConsumerResult {
  readonly delivered: number
  /** The calls of the store, each of which is one statement. */
  readonly calls: number
}

const [, , kind, place = '', handlerMs = ''] = process.argv

/** Delivers events from the message `start` to the message `stop`, and answers other messages with what it has done. */
const { store, close } = await storeKinds[kind as StoreName].open(place)
let calls = 0
const counted = Object.entries(store).map(([name, call]) => [
  name,
  (...args: unknown[]) => {
    calls += 1
    return (call as (...args: unknown[]) => unknown)(...args)
  },
])
const { resources } = benchWallet(library, Object.fromEntries(counted) as library.Store)
let delivered = 0
let consumer: library.EventConsumer | undefined
process.on('message', async (message) => {
  if (message === 'start') {
    consumer = library.consumeEvents([resources.events], async () => {
      const ms = Number(handlerMs)
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
      delivered += 1
    })
  } else if (message === 'stop') {
    await consumer?.stop()
    await close()
    process.disconnect()
  } else process.send?.({ delivered, calls })
})
process.send?.('ready')
