import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryStore } from '../../../src/built-in/memory-store.js'
import type { Stored } from '../../../src/index.js'
import type { RecordChange, Store } from '../../../src/ports/store.js'
import { realPacing } from '../../../src/service/mechanism/pacing.js'
import { createQueues } from '../../../src/service/mechanism/queues.js'
import {
  type Attempt,
  ContentionError,
  type ReplayProtection,
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

function refuseWith(result: string) {
  return (): Attempt<string> => ({ changes: [], result, refused: true })
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

/** Returns a store whose first commits lose a race. */
function denyingFirst(store: Store, times: number): Store {
  let denials = times
  return {
    ...store,
    commit: async (commit) => (denials-- > 0 ? false : store.commit(commit)),
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
    await expect(transacted).rejects.toThrow('other writers kept changing the same records')
    await expect(transacted).rejects.toMatchObject({ code: 'ERR_CONTENTION' })
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

describe('the pauses between attempts', () => {
  const highest = { getRandomValues: <Bytes extends Uint8Array>(bytes: Bytes) => bytes.fill(255) }
  const lowest = { getRandomValues: <Bytes extends Uint8Array>(bytes: Bytes) => bytes.fill(0) }

  async function pauses(commit: Store['commit'], random: typeof highest): Promise<number[]> {
    const store: Store = { ...memoryStore(), commit }
    const pacing = virtualPacing()
    await transact({ store, random, pacing }, increment(store, 'a')).catch(() => {})
    return pacing.slept
  }

  test('double up to 64 ms, and the first lost race causes none', async () => {
    const slept = await pauses(async () => false, highest)
    expect(slept.slice(0, 7)).toEqual([4, 8, 16, 32, 64, 64, 64])
  })

  test('begin at once when the store fails', async () => {
    const slept = await pauses(() => Promise.reject(new Error('down')), highest)
    expect(slept.slice(0, 4)).toEqual([2, 4, 8, 16])
  })

  test('may be of no length', async () => {
    expect(new Set(await pauses(async () => false, lowest))).toEqual(new Set([0]))
  })
})

describe('an operation that lost a race for a contended record', () => {
  test('stops waiting for its turn after three seconds, and gives it up', async () => {
    const store = memoryStore()
    const losing: Store = { ...store, commit: async () => false }
    const queues = createQueues()
    const leave = await queues.take('counter')
    const pacing = virtualPacing()
    const operation = { ...increment(losing, 'loser'), contended: 'counter' }
    const transacted = transact({ ...context(losing, pacing), queues }, operation)
    await expect(transacted).rejects.toBeInstanceOf(ContentionError)
    expect(pacing.slept[0]).toBe(3_000)
    const next = queues.take('counter')
    leave()
    await next
  })

  /** Sleeps until it is woken, or not at all. */
  async function aborted(_ms: number, signal?: AbortSignal): Promise<void> {
    if (signal !== undefined) await new Promise((wake) => signal.addEventListener('abort', wake))
  }

  test('enters the queue once, and leaves it at the end', async () => {
    const store = memoryStore()
    const calls: string[] = []
    const queues = {
      async take(key: string) {
        calls.push(`take ${key}`)
        return () => void calls.push('leave')
      },
    }
    const first = { ...increment(store, 'first'), contended: 'counter' }
    await transact({ ...context(store), queues }, first)
    expect(calls).toEqual([])
    const denying = denyingFirst(store, 3)
    const second = { ...increment(denying, 'second'), contended: 'counter' }
    const pacing = { ...virtualPacing(), sleep: aborted }
    expect(await transact({ ...context(denying), pacing, queues }, second)).toBe(2)
    expect(calls).toEqual(['take counter', 'leave'])
  })

  test('waits for nothing if it contends for no record', async () => {
    const store = memoryStore()
    const denying = denyingFirst(store, 1)
    const queues = { take: vi.fn() }
    expect(await transact({ ...context(denying), queues }, increment(denying, 'me'))).toBe(1)
    expect(queues.take).not.toHaveBeenCalled()
  })

  test('waits for nothing without a queue', async () => {
    const store = memoryStore()
    const denying = denyingFirst(store, 1)
    const pacing = virtualPacing()
    const operation = { ...increment(denying, 'me'), contended: 'counter' }
    expect(await transact(context(denying, pacing), operation)).toBe(1)
    expect(pacing.slept).toEqual([])
  })
})

describe('an error of the transaction of a host', () => {
  const codes = ['ERR_RESTART_TRANSACTION', 'ERR_TRANSACTION_FAILED']
  const failing = (code: string) => () =>
    Promise.reject(Object.assign(new Error('failed'), { code }))

  test.each(codes)('%s from a commit is thrown without a retry', async (code) => {
    const store: Store = { ...memoryStore(), commit: failing(code) }
    const pacing = virtualPacing()
    const transacted = transact(context(store, pacing), increment(store, 'me'))
    await expect(transacted).rejects.toMatchObject({ code })
    expect(pacing.slept).toEqual([])
  })

  test.each(codes)('%s from a load is thrown without a retry', async (code) => {
    const store: Store = { ...memoryStore(), commit: async () => false, load: failing(code) }
    const pacing = virtualPacing()
    const transacted = transact(context(store, pacing), increment(store, 'me'))
    await expect(transacted).rejects.toMatchObject({ code })
    expect(pacing.slept).toEqual([])
  })
})

describe('a commit whose outcome is unknown', () => {
  test.each(['lands but rejects', 'lands but denies'] as const)(
    'is recognized as already done when it %s',
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

describe('a store that no longer settles', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  const never = <Value>() => new Promise<Value>(() => {})
  const onServer = (store: Store) => ({
    store,
    random,
    pacing: realPacing,
    queues: createQueues(),
  })

  const unsettled = (call: string) => ({
    code: 'ERR_STORE_TIMEOUT',
    message: `${call} of the store did not settle within 3000 ms`,
  })

  /** Returns when a promise settled, in milliseconds of the fake clock. */
  async function settling(promise: Promise<unknown>): Promise<number> {
    const startedAt = performance.now()
    let settledAt: number | undefined
    const settled = () => {
      settledAt = performance.now()
    }
    promise.then(settled, settled)
    while (settledAt === undefined) await vi.advanceTimersByTimeAsync(100)
    return settledAt - startedAt
  }

  test('holds a commit until the deadline, and its outcome is unknown', async () => {
    const store: Store = { ...memoryStore(), commit: never }
    const transacted = transact(onServer(store), increment(store, 'me'))
    expect(await settling(transacted)).toBe(3_000)
    await expect(transacted).rejects.toMatchObject(unsettled('commit'))
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is not asked twice for a commit that takes effect after the deadline', async () => {
    const sound = memoryStore()
    let land = () => {}
    const slow: Store = {
      ...sound,
      commit: (commit) =>
        new Promise((resolve) => {
          land = () => resolve(sound.commit(commit))
        }),
    }
    const transacted = transact(onServer(slow), increment(slow, 'me'))
    await settling(transacted)
    await expect(transacted).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
    land()
    const again = {
      ...increment(sound, 'me'),
      loaded: (await sound.load('grant', 'counter')) as Counter,
    }
    expect(await transact(onServer(sound), again)).toBe(1)
    expect(await countOf(sound)).toBe(1)
  })

  test('holds the look-up after a lost race until the deadline', async () => {
    const store: Store = { ...memoryStore(), commit: async () => false, load: never }
    const transacted = transact(onServer(store), increment(store, 'me'))
    expect(await settling(transacted)).toBe(3_000)
    await expect(transacted).rejects.toMatchObject(unsettled('load'))
  })

  test('holds the look-up of a refused signature until the deadline', async () => {
    const store: Store = { ...memoryStore(), load: never }
    const refusing = { ...increment(store, 'me'), decide: refuseWith('no') }
    const transacted = transactSigned(onServer(store), refusing, replayOf('me', false))
    expect(await settling(transacted)).toBe(3_000)
    await expect(transacted).rejects.toMatchObject(unsettled('load'))
  })

  test('delays those who wait for their turn until their own deadline', async () => {
    const store: Store = { ...memoryStore(), commit: async () => false, load: never }
    const server = onServer(store)
    const both = ['one', 'two'].map((name) =>
      transact(server, { ...increment(store, name), contended: 'counter' }),
    )
    const [first = 0, second = 0] = await Promise.all(both.map(settling))
    expect(first).toBe(3_000)
    expect(second).toBeLessThanOrEqual(4_000)
    for (const each of both) await expect(each).rejects.toBeInstanceOf(Error)
  })

  test('has half a second for a commit that begins shortly before the deadline', async () => {
    const sound = memoryStore()
    const answers = [() => wait(2_900, false), () => wait(400, true)]
    const slow: Store = { ...sound, commit: () => (answers.shift() ?? never)() }
    const transacted = transact(onServer(slow), increment(slow, 'me'))
    expect(await settling(transacted)).toBeGreaterThan(3_000)
    expect(await transacted).toBe(1)
  })

  test('holds a transaction of the host for as long as the host waits', async () => {
    const store: Store = { ...memoryStore(), commit: never }
    const { queues: _none, ...inside } = onServer(store)
    const settled = vi.fn()
    void transact(inside, increment(store, 'me')).then(settled, settled)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(settled).not.toHaveBeenCalled()
  })

  function wait<Value>(ms: number, value: Value): Promise<Value> {
    return new Promise((resolve) => setTimeout(() => resolve(value), ms))
  }
})

test('a commit of unknown outcome is not reported as lost, also if later commits lose', async () => {
  const store = memoryStore()
  let commits = 0
  const commit = async () => {
    commits += 1
    if (commits === 1) throw new Error('the connection was lost')
    return false
  }
  const losing: Store = { ...store, commit }
  const transacted = transact(context(losing), increment(losing, 'me'))
  await expect(transacted).rejects.toThrow('the connection was lost')
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

  test('commits its nonce in the commit that follows a lost race', async () => {
    const store = memoryStore()
    const denying = denyingFirst(store, 1)
    expect(await transactSigned(context(denying), increment(denying, 'me'), replayOf('me'))).toBe(1)
    expect(await store.load('nonce', 'once')).toMatchObject({ commandId: 'me' })
  })

  test('commits its nonce once, also if its operation commits twice', async () => {
    const store = memoryStore()
    const replay = replayOf('me')
    const committed: string[][] = []
    const noting: Store = {
      ...store,
      commit(commit) {
        committed.push(commit.changes.map(({ next }) => next.id))
        return store.commit(commit)
      },
    }
    await transactSigned(context(noting), increment(noting, 'me', 'one'), replay)
    await transactSigned(context(noting), increment(noting, 'me', 'two'), replay)
    expect(committed).toEqual([['one', 'once'], ['two']])
  })

  test('is recognized as a replay before its records are loaded again', async () => {
    const store = memoryStore()
    await transactSigned(context(store), increment(store, 'first'), replayOf('first'))
    const reload = vi.fn()
    const repeat = { ...increment(store, 'second'), reload }
    expect(await transactSigned(context(store), repeat, replayOf('second'))).toMatchObject({
      refusal: 'replayed',
    })
    expect(reload).not.toHaveBeenCalled()
  })
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
