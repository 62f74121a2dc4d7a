import { manualClock } from '../support/clock.js'
import { seededRandom } from '../support/random.js'
import { createSpendingWorld } from '../support/spending.js'
import { type Address, connect } from './databases.js'
import { lives, mayPay } from './lives.js'

/** What a version of the library does on a database that another version uses, too. */
export type Order = { readonly address: Address } & (
  | { readonly does: 'migrate' }
  /** `who` names the client, and the source of random bytes. */
  | { readonly does: 'begin'; readonly life: string; readonly who: string }
  | ({ readonly does: 'go on'; readonly life: string; readonly who: string } & Begun)
)

/** How far a life has come. */
export interface Begun {
  readonly at: number
  readonly notes: unknown
}

/** Carries out an order with this version of the library. */
export async function carryOut(order: Order): Promise<Begun | undefined> {
  const { store, migrate, close } = connect(order.address)
  try {
    if (order.does === 'migrate') {
      await migrate()
      return undefined
    }
    const { does, life, who } = order
    const clock = manualClock(does === 'begin' ? undefined : order.at)
    const random = seededRandom(`${who} ${does}`)
    const resources = { random, policy: { mayPay } }
    const world = createSpendingWorld({ store, clock, auth: { random }, resources })
    const client = world.client(who, { nonces: does === 'begin' ? 0 : 1_000 })
    if (does === 'go on') await lives[life]?.goOn(world, client, order.notes)
    else return { notes: await lives[life]?.begin(world, client), at: clock.now() }
    return undefined
  } finally {
    await close()
  }
}

/** As a program, it carries out the orders of the process that has started it, one after the other. */
process.on('message', async ({ order }: { readonly order?: Order }) => {
  if (order === undefined) return
  try {
    process.send?.({ begun: await carryOut(order) })
  } catch (error) {
    process.send?.({ problem: error instanceof Error ? error.stack : String(error) })
  }
})
