import { performance } from 'node:perf_hooks'
import { testKey } from '../../test/support/keys.js'
import { signedRequest } from '../../test/support/sign.js'
import type { Answer } from '../../test/support/world.js'
import { count, type Journal } from './journal.js'
import { isUnknown, type Wallet } from './wallet.js'

export interface CallerOptions {
  readonly name: string
  readonly wallet: Wallet
  readonly journal: Journal
  /** Returns a number from 0 to 1, excluding 1. */
  readonly random: () => number
  readonly now: () => number
  /** Waits before an unanswered request is repeated; rejects when the load was abandoned. */
  readonly pause: () => Promise<void>
  /** The maximum time for repeats. Longer than any fault lasts. */
  readonly patienceMs: number
}

export type Caller = ReturnType<typeof createCaller>

/** A customer's calls to a wallet: signs requests, records responses, and repeats requests without one. */
export function createCaller(options: CallerOptions) {
  const { name, wallet, journal, random, now, pause, patienceMs } = options
  const key = testKey(name)
  let made = 0

  const unique = () => `${name}-${made++}`

  function send(method: string, url: string, token?: string, body?: object): Promise<Answer> {
    const created = Math.floor(now() / 1000)
    const signed = signedRequest({
      ...{ key, method, url, created, nonce: unique() },
      ...(token === undefined ? {} : { token }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return wallet.send(signed)
  }

  function surprise(operation: string, { status, body }: Answer): void {
    journal.surprises.push(`${name}: ${operation} returned ${status} ${JSON.stringify(body)}`)
  }

  /**
   * Returns whether the operation was acknowledged. Any response besides that and an unknown outcome is a
   * surprise.
   */
  function noted(operation: string, answer: Answer, expected: number): boolean {
    if (isUnknown(answer)) count(journal.unknown, answer.status)
    else if (answer.status === expected) count(journal.acknowledged, operation)
    else surprise(operation, answer)
    return answer.status === expected
  }

  /** Repeats a request, with a new signature each time, until its outcome is known. */
  async function insist(
    operation: string,
    expected: number,
    attempt: () => Promise<Answer>,
  ): Promise<Answer> {
    const startedAt = performance.now()
    for (;;) {
      const answer = await attempt()
      if (noted(operation, answer, expected) || !isUnknown(answer)) return answer
      if (performance.now() - startedAt > patienceMs) {
        surprise(`${operation}, for ${patienceMs} ms,`, answer)
        return answer
      }
      await pause()
    }
  }

  function pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(random() * items.length)]
  }

  return { name, wallet, journal, random, unique, send, surprise, noted, insist, pick }
}
