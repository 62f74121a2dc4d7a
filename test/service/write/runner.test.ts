import fc, { type Scheduler } from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type Commit,
  type RecordKey,
  type Stored,
  storeBounds,
} from '../../../src/entry-adapter.js'
import { memoryStore, type Store } from '../../../src/index.js'
import type { DomainEvent } from '../../../src/service/event-record.js'
import { recordsOf } from '../../../src/service/load.js'
import { countedOnceWrite, type ReplayRecord } from '../../../src/service/signed-call.js'
import { ContentionError } from '../../../src/service/store-errors.js'
import { guardedStore } from '../../../src/service/store-guard.js'
import { type Pacing, realPacing } from '../../../src/service/time.js'
import { createRunner, type RunnerContext, waitingMax } from '../../../src/service/write/runner.js'
import {
  answerWrite,
  creationWrite,
  type Decided,
  nothingExists,
  type Write,
} from '../../../src/service/write/write.js'
import { boundedStore, commitSizeOf } from '../../support/bounded-store.js'
import { manualClock } from '../../support/clock.js'
import { loadOne } from '../../support/one-record.js'
import { type Fate, fates } from '../../support/proxy-store.js'
import { seededRandom } from '../../support/random.js'
import { runs } from '../../support/runs.js'

interface Counter extends Stored {
  readonly count: number
}

/** Returns a pacing whose time passes only while a caller sleeps, and in which no write waits too long. */
function virtualPacing() {
  let elapsed = 0
  const slept: number[] = []
  return {
    slept,
    elapsedMs: () => elapsed,
    async sleep(ms: number, signal?: AbortSignal) {
      if (signal !== undefined) {
        await new Promise<void>((wake) => signal.addEventListener('abort', () => wake()))
        return
      }
      slept.push(ms)
      // A minimum, so that a loop that only sleeps for 0 ms still reaches its deadline.
      elapsed += Math.max(ms, 1)
    },
  }
}

function runner(store: Store, more: Partial<RunnerContext> = {}, inTransaction = false) {
  const context = {
    ...{ store, random: seededRandom(), pacing: virtualPacing() },
    namespace: async () => 'namespac',
    ...{ recordsEvents: () => true, storeTimeoutMs: 3_000, claim: async () => {} },
  }
  return createRunner({ ...context, ...more }, inTransaction)
}

const counterKey = { kind: 'grant', id: 'counter' } as const

/** Returns a write that increments a counter once. The second record shows that it did. */
function increment(commandId: string, more: Partial<Write<number>> = {}): Write<number> {
  const own = { kind: 'transfer', id: `by-${commandId}` } as const
  return {
    reads: [counterKey, own],
    decide(read): Decided<number> {
      const done = read<Counter>(own)
      if (done !== undefined) return { type: 'repeat', result: done.count }
      const counter = read<Counter>(counterKey)
      const count = (counter?.count ?? 0) + 1
      const next = { id: 'counter', version: (counter?.version ?? 0) + 1, commandId, count }
      const changes = [
        { kind: 'grant', next },
        { kind: 'transfer', next: { ...next, id: own.id, version: 1 } },
      ] as const
      return { type: 'commit', changes, result: count }
    },
    ...more,
  }
}

const together = { together: 'counter' }

function incrementOnce(commandId: string): Write<{ readonly ok: boolean; readonly count: number }> {
  const { reads, decide } = increment(commandId)
  return {
    reads,
    decide(read) {
      const decided = decide(read)
      return { ...decided, result: { ok: true, count: decided.result } }
    },
  }
}

const refusal = { ok: false, refusal: 'no' } as const

function replayOf(commandId: string, byRefusal = true): ReplayRecord {
  const record = { id: 'once', version: 1, commandId }
  return { key: { kind: 'replay', id: 'once' }, record, bySuccess: true, byRefusal }
}

async function countOf(store: Store): Promise<number> {
  return ((await loadOne(store, 'grant', 'counter')) as Counter | undefined)?.count ?? 0
}

/** A store whose first commits meet these fates. */
function fated(store: Store, ...script: Fate[]): Store {
  return {
    ...store,
    async commit(commit) {
      const fate = script.shift() ?? 'works'
      const committed = fate !== 'fails' && (await store.commit(commit))
      if (fate === 'fails' || fate === 'lands-and-fails') throw new Error('the connection was lost')
      return committed && fate !== 'lands-and-denies'
    },
  }
}

/** A store whose first commits lose a race. */
function denyingFirst(store: Store, times: number): Store {
  let denials = times
  return { ...store, commit: async (commit) => denials-- <= 0 && store.commit(commit) }
}

const losing: Store['commit'] = async () => false

/** A store that notes its calls, and whose commits wait until the test lets them proceed. */
function heldStore(store: Store = memoryStore()) {
  const commits: Commit[] = []
  const loads: (readonly RecordKey[])[] = []
  let waiting: (() => void)[] = []
  let isOpen = false
  const held: Store = {
    ...store,
    load(keys) {
      loads.push(keys)
      return store.load(keys)
    },
    async commit(commit) {
      commits.push(commit)
      if (!isOpen) await new Promise<void>((proceed) => waiting.push(proceed))
      return store.commit(commit)
    },
  }
  const release = () => {
    for (const proceed of waiting) proceed()
    waiting = []
  }
  /** Lets the commits in progress, or all commits from now on, proceed. */
  const proceed = async (always = false) => {
    isOpen ||= always
    release()
    await settled()
  }
  return { store: held, commits, loads, proceed }
}

/** Lets all promises that can settle do so. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** An event of this type. The runner reads only its type and time. */
const eventOf = (type: DomainEvent['type']) => ({ type, at: 0 }) as DomainEvent

const incrementsIn = ({ changes }: Commit) =>
  changes.filter(({ kind }) => kind === 'transfer').map(({ next }) => next.id.slice(3))

describe('a contested record', () => {
  test.each([{}, together])(
    'gives each of 100 concurrent writers its own result: %j',
    async (name) => {
      vi.useFakeTimers()
      const store = memoryStore()
      const run = runner(store, { pacing: realPacing })
      const writers = Array.from({ length: 100 }, (_, index) => run(increment(`${index}`, name)))
      await vi.runAllTimersAsync()
      const timers = vi.getTimerCount()
      vi.useRealTimers()
      const answers = await Promise.all(writers)
      expect(answers.toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 100 }, (_, i) => i + 1),
      )
      expect(await countOf(store)).toBe(100)
      expect(timers, 'no timer is left behind').toBe(0)
    },
  )

  test('causes ERR_CONTENTION after three seconds, and nothing is written', async () => {
    const store = memoryStore()
    const pacing = virtualPacing()
    const written = runner({ ...store, commit: losing }, { pacing })(increment('loser'))
    await expect(written).rejects.toBeInstanceOf(ContentionError)
    await expect(written).rejects.toThrow('other writers kept changing the same records')
    await expect(written).rejects.toMatchObject({ code: 'ERR_CONTENTION' })
    expect(pacing.elapsedMs()).toBeGreaterThanOrEqual(3_000)
    expect(pacing.elapsedMs()).toBeLessThan(3_100)
    expect(await countOf(store)).toBe(0)
  })
})

describe('the pauses between attempts', () => {
  const filledWith = (byte: number): RunnerContext['random'] => ({
    getRandomValues: (bytes) => bytes.fill(byte),
  })

  async function pauses(commit: Store['commit'], random = seededRandom()): Promise<number[]> {
    const pacing = virtualPacing()
    const run = runner({ ...memoryStore(), commit }, { pacing, random })
    await run(increment('a')).catch(() => {})
    return pacing.slept
  }

  test('double up to 64 ms, and the first lost race causes none', async () => {
    const slept = await pauses(losing, filledWith(255))
    expect(slept.slice(0, 7)).toEqual([4, 8, 16, 32, 64, 64, 64])
  })

  test('begin at once when the store fails', async () => {
    const slept = await pauses(() => Promise.reject(new Error('down')), filledWith(255))
    expect(slept.slice(0, 4)).toEqual([2, 4, 8, 16])
  })

  test('may be of no length', async () => {
    expect(new Set(await pauses(losing, filledWith(0)))).toEqual(new Set([0]))
  })

  test('differ', async () => {
    const slept = await pauses(losing)
    expect(Math.max(...slept)).toBeLessThanOrEqual(64)
    expect(new Set(slept.slice(0, 20)).size).toBeGreaterThan(10)
  })
})

describe('an error of the transaction of a host', () => {
  const codes = ['ERR_RESTART_TRANSACTION', 'ERR_TRANSACTION_FAILED']
  const failing = (code: string) => () =>
    Promise.reject(Object.assign(new Error('failed'), { code }))

  test.each(codes)('%s from a commit or load is thrown without a retry', async (code) => {
    const failingCommit = { ...memoryStore(), commit: failing(code) }
    const load = failing(code)
    const failingLoad = { ...memoryStore(), commit: losing, load }
    for (const store of [failingCommit, failingLoad]) {
      const pacing = virtualPacing()
      const basis = nothingExists
      const written = runner(store, { pacing }, true)(increment('me', { basis }))
      await expect(written).rejects.toMatchObject({ code })
      expect(pacing.slept).toEqual([])
    }
  })
})

describe.each([
  ['', false],
  [' in a transaction of the host', true],
])('a commit whose outcome is unknown%s', (_, inTransaction) => {
  const twice = [increment('me', together), increment('me too', together)]

  test.each(fates.map((fate) => [fate, fate === 'fails' ? 2 : 1] as const))(
    'takes effect once if it %s',
    async (fate, times) => {
      const store = memoryStore()
      const faulty = fated(store, ...Array<Fate>(times).fill(fate))
      expect(await runner(faulty, {}, inTransaction)(increment('me'))).toBe(1)
      expect(await countOf(store)).toBe(1)
    },
  )

  test.each(fates)('takes effect once for each of several writes if it %s', async (fate) => {
    const store = memoryStore()
    const run = runner(fated(store, 'works', fate, fate), {}, inTransaction)
    const results = await Promise.all([run(increment('first', together)), ...twice.map(run)])
    expect(results.toSorted()).toEqual([1, 2, 3])
    expect(await countOf(store)).toBe(3)
  })

  test.each(fates)('is no replay of itself if it %s', async (fate) => {
    const store = memoryStore()
    const run = runner(fated(store, fate), {}, inTransaction)
    const result = await run(countedOnceWrite(incrementOnce('me'), replayOf('me')))
    expect(result).toEqual({ ok: true, count: 1 })
    expect(await countOf(store)).toBe(1)
  })

  test('ends with the error of the store when the store keeps failing', async () => {
    const fail = () => Promise.reject(new Error('the database is down'))
    const down: Store = { ...memoryStore(), commit: fail, load: fail }
    const written = runner(down, {}, inTransaction)(increment('me', { basis: nothingExists }))
    await expect(written).rejects.toThrow('the database is down')
  })

  test('is not reported as lost, also if later commits lose', async () => {
    let commits = 0
    const commit = async () => {
      commits += 1
      if (commits === 1) throw new Error('the connection was lost')
      return false
    }
    const written = runner({ ...memoryStore(), commit }, {}, inTransaction)(increment('me'))
    await expect(written).rejects.toThrow('the connection was lost')
  })

  test('is not reported as lost if the signature expires before the next attempt', async () => {
    const clock = manualClock()
    const commit = () => {
      clock.advance(1_000)
      return Promise.reject(new Error('the connection was lost'))
    }
    const sound = { ...memoryStore(), commit }
    const store = guardedStore(sound, { clock, timeoutMs: 3_000, server: 'test' })
    const { record, ...replay } = replayOf('me')
    const expiring = { ...record, dueAt: clock.now() + 180_001 }
    const write = countedOnceWrite(incrementOnce('me'), { ...replay, record: expiring })
    await expect(runner(store, {}, inTransaction)(write)).rejects.toThrow('the connection was lost')
  })
})

test('the first load that fails is not repeated, because nothing is at stake', async () => {
  let calls = 0
  const fail = async () => {
    calls += 1
    throw new Error('the database is down')
  }
  const written = runner({ ...memoryStore(), load: fail })(increment('me'))
  await expect(written).rejects.toThrow('the database is down')
  expect(calls).toBe(1)
})

describe('a load that fails after a lost race', () => {
  /** A store whose first `losses` commits lose their race, and whose first load fails. */
  function failingOnce(losses: number): Store {
    const sound = memoryStore()
    const failures = [new Error('the connection was lost')]
    const load: Store['load'] = async (keys) => {
      const failure = failures.pop()
      if (failure !== undefined) throw failure
      return sound.load(keys)
    }
    return denyingFirst({ ...sound, load }, losses)
  }
  const write = increment('me', { basis: nothingExists })

  test('is repeated', async () => {
    expect(await runner(failingOnce(1))(write)).toBe(1)
  })

  test('leaves no doubt that nothing was written', async () => {
    const written = runner(failingOnce(Number.POSITIVE_INFINITY))(write)
    await expect(written).rejects.toBeInstanceOf(ContentionError)
  })
})

describe('a store that no longer settles', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  const never = <Value>() => new Promise<Value>(() => {})
  const clock = { now: () => 0 }
  const onServer = (store: Store, inTransaction = false) => {
    const guarded = guardedStore(store, { clock, timeoutMs: 3_000, server: 'test' })
    return runner(inTransaction ? store : guarded, { pacing: realPacing }, inTransaction)
  }
  const unsettled = (call: string, ms = 3_000) => ({
    code: 'ERR_STORE_TIMEOUT',
    message: `${call} of the store did not settle within ${ms} ms`,
  })

  /** Returns when a promise settled, in milliseconds of the fake clock. */
  async function settling(promise: Promise<unknown>): Promise<number> {
    const startedAt = performance.now()
    let settledAt: number | undefined
    const settle = () => {
      settledAt = performance.now()
    }
    promise.then(settle, settle)
    while (settledAt === undefined) await vi.advanceTimersByTimeAsync(100)
    return settledAt - startedAt
  }

  test('holds a commit until the deadline, and its outcome is unknown', async () => {
    const written = onServer({ ...memoryStore(), commit: never })(increment('me'))
    expect(await settling(written)).toBe(3_000)
    await expect(written).rejects.toMatchObject(unsettled('commit'))
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is not asked twice for a commit that takes effect after the deadline', async () => {
    const sound = memoryStore()
    let land = () => {}
    const commit: Store['commit'] = (commit) =>
      new Promise((resolve) => {
        land = () => resolve(sound.commit(commit))
      })
    const written = onServer({ ...sound, commit })(increment('me'))
    await settling(written)
    await expect(written).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
    land()
    expect(await onServer(sound)(increment('me'))).toBe(1)
    expect(await countOf(sound)).toBe(1)
  })

  test.each([
    ['load', {}],
    ['load', together],
    ['commit', {}],
  ] as const)('holds a %s after a lost race until the deadline: %j', async (call, name) => {
    const sound = memoryStore()
    const answers = [() => wait(1_000, false)]
    const store: Store = {
      ...sound,
      commit: () => (answers.shift() ?? never)(),
      load: (keys) => (call === 'load' ? never() : sound.load(keys)),
    }
    const basis = nothingExists
    const written = onServer(store)(increment('me', { basis, ...name }))
    expect(await settling(written)).toBe(3_000)
    await expect(written).rejects.toMatchObject(unsettled(call, 2_000))
  })

  test('has the whole time for each call of the first attempt', async () => {
    const sound = memoryStore()
    const store: Store = {
      ...sound,
      load: (keys) => wait(2_000, keys).then(sound.load),
      commit: (commit) => wait(2_000, commit).then(sound.commit),
    }
    const written = onServer(store)(increment('me'))
    expect(await settling(written)).toBe(4_000)
    expect(await written).toBe(1)
  })

  test('holds the look-up of a refused signature until the deadline', async () => {
    const refusing = {
      reads: [],
      basis: nothingExists,
      decide: () => ({ type: 'answer', result: refusal }) as const,
    }
    const written = onServer({ ...memoryStore(), load: never })(
      countedOnceWrite(refusing, replayOf('me', false)),
    )
    expect(await settling(written)).toBe(3_000)
    await expect(written).rejects.toMatchObject(unsettled('load'))
  })

  test('delays the writes that wait by at most two deadlines', async () => {
    const run = onServer({ ...memoryStore(), commit: never })
    const all = ['one', 'two', 'three'].map((name) => run(increment(name, together)))
    expect(await Promise.all(all.map(settling))).toEqual([3_000, 3_000, 3_000])
    await expect(all[0]).rejects.toMatchObject(unsettled('commit'))
    expect(vi.getTimerCount()).toBe(0)
  })

  test('delays the writes of a batch that change nothing by one more deadline', async () => {
    const sound = memoryStore()
    let isFrozen = false
    const run = onServer({
      ...sound,
      load: (keys) => (isFrozen ? never() : sound.load(keys)),
      async commit(commit) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        const committed = await sound.commit(commit)
        isFrozen = incrementsIn(commit).includes('two')
        return committed
      },
    })
    const refused = (name: string) =>
      increment(name, { ...together, decide: () => ({ type: 'answer', result: 0 }) })
    const all = [
      run(increment('one', together)),
      run(increment('two', together)),
      ...['three', 'four', 'five', 'six'].map((name) => run(refused(name))),
    ]
    const times = await Promise.all(all.map(settling))
    expect(Math.max(...times)).toBeLessThanOrEqual(3_500)
    await expect(all.at(-1)).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
  })

  test('has half a second for a commit that begins shortly before the deadline', async () => {
    const answers = [() => wait(2_900, false), () => wait(400, true)]
    const commit = () => (answers.shift() ?? never)()
    const written = onServer({ ...memoryStore(), commit })(increment('me'))
    expect(await settling(written)).toBeGreaterThan(3_000)
    expect(await written).toBe(1)
  })

  test.each([0, 1])('holds a transaction of the host, after %i lost races', async (times) => {
    const store = denyingFirst({ ...memoryStore(), commit: never }, times)
    const settle = vi.fn()
    void onServer(store, true)(increment('me')).then(settle, settle)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(settle).not.toHaveBeenCalled()
  })

  function wait<Value>(ms: number, value: Value): Promise<Value> {
    return new Promise((resolve) => setTimeout(() => resolve(value), ms))
  }
})

describe('a bug in a decision', () => {
  test('is thrown immediately, without a retry', async () => {
    const decide = vi.fn(() => {
      throw new Error('a bug')
    })
    const { store, loads, commits } = heldStore()
    await expect(runner(store)({ reads: [], decide })).rejects.toThrow('a bug')
    await settled()
    expect([decide.mock.calls.length, loads, commits]).toEqual([1, [], []])
  })

  test('fails no other write of the same commit', async () => {
    const { store, proceed } = heldStore()
    const run = runner(store)
    const broken = increment('broken', {
      ...together,
      decide() {
        throw new Error('a bug')
      },
    })
    const [first, second, third] = [increment('1', together), broken, increment('3', together)].map(
      run,
    )
    second?.catch(() => {})
    await proceed(true)
    expect(await Promise.all([first, third])).toEqual([1, 2])
    await expect(second).rejects.toThrow('a bug')
  })
})

test('a write whose signature has expired fails no other write of the same commit', async () => {
  const clock = manualClock()
  const { store, proceed } = heldStore()
  const guarded = guardedStore(store, { clock, timeoutMs: 3_000, server: 'test' })
  const run = runner(guarded, { recordsEvents: () => true })
  const { record, ...replay } = replayOf('late')
  const expired = { ...replay, record: { ...record, retainUntil: clock.now() } }
  const first = run(increment('first', together))
  const late = run(countedOnceWrite({ ...incrementOnce('late'), ...together }, expired))
  late.catch(() => {})
  const last = run(increment('last', together))
  await proceed(true)
  expect(await Promise.all([first, last])).toEqual([1, 2])
  await expect(late).rejects.toThrow('the signature expired before its operation was committed')
})

describe('a request that counts once', () => {
  const refusing = {
    reads: [],
    basis: nothingExists,
    decide: () => ({ type: 'answer', result: refusal }) as const,
  }
  const isReplay = { ok: false, refusal: 'repeated' }

  test('is carried out once among equal concurrent requests, and the others are replays', async () => {
    const store = memoryStore()
    const copies = Array.from({ length: 50 }, (_, index) => {
      const id = `copy ${index}`
      return runner(store)(countedOnceWrite(incrementOnce(id), replayOf(id)))
    })
    const results = await Promise.all(copies)
    expect(results.filter(({ ok }) => ok)).toEqual([{ ok: true, count: 1 }])
    for (const result of results) if (!result.ok) expect(result).toMatchObject(isReplay)
    expect(await countOf(store)).toBe(1)
  })

  test('consumes its nonce even when it is refused, in a commit without a look-up, and is refused again', async () => {
    const { store, loads, proceed } = heldStore()
    const run = runner(store)
    await proceed(true)
    expect(await run(countedOnceWrite<{ ok: boolean }>(refusing, replayOf('first')))).toBe(refusal)
    expect(loads).toEqual([])
    expect(
      await run(countedOnceWrite<{ ok: boolean }>(refusing, replayOf('second'))),
    ).toMatchObject(refusal)
    expect(loads).toHaveLength(1)
  })

  test('writes nothing when it is refused and had no nonce', async () => {
    const store = memoryStore()
    const run = runner(store)
    for (const copy of ['first', 'second']) {
      expect(await run(countedOnceWrite<{ ok: boolean }>(refusing, replayOf(copy, false)))).toBe(
        refusal,
      )
    }
    expect(await loadOne(store, 'replay', 'once')).toBeUndefined()
  })

  test('is a replay, not a refusal, when the same bytes were accepted before', async () => {
    const { store, loads, proceed } = heldStore()
    const run = runner(store)
    await proceed(true)
    await run(countedOnceWrite(incrementOnce('first'), replayOf('first', false)))
    loads.length = 0
    const replay = replayOf('second', false)
    expect(
      await run(countedOnceWrite<{ ok: boolean }>(answerWrite(refusal), replay)),
    ).toMatchObject(isReplay)
    expect(loads).toEqual([[replay.key]])
  })

  test('gets what its operation says of a repeat', async () => {
    const run = runner(memoryStore())
    await run(countedOnceWrite(incrementOnce('first'), replayOf('first', false)))
    const result = { ok: true, count: 17 }
    const repeat = () => ({ type: 'answer', result }) as const
    const write = countedOnceWrite(incrementOnce('second'), replayOf('second', false), repeat)
    expect(await run(write)).toBe(result)
  })

  test('commits its nonce in the commit that follows a lost race', async () => {
    const store = memoryStore()
    await runner(denyingFirst(store, 1))(countedOnceWrite(incrementOnce('me'), replayOf('me')))
    expect(await loadOne(store, 'replay', 'once')).toMatchObject({ commandId: 'me' })
  })

  test('commits its nonce once, also if its operation commits twice', async () => {
    const { store, commits, proceed } = heldStore()
    const run = runner(store)
    await proceed(true)
    await run(countedOnceWrite(incrementOnce('me'), replayOf('me')))
    await run(
      countedOnceWrite(
        { ...incrementOnce('more'), decide: incrementOnce('more').decide },
        replayOf('me'),
      ),
    )
    const nonces = commits.map(
      ({ changes }) => changes.filter(({ kind }) => kind === 'replay').length,
    )
    expect(nonces).toEqual([1, 0])
  })
})

describe('a write that changes nothing', () => {
  test('makes no call of the store if everything is assumed', async () => {
    const get = () => () => Promise.reject(new Error('the store was called'))
    const untouchable = new Proxy({} as Store, { get })
    expect(await runner(untouchable)(answerWrite('same'))).toBe('same')
    const key = { kind: 'grant', id: 'counter' } as const
    const counter = { id: 'counter', version: 1, commandId: 'me' }
    const basis = { type: 'loaded', records: recordsOf('grant', counter) } as const
    const idle: Write<string> = {
      ...{ reads: [key], basis },
      decide: () => ({ type: 'answer', result: 'idle' }),
    }
    expect(await runner(untouchable)(idle)).toBe('idle')
  })
})

describe('a guarded write', () => {
  const guardKey = { kind: 'quote', id: 'guarded' } as const
  const guarding = (version: number) => ({
    guard: { record: { ...guardKey, version }, ifChanged: -1 },
  })

  async function setUp(version = 1) {
    const store = memoryStore()
    for (let next = 1; next <= version; next++) await bump(store, next)
    return store
  }

  function bump(store: Store, version: number) {
    const next = { id: guardKey.id, version, commandId: `${version}` }
    const previous = version === 1 ? {} : { previous: {} }
    const change = { kind: 'quote', next, expectedVersion: version - 1, ...previous } as const
    return store.commit({ changes: [change], guards: [] })
  }

  const basis = nothingExists

  test.each([{}, { basis }, together])('takes effect while its guard holds: %j', async (more) => {
    const store = await setUp()
    expect(await runner(store)(increment('me', { ...guarding(1), ...more }))).toBe(1)
  })

  test.each([{}, { basis }, together])(
    'is outdated when its guard no longer holds: %j',
    async (more) => {
      const store = await setUp(2)
      expect(await runner(store)(increment('me', { ...guarding(1), ...more }))).toBe(-1)
      expect(await countOf(store)).toBe(0)
    },
  )

  test('is outdated when the guarded record does not exist, and when it changes nothing', async () => {
    expect(await runner(await setUp(0))(increment('me', guarding(1)))).toBe(-1)
    const refused = increment('me', {
      ...guarding(1),
      decide: () => ({ type: 'answer', result: 0 }),
    })
    expect(await runner(await setUp(2))(refused)).toBe(-1)
  })

  test('is outdated when the guarded record changes between its attempts', async () => {
    const store = await setUp()
    const racing: Store = {
      ...store,
      async commit(commit) {
        await bump(store, 2)
        return store.commit(commit)
      },
    }
    expect(await runner(racing)(increment('me', guarding(1)))).toBe(-1)
    expect(await countOf(store)).toBe(0)
  })

  test.each<Fate>(['lands-and-fails', 'lands-and-denies'])(
    'that took effect is not outdated, although its commit %s and the guarded record changes',
    async (fate) => {
      const store = await setUp()
      const faulty = fated(store, fate)
      const racing: Store = {
        ...faulty,
        commit: (commit) => faulty.commit(commit).finally(() => bump(store, 2)),
      }
      expect(await runner(racing)(increment('me', guarding(1)))).toBe(1)
      expect(await countOf(store)).toBe(1)
    },
  )

  test('that is outdated does not affect those that share its commit', async () => {
    const { store, proceed } = heldStore(await setUp(2))
    const run = runner(store)
    const all = [2, 1, 2].map((version, index) =>
      run(increment(`${index}`, { ...guarding(version), ...together })),
    )
    await proceed(true)
    expect(await Promise.all(all)).toEqual([1, -1, 2])
  })
})

describe('writes with one name', () => {
  test('begin at once if no other is in progress, and otherwise together when it ends', async () => {
    const { store, commits, proceed } = heldStore()
    const run = runner(store)
    const results = ['1', '2', '3'].map((each) => run(increment(each, together)))
    await settled()
    expect(commits.map(incrementsIn)).toEqual([['1']])
    await proceed()
    expect(commits.map(incrementsIn)).toEqual([['1'], ['2', '3']])
    await proceed()
    expect(await Promise.all(results)).toEqual([1, 2, 3])
    expect(commits[1]?.changes).toHaveLength(3)
  })

  test('have no result before the commit that decides them ends', async () => {
    const { store, proceed } = heldStore()
    const run = runner(store)
    const done: string[] = []
    for (const each of ['1', '2', '3'])
      void run(increment(each, together)).then(() => done.push(each))
    await settled()
    expect(done).toEqual([])
    await proceed()
    expect(done).toEqual(['1'])
    await proceed()
    expect(done).toEqual(['1', '2', '3'])
  })

  test('do not wait for those with another name or none, nor share their commits', async () => {
    const { store, commits } = heldStore()
    const run = runner(store)
    const names = [together, { together: 'another' }, {}, {}]
    for (const [index, name] of names.entries()) void run(increment(`${index}`, name))
    await settled()
    expect(commits.map(incrementsIn)).toEqual([['0'], ['1'], ['2'], ['3']])
  })

  test('neither wait for each other nor share commits in a transaction of the host', async () => {
    const { store, commits } = heldStore()
    const run = runner(store, {}, true)
    for (const each of ['1', '2', '3']) void run(increment(each, together))
    await settled()
    expect(commits.map(incrementsIn)).toEqual([['1'], ['2'], ['3']])
  })

  test('are decided in the order of their arrival, within the bounds of loads and commits', async () => {
    const { store, commits, loads, proceed } = heldStore()
    const run = runner(boundedStore(store))
    const all = Array.from({ length: 200 }, (_, index) => `${index}`.padStart(22, '0'))
    const ofCounter = { kind: 'grant', id: 'a-counter' } as const
    const counting = (commandId: string): Write<void> => ({
      reads: [ofCounter, { kind: 'transfer', id: `by-${commandId}` }],
      ...together,
      decide(read) {
        const { version = 0 } = read(ofCounter) ?? {}
        const lists = [{ list: 'all', at: 1 }]
        const own = { id: `by-${commandId}`, version: 1, commandId, lists }
        const next = { id: ofCounter.id, version: version + 1, commandId }
        const changes = [
          { kind: 'grant', next },
          { kind: 'transfer', next: own },
        ] as const
        return { type: 'commit', changes, result: undefined }
      },
    })
    const results = Promise.all(all.map((each) => run(counting(each))))
    await proceed(true)
    await results
    expect(commits.flatMap(incrementsIn)).toEqual(all)
    for (const commit of commits) {
      expect(commitSizeOf(commit)).toBeLessThanOrEqual(storeBounds.commitSize)
    }
    for (const keys of loads) expect(keys.length).toBeLessThanOrEqual(storeBounds.loadKeys)
    // The counter, and a record with a list entry for each write.
    const inOne = Math.floor((storeBounds.commitSize - 1) / 2)
    expect(Math.max(...commits.map((commit) => incrementsIn(commit).length))).toBe(inOne)
  })

  test('share a load of as many records as a store loads at once', async () => {
    const { store, loads, proceed } = heldStore()
    const run = runner(store)
    for (let each = 0; each < 100; each++) void run(increment(`${each}`, together))
    await proceed(true)
    // The counter, and one record of each write.
    const rest = 1 + 99 - (storeBounds.loadKeys - 1)
    expect(loads.map((keys) => keys.length)).toEqual([2, storeBounds.loadKeys, rest])
  })

  /** Returns a write that changes a record, which is in the lists `before`, and perhaps in others after it. */
  function relisting(id: string, { before, after, ...more }: Relisting): Write<string> {
    const key = { kind: 'transfer', id: `by-${id}` } as const
    const guard = more.guards && { kind: 'quote' as const, id: more.guards(id), version: 1 }
    return {
      reads: [key],
      ...together,
      ...(guard && { guard: { record: guard, ifChanged: 'outdated' } }),
      decide(read) {
        const version = (read(key)?.version ?? 0) + 1
        const lists = after.map(([list = '', at]) => ({ list, at: Number(at) }))
        const next = { id: key.id, version, commandId: id, lists }
        return {
          type: 'commit',
          changes: [{ kind: 'transfer', next, events: more.events ?? [] }],
          result: id,
        }
      },
    }
  }

  interface Relisting {
    /** The lists and positions of a record, such as `a1`; absent if the record is new. */
    readonly before?: readonly string[]
    readonly after: readonly string[]
    readonly events?: readonly DomainEvent[]
    readonly guards?: (id: string) => string
  }

  test.each<[string, number, Relisting]>([
    ['two lists of a new record', 3, { after: ['a1', 'b1'] }],
    ['no lists that a record remains in', 2, { before: ['a1', 'b2'], after: ['a1', 'b2', 'c3'] }],
    ['a list in which it moves', 2, { before: ['a1', 'b2', 'c3'], after: ['a1', 'b2', 'c1'] }],
    ['a list that it leaves', 2, { before: ['a1'], after: [] }],
    ['an event', 2, { after: [], events: [eventOf('quote.created')] }],
    ['a guard', 4, { after: ['a1', 'b1'], guards: (id) => `guarded-${id}` }],
    ['no guard of another write', 3, { after: ['a1', 'b1'], guards: () => 'guarded' }],
  ])('share a commit up to the bound of its size, which counts %s', async (_, size, relisted) => {
    const memory = memoryStore()
    const ids = Array.from({ length: 61 }, (_, each) => `${each}`)
    const { before, guards = () => undefined } = relisted
    const guarded = new Set(ids.map(guards).filter((id) => id !== undefined))
    const old = before?.map(([list = '', at]) => ({ list, at: Number(at) }))
    const start = [
      ...[...guarded].map((id) => ({ kind: 'quote', next: { id } }) as const),
      ...(old
        ? ids.map((id) => ({ kind: 'transfer', next: { id: `by-${id}`, lists: old } }) as const)
        : []),
    ]
    for (const { kind, next } of start) {
      const record = { ...next, version: 1, commandId: 'start' }
      const change = { kind, next: record, expectedVersion: 0 } as const
      expect(await memory.commit({ changes: [change], guards: [] })).toBe(true)
    }
    const { store, commits, proceed } = heldStore(memory)
    const run = runner(store)
    const results = Promise.all(ids.map((id) => run(relisting(id, relisted))))
    await proceed(true)
    expect(await results).toEqual(ids)
    const [alone, shared] = commits.map((commit) => [
      incrementsIn(commit).length,
      commitSizeOf(commit),
    ])
    const common = guarded.size === 1 ? 1 : 0
    const most = Math.floor((storeBounds.commitSize - common) / size)
    expect([alone, shared]).toEqual([
      [1, common + size],
      [most, common + most * size],
    ])
  })

  test('are each executed, however large their commits are', async () => {
    const { store, commits, proceed } = heldStore()
    const run = runner(store)
    const large = (id: string): Write<string> => ({
      reads: [],
      ...together,
      decide: () => ({
        type: 'commit',
        changes: Array.from({ length: storeBounds.commitSize + 1 }, (_, each) => ({
          kind: 'transfer',
          next: { id: `${id}-${each}`, version: 1, commandId: id },
        })),
        result: id,
      }),
    })
    const results = Promise.all(['1', '2', '3'].map((id) => run(large(id))))
    await proceed(true)
    expect(await results).toEqual(['1', '2', '3'])
    expect(commits).toHaveLength(3)
  })

  test('all reject with the error of their commit, and later ones proceed', async () => {
    const sound = memoryStore()
    let isDown = false
    const commit: Store['commit'] = async (commit) => {
      if (isDown) throw new Error('the store failed')
      await settled()
      return sound.commit(commit)
    }
    const run = runner({ ...sound, commit })
    const first = run(increment('1', together))
    const failing = Promise.allSettled(['2', '3'].map((each) => run(increment(each, together))))
    await first
    isDown = true
    const reasons = (await failing).map((each) => each.status === 'rejected' && `${each.reason}`)
    expect(reasons).toEqual(['Error: the store failed', 'Error: the store failed'])
    isDown = false
    expect(await run(increment('4', together))).toBe(2)
    await settled()
    expect(await run(increment('5', together)), 'the name is free again').toBe(3)
  })

  test('are refused if they waited too long or too many wait, and are then never decided', async () => {
    const { store, commits, proceed } = heldStore()
    const waits: (() => void)[] = []
    const sleep: Pacing['sleep'] = (_ms, signal) =>
      new Promise((resolve) => {
        waits.push(resolve)
        signal?.addEventListener('abort', () => resolve())
      })
    const run = runner(store, { pacing: { elapsedMs: () => 0, sleep } })
    const first = run(increment('first', together))
    const waiting = Array.from({ length: waitingMax }, (_, each) =>
      run(increment(`${each}`, together)),
    )
    await expect(run(increment('one too many', together))).rejects.toThrow(ContentionError)
    waits[1]?.()
    await expect(waiting[1]).rejects.toThrow(ContentionError)
    await proceed(true)
    await first
    await Promise.all(waiting.filter((_, each) => each !== 1))
    const decided = commits.flatMap(incrementsIn)
    expect(decided).toHaveLength(waitingMax)
    expect(decided).not.toContain('1')
    expect(decided).not.toContain('one too many')
  })

  test('that a commit has no room for wait no longer than the others', async () => {
    const { store, commits, proceed } = heldStore()
    const pacing = virtualPacing()
    const run = runner(store, { pacing })
    const large = (id: string): Write<string> => ({
      reads: [{ kind: 'transfer', id: `by-${id}` }],
      ...together,
      decide: () => ({
        type: 'commit',
        changes: Array.from({ length: 50 }, (_, each) => ({
          kind: each === 0 ? 'transfer' : 'quote',
          next: { id: each === 0 ? `by-${id}` : `${id}-${each}`, version: 1, commandId: id },
        })),
        result: id,
      }),
    })
    const first = run(large('1'))
    const second = run(large('2'))
    const third = run(large('3'))
    third.catch(() => {})
    await settled()
    await proceed()
    expect(await first).toBe('1')
    await pacing.sleep(3_000)
    await proceed()
    expect(await second).toBe('2')
    await expect(third).rejects.toThrow(ContentionError)
    expect(commits.map(incrementsIn)).toEqual([['1'], ['2']])
  })

  test('trust nothing that was assumed before they waited', async () => {
    const { store, proceed } = heldStore()
    const run = runner(store)
    const stale = { basis: nothingExists, ...together }
    const first = run(increment('1', stale))
    const told = run<string>({
      ...{ reads: [counterKey], basis: nothingExists, ...together },
      decide: (read) => ({ type: 'answer', result: `${read<Counter>(counterKey)?.count}` }),
    })
    await proceed(true)
    expect(await first).toBe(1)
    expect(await told).toBe('1')
  })

  test('are decided again if they change nothing while others do', async () => {
    const { store, loads, commits, proceed } = heldStore()
    const run = runner(store)
    const refused = increment('no', { ...together, decide: () => ({ type: 'answer', result: 0 }) })
    const all = [increment('1', together), increment('2', together), refused].map(run)
    await settled()
    loads.length = 0
    await proceed(true)
    expect(await Promise.all(all)).toEqual([1, 2, 0])
    expect(commits.map(incrementsIn)).toEqual([['1'], ['2']])
    const own = { kind: 'transfer', id: 'by-no' }
    // Together with the second one, and then again, apart.
    expect(loads.map((keys) => keys.length)).toEqual([3, 2])
    for (const keys of loads) expect(keys).toContainEqual(own)
  })
})

test('a new record is created once', async () => {
  const store = memoryStore()
  const record = { id: 'new', version: 1, commandId: 'me' }
  const write = creationWrite('quote', { record, events: [] }, 'created')
  const { store: held, commits, proceed } = heldStore(store)
  await proceed(true)
  expect(await runner(fated(held, 'lands-and-fails'))(write)).toBe('created')
  expect(await loadOne(store, 'quote', 'new')).toEqual(record)
  expect(commits).toHaveLength(1)
})

test('only the types of events that the host wants are recorded', async () => {
  const { store, commits, proceed } = heldStore()
  await proceed(true)
  const record = { id: 'new', version: 1, commandId: 'me' }
  const events = [eventOf('quote.created'), eventOf('outgoing-payment.created')]
  const recordsEvents = (type: string) => type === 'outgoing-payment.created'
  await runner(store, { recordsEvents })(creationWrite('quote', { record, events }, undefined))
  expect(commits.flatMap(({ changes }) => changes.map(({ next }) => next))).toEqual([
    { ...record, lastEvent: expect.stringMatching(/^0001\.me\./) },
    expect.objectContaining({ event: events[1] }),
  ])
})

/** An account that says which commands changed it, in their order. */
interface Account extends Stored {
  readonly balance: number
  readonly applied: readonly string[]
}

interface Move {
  readonly process: number
  readonly from: number
  readonly to: number
  readonly amount: number
  readonly name?: string | undefined
  readonly breaks: boolean
}

interface Moved {
  readonly ok: boolean
  readonly balance?: number
}

describe('random writes over shared records', () => {
  const accounts = ['account0', 'account1', 'account2']
  const opening = 5
  const accountKey = (index: number) => ({ kind: 'grant', id: accounts[index] ?? '' }) as const
  const commandOf = (index: number) => `command-${index}`.padEnd(22, '-')

  /** Moves an amount between accounts, if the first has it. Resolves to what is left there. */
  function moving({ from, to, amount, name, breaks }: Move, index: number): Write<Moved> {
    const commandId = commandOf(index)
    const own = { kind: 'transfer', id: `own-${commandId}` } as const
    const [source, target] = [accountKey(from), accountKey(to)]
    return {
      reads: [source, target, own],
      ...(name !== undefined && { together: name }),
      decide(read) {
        if (breaks) throw new Error('a bug')
        const done = read<Account>(own)
        if (done !== undefined)
          return { type: 'answer', result: { ok: true, balance: done.balance } }
        const changed = (key: RecordKey, difference: number): Account => {
          const { id, version, balance, applied } = read<Account>(key) ?? newAccount(key.id)
          const next = { balance: balance + difference, applied: [...applied, commandId] }
          return { id, version: version + 1, commandId, ...next }
        }
        const [taken, given] = [changed(source, -amount), changed(target, amount)]
        if (taken.balance < 0) return { type: 'answer', result: { ok: false } }
        const record = { ...taken, id: own.id, version: 1 }
        return {
          type: 'commit',
          changes: [
            { kind: 'grant', next: taken },
            ...(from === to ? [] : [{ kind: 'grant', next: given } as const]),
            { kind: 'transfer', next: record },
          ],
          result: { ok: true, balance: taken.balance },
        }
      },
    }
  }

  const newAccount = (id: string): Account => ({
    ...{ id, version: 0, commandId: '', balance: opening, applied: [] },
  })

  /** A store whose calls take turns, and whose commits meet these fates. */
  function hostile(store: Store, scheduler: Scheduler, script: Fate[]): Store {
    const faulty = fated(store, ...script)
    const turn = () => scheduler.schedule(Promise.resolve(), 'turn')
    return {
      ...store,
      async load(keys) {
        await turn()
        const found = await store.load(keys)
        await turn()
        return found
      },
      async commit(commit) {
        await turn()
        const committed = await faulty.commit(commit)
        await turn()
        return committed
      },
    }
  }

  const account = fc.nat({ max: accounts.length - 1 })
  const move: fc.Arbitrary<Move> = fc
    .record({
      process: fc.nat({ max: 1 }),
      ends: fc.tuple(account, account).filter(([from, to]) => from !== to),
      amount: fc.integer({ min: 1, max: 4 }),
      name: fc.constantFrom('one', 'two', undefined),
      breaks: fc.integer({ min: 0, max: 9 }).map((die) => die === 0),
    })
    .map(({ ends: [from, to], ...rest }) => ({ ...rest, from, to }))

  test('have the results of one commit each, in one order, whatever the store does', async () => {
    const met = { changed: 0, refused: 0, shared: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(move, { minLength: 2, maxLength: 12 }),
        fc.array(fc.constantFrom(...fates), { maxLength: 5 }),
        async (scheduler, moves, script) => {
          const memory = memoryStore()
          const counting: Store = {
            ...memory,
            commit(commit) {
              if (incrementsIn(commit).length > 1) met.shared += 1
              return memory.commit(commit)
            },
          }
          const store = boundedStore(hostile(counting, scheduler, script))
          const sleep: Pacing['sleep'] = async (_ms, signal) => {
            if (signal === undefined) await scheduler.schedule(Promise.resolve(), 'pause')
            else await new Promise((wake) => signal.addEventListener('abort', wake))
          }
          const pacing = { elapsedMs: () => 0, sleep }
          const processes = ['one', 'two'].map((seed) =>
            runner(store, { pacing, random: seededRandom(seed) }),
          )
          const all = moves.map((each, index) => processes[each.process]?.(moving(each, index)))
          const results = await scheduler.waitFor(Promise.allSettled(all))
          const found = await Promise.all(accounts.map((id) => loadOne(memory, 'grant', id)))
          const histories = found.map(
            (record, index) => (record ?? newAccount(accounts[index] ?? '')) as Account,
          )

          /** The balance of an account after each command that changed it. */
          const balances = histories.map(({ applied }, index) => {
            let balance = opening
            return applied.map((commandId) => {
              const { from, amount } = moves.find(
                (_, each) => commandOf(each) === commandId,
              ) as Move
              balance += from === index ? -amount : amount
              return balance
            })
          })
          for (const [index, { balance, applied }] of histories.entries()) {
            expect(balance).toBe(balances[index]?.at(-1) ?? opening)
            expect(new Set(applied).size, 'each command takes effect once').toBe(applied.length)
          }
          for (const [index, result] of results.entries()) {
            const { from, to, amount, breaks } = moves[index] as Move
            const at = (account: number) =>
              histories[account]?.applied.indexOf(commandOf(index)) ?? -1
            if (breaks) expect(result).toMatchObject({ reason: { message: 'a bug' } })
            else if (result.status === 'rejected') throw result.reason
            else if (result.value?.ok) {
              met.changed += 1
              expect(result.value.balance).toBe(balances[from]?.[at(from)])
              expect(at(to)).toBeGreaterThanOrEqual(0)
              continue
            } else {
              met.refused += 1
              const lowest = Math.min(opening, ...(balances[from] ?? []))
              expect(lowest, 'a refusal was true at some time').toBeLessThan(amount)
            }
            expect([at(from), at(to)]).toEqual([-1, -1])
          }
        },
      ),
      { numRuns: runs(300) },
    )
    for (const count of Object.values(met)) expect(count).toBeGreaterThan(runs(100) / 10)
  })
})
