import { setTimeout as sleep } from 'node:timers/promises'
import { anyAction, createCustomer, seededNumbers } from './customer.js'
import type { Journal } from './journal.js'
import type { Wallet } from './wallet.js'

export const customerNames = Array.from({ length: 16 }, (_, index) => `shop-${index + 1}`)

export interface Load {
  /** Lets the customers act, and repeat requests without a response. */
  resume(): void
  /** Stops new actions and repeats. */
  hold(): void
  /** Only lets them repeat requests without a response; resolves when no outcome is unknown. */
  settle(): Promise<void>
  /** Ends the load for good; unknown outcomes stay unknown. */
  abandon(): Promise<void>
}

const pauseMs = 15
const patienceMs = 30_000
const abandoned = new Error('the load was abandoned')

/** Starts customers that act continuously and concurrently. */
export function startLoad(wallet: Wallet, journal: Journal, seed: number): Load {
  let phase: 'acting' | 'held' | 'settling' | 'over' = 'held'
  let resting = customerNames.length

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await sleep(pauseMs)
  }

  async function run(name: string, index: number): Promise<void> {
    const random = seededNumbers(seed + index)
    const pause = async () => {
      await sleep(pauseMs)
      await until(() => phase !== 'held')
      if (phase === 'over') throw abandoned
    }
    const now = Date.now
    const options = { name, wallet, journal, random, now, pause, patienceMs }
    const customer = createCustomer(options)
    while (phase !== 'over') {
      await until(() => phase === 'acting' || phase === 'over')
      resting -= 1
      while (phase === 'acting') await customer.act(anyAction(random))
      resting += 1
    }
  }

  const running = Promise.allSettled(customerNames.map(run))
  return {
    resume() {
      phase = 'acting'
    },
    hold() {
      phase = 'held'
    },
    async settle() {
      phase = 'settling'
      await until(() => resting === customerNames.length)
    },
    async abandon() {
      phase = 'over'
      const reasons = (await running).flatMap((end) =>
        end.status === 'rejected' ? end.reason : [],
      )
      const failure = reasons.find((reason) => reason !== abandoned)
      if (failure !== undefined) throw failure
    },
  }
}
