import { describe, expect, test, vi } from 'vitest'
import { memoryStore } from '../../../src/built-in/memory-store.js'
import type { Stored } from '../../../src/index.js'
import type { RecordChange, Store } from '../../../src/ports/store.js'
import { createQueues } from '../../../src/service/mechanism/queues.js'
import {
  type Attempt,
  ContentionError,
  type ReplayProtection,
  realPacing,
  transact,
  transactSigned,
} from '../../../src/service/mechanism/transact.js'
import { seededRandom } from '../../support/random.js'

interface Counter extends Stored {
  readonly count: number
}

const random = seededRandom()

/** Returns a pacing whose time passes only while a caller sleeps. */
function virtualPacing() {
  let elapsed = 0
  const slept: number[] = []
  return {
    slept,
    elapsedMs: () => elapsed,
    async sleep(ms: number) {
      slept.push(ms)
      // A minimum, so that a loop that only sleeps for 0 ms still reaches its deadline.
      elapsed += Math.max(ms, 1)
    },
  }
}

function context(store: Store, pacing = virtualPacing()) {
  return { store, random, pacing }
}

/** Returns an operation that increments a counter and creates it if it does not exist. */
function increment(store: Store, commandId: string, id = 'counter') {
  const load = async () => (await store.load('grant', id)) as Counter | undefined
  return {
    loaded: undefined,
    reload: load,
    decide(counter: Counter | undefined): Attempt<number> {
      if (counter?.commandId === commandId)
        return { changes: [], result: counter.count, refused: false }
      const version = (counter?.version ?? 0) + 1
      const next: Counter = { id, version, commandId, count: (counter?.count ?? 0) + 1 }
      const change: RecordChange = { kind: 'grant', next, expectedVersion: version - 1 }
      return { changes: [change], result: next.count, refused: false }
    },
  }
}

async function countOf(store: Store, id = 'counter'): Promise<number> {
  return ((await store.load('grant', id)) as Counter | undefined)?.count ?? 0
}

function replayOf(commandId: string, consumedByRefusal = true, id = 'once'): ReplayProtection {
  const next = { id, version: 1, commandId }
  const change = { kind: 'nonce', next, expectedVersion: 0 } as const
  const of = consumedByRefusal ? 'nonce' : 'signature'
  return { guard: { change, of, consumedByRefusal }, consumed: false }
}

/**
 * Returns a store whose commits are written or not, and resolve or reject, according to a script.
 */
function scripted(
  store: Store,
  script: ('lands but rejects' | 'rejects' | 'lands but denies')[],
): Store {
  return {
    ...store,
    async commit(commit) {
      const next = script.shift()
      if (next === undefined) return store.commit(commit)
      if (next !== 'rejects') await store.commit(commit)
      if (next === 'lands but denies') return false
      throw new Error('the connection was lost')
    },
  }
}

describe('a contested record', () => {
  test('gives each of 100 concurrent writers its own correct result', async () => {
    vi.useFakeTimers()
    const store = memoryStore()
    const writers = Array.from({ length: 100 }, (_, index) =>
      transact({ store, random, pacing: realPacing }, increment(store, `writer ${index}`)),
    )
    await vi.runAllTimersAsync()
    vi.useRealTimers()
    const answers = await Promise.all(writers)
    expect(answers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1))
    expect(await countOf(store)).toBe(100)
  })

  test('leaves no timer behind when writers queue for it', async () => {
    vi.useFakeTimers()
    const store = memoryStore()
    const contenders = { store, random, pacing: realPacing, queues: createQueues() }
    const writers = Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        transact(contenders, { ...increment(store, `writer ${index}`), contended: 'counter' }),
      ),
    )
    await vi.advanceTimersByTimeAsync(500)
    await writers
    const timers = vi.getTimerCount()
    vi.useRealTimers()
    expect(timers).toBe(0)
    expect(await countOf(store)).toBe(20)
  })

  test('causes ERR_CONTENTION after three seconds, and nothing is written', async () => {
    const store = memoryStore()
    const losing: Store = { ...store, commit: async () => false }
    const pacing = virtualPacing()
    const transacted = transact(context(losing, pacing), increment(losing, 'loser'))
    await expect(transacted).rejects.toBeInstanceOf(ContentionError)
    expect(pacing.elapsedMs()).toBeGreaterThanOrEqual(3_000)
    expect(pacing.elapsedMs()).toBeLessThan(3_100)
    expect(await countOf(store)).toBe(0)
  })

  test('is retried after short pauses that differ', async () => {
    const store = memoryStore()
    const pacing = virtualPacing()
    await transact(
      context({ ...store, commit: async () => false }, pacing),
      increment(store, 'a'),
    ).catch(() => {})
    expect(Math.max(...pacing.slept)).toBeLessThanOrEqual(64)
    expect(new Set(pacing.slept.slice(0, 20)).size).toBeGreaterThan(10)
  })
})

describe('a commit whose outcome is unknown', () => {
  test.each(['lands but rejects', 'lands but denies'] as const)(
    'is recognised as already done when it %s',
    async (fault) => {
      const store = memoryStore()
      const faulty = scripted(store, [fault])
      expect(await transact(context(faulty), increment(faulty, 'me'))).toBe(1)
      expect(await countOf(store)).toBe(1)
    },
  )

  test('is carried out once when it was not written', async () => {
    const store = memoryStore()
    const faulty = scripted(store, ['rejects', 'rejects'])
    expect(await transact(context(faulty), increment(faulty, 'me'))).toBe(1)
    expect(await countOf(store)).toBe(1)
  })

  test('ends with the error of the store when the store keeps failing', async () => {
    const store = memoryStore()
    const down: Store = {
      ...store,
      commit: () => Promise.reject(new Error('the database is down')),
      load: () => Promise.reject(new Error('the database is down')),
    }
    await expect(transact(context(down), increment(down, 'me'))).rejects.toThrow(
      'the database is down',
    )
  })
})

describe('a bug in a decision', () => {
  test('is thrown immediately, without a retry', async () => {
    const store = memoryStore()
    let decisions = 0
    const broken = {
      ...increment(store, 'me'),
      decide(): Attempt<number> {
        decisions += 1
        throw new Error('a bug')
      },
    }
    await expect(transact(context(store), broken)).rejects.toThrow('a bug')
    expect(decisions).toBe(1)
  })
})

describe('a request that counts once', () => {
  test('is carried out once among equal concurrent requests, and the others are replays', async () => {
    const store = memoryStore()
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        transactSigned(
          context(store),
          increment(store, `copy ${index}`),
          replayOf(`copy ${index}`),
        ),
      ),
    )
    expect(results.filter((result) => result === 1)).toHaveLength(1)
    expect(results.filter((result) => result !== 1)).toEqual(
      Array.from({ length: 49 }, () => expect.objectContaining({ refusal: 'replayed' })),
    )
    expect(await countOf(store)).toBe(1)
  })

  test.each(['lands but rejects', 'lands but denies'] as const)(
    'is not a replay of itself when its commit %s',
    async (fault) => {
      const store = memoryStore()
      const faulty = scripted(store, [fault])
      expect(await transactSigned(context(faulty), increment(faulty, 'me'), replayOf('me'))).toBe(1)
      expect(await countOf(store)).toBe(1)
    },
  )

  test('consumes its nonce even when it is refused', async () => {
    const store = memoryStore()
    const refusing = { ...increment(store, 'me'), decide: refuseWith('no') }
    expect(await transactSigned(context(store), refusing, replayOf('first'))).toBe('no')
    expect(await transactSigned(context(store), refusing, replayOf('second'))).toMatchObject({
      refusal: 'replayed',
    })
  })

  test('writes nothing when it is refused and had no nonce', async () => {
    const store = memoryStore()
    const refusing = { ...increment(store, 'me'), decide: refuseWith('no') }
    expect(await transactSigned(context(store), refusing, replayOf('first', false))).toBe('no')
    expect(await transactSigned(context(store), refusing, replayOf('second', false))).toBe('no')
    expect(await store.load('nonce', 'once')).toBeUndefined()
  })

  test('writes no replay record when the changed record identifies the request', async () => {
    const store = memoryStore()
    const { decide, ...rest } = increment(store, 'me')
    const telling = {
      ...rest,
      decide: (counter: Counter | undefined) => ({ ...decide(counter), recordsSignature: true }),
    }
    expect(await transactSigned(context(store), telling, replayOf('first', false))).toBe(1)
    expect(await store.load('nonce', 'once')).toBeUndefined()
  })

  test('is a replay, not a refusal, when the same bytes were accepted before', async () => {
    const store = memoryStore()
    await transactSigned(context(store), increment(store, 'first'), replayOf('first', false))
    const refusing = { ...increment(store, 'me'), decide: refuseWith('too fast') }
    expect(await transactSigned(context(store), refusing, replayOf('second', false))).toMatchObject(
      {
        refusal: 'replayed',
      },
    )
  })

  function refuseWith(result: string) {
    return (): Attempt<string> => ({ changes: [], result, refused: true })
  }
})

describe('an operation that writes nothing', () => {
  test('makes no call to the store', async () => {
    const untouchable = new Proxy({} as Store, {
      get: () => () => Promise.reject(new Error('the store was called')),
    })
    const idle = {
      loaded: undefined,
      reload: async () => undefined,
      decide: () => ({ changes: [], result: 'same', refused: false }),
    }
    expect(await transact(context(untouchable), idle)).toBe('same')
  })
})
