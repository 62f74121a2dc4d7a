import { expect, test } from 'vitest'
import type { PacketBook } from '../src/index.js'
import { createLink, type Fate, useSkippingClock } from './paying-wallet.js'
import { booksIn, cent } from './receiving-wallet.js'

useSkippingClock()

/** A book that records the first packet only after `until`, although it records others before. */
function delayed(book: PacketBook, until: Promise<unknown>): PacketBook {
  let packets = 0
  return {
    ...book,
    async reserve(packet) {
      packets += 1
      if (packets === 1) await until
      return book.reserve(packet)
    },
  }
}

/** A payment to a wallet that closes no packets, and a process that records its first packet only after `until`. */
async function open(until: Promise<unknown>, fate: Fate) {
  const here = booksIn()
  const setting = {
    here,
    there: booksIn(),
    receiver: 'USD',
    amount: 1_000n,
    isOurs: false,
  } as const
  const link = await createLink(setting)
  let leave = () => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const book = delayed(here.book as PacketBook, until)
  return { link, left, process: link.process([fate], leave, { book }) }
}

const right = {
  ...{ state: 'completed', debited: 1_000n, arrived: 1_000n },
  ...{ owing: 1_000n * cent, owed: 1_000n * cent },
}

test('what a process did not get into the book before it was killed did not arrive', async () => {
  const fate = { how: 'its sender is killed before its reply' } as const
  const { link, process } = await open(new Promise(() => {}), fate)
  await process.deliver()
  await link.advance(60_000)
  await link.process([]).deliver()
  const state = { ...right, byWord: 250n, denied: 0n, difference: 250n * cent }
  expect(await link.state()).toMatchObject(state)
})

test('a process that goes on after another has taken over sends nothing more', async () => {
  let goOn = () => {}
  const until = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const { link, left, process } = await open(until, { how: 'its reply is lost' })
  const stale = process.deliver().catch(() => undefined)
  await left
  // Soon after: what it sends now has not expired.
  await link
    .process([])
    .deliver()
    .catch(() => undefined)
  goOn()
  await stale
  for (let more = 0; more < 4 && !(await link.isOver()); more += 1) {
    await link.advance(60_000)
    await link.process([]).deliver()
  }
  expect(await link.state()).toMatchObject(right)
})
