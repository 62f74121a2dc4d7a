import { hasCode } from '../util/error-code.js'

export interface GateLimits {
  /** Requests that run at the same time for one key. */
  readonly activeMax: number
  /** Requests that wait for one key. Further ones are rejected immediately. */
  readonly waitingMax: number
  /** Keys with requests in progress. Requests for further keys are rejected immediately. */
  readonly keysMax: number
}

/** Limits the concurrent requests per key, such as a host, so that one key cannot use up the shared capacity. */
export interface Gate {
  /**
   * Runs a request when its key has a free slot, which it holds until its promise settles. Rejects with a
   * `GateFullError` if too many wait.
   */
  run<Result>(key: string, request: () => Promise<Result>): Promise<Result>
}

/** The request was not sent, because a limit was reached. The error says nothing about the host. */
export class GateFullError extends Error {
  readonly code = 'ERR_GATE_FULL'
}

interface Slots {
  active: number
  readonly waiting: (() => void)[]
}

export function createGate({ activeMax, waitingMax, keysMax }: GateLimits): Gate {
  /** Only keys with requests in progress. */
  const busy = new Map<string, Slots>()

  async function enter(key: string): Promise<Slots> {
    const slots = busy.get(key) ?? newSlots(key)
    if (slots.active < activeMax) {
      slots.active += 1
      return slots
    }
    if (slots.waiting.length >= waitingMax) throw new GateFullError('too many requests to one host')
    // A finished request passes its slot on, so the slot is already counted when the wait ends.
    await new Promise<void>((resolve) => slots.waiting.push(resolve))
    return slots
  }

  function newSlots(key: string): Slots {
    if (busy.size >= keysMax) throw new GateFullError('too many hosts have requests in progress')
    const slots = { active: 0, waiting: [] }
    busy.set(key, slots)
    return slots
  }

  function leave(key: string, slots: Slots): void {
    const next = slots.waiting.shift()
    if (next !== undefined) {
      next()
      return
    }
    slots.active -= 1
    if (slots.active === 0) busy.delete(key)
  }

  return {
    async run(key, request) {
      const slots = await enter(key)
      try {
        return await request()
      } finally {
        leave(key, slots)
      }
    },
  }
}

export function isGateFull(error: unknown): error is GateFullError {
  return hasCode(error, 'ERR_GATE_FULL')
}
