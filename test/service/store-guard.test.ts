import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { HttpResponse } from '../../src/entry-adapter.js'
import { memoryStore, type Store } from '../../src/index.js'
import { guardedStore } from '../../src/service/store-guard.js'
import { manualClock } from '../support/clock.js'
import { loadOne, removeOne } from '../support/one-record.js'
import { answerOf, createWorld, incomingAccess } from '../support/world.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const never = <Value>() => new Promise<Value>(() => {})

/** The store as a server uses it, with a time limit of a second. */
const limited = (store: Store) =>
  guardedStore(store, { clock: manualClock(), timeoutMs: 1_000, server: 'test' })

/** A store whose calls of this method never settle. */
function frozen(method: keyof Store, store = memoryStore()): Store {
  return { ...store, [method]: never }
}

describe('a store with a time limit', () => {
  const key = { kind: 'grant', id: 'unknown' } as const
  const calls: { [Call in keyof Store]: Parameters<Store[Call]> } = {
    load: [[key]],
    commit: [{ changes: [], guards: [{ ...key, version: 1 }] }],
    list: [{ kind: 'grant', list: 'all', forward: true, limit: 1 }],
    due: ['grant', 'namespac', 0, 1],
    remove: [[{ ...key, version: 1 }]],
  }

  test.each(Object.entries(calls))(
    'rejects a call of %s that does not settle',
    async (name, parameters) => {
      const method = name as keyof Store
      const store = limited(frozen(method))
      const call = (store[method] as (...given: unknown[]) => Promise<unknown>)(...parameters)
      const settled = vi.fn()
      call.catch(settled)
      await vi.advanceTimersByTimeAsync(999)
      expect(settled).not.toHaveBeenCalled()
      await vi.advanceTimersByTimeAsync(1)
      await expect(call).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
    },
  )

  test('passes on results and errors, and leaves no timer', async () => {
    const store = limited({
      ...memoryStore(),
      remove: () => Promise.reject(new Error('locked')),
    })
    expect(await loadOne(store, 'grant', 'unknown')).toBeUndefined()
    await expect(removeOne(store, 'grant', 'unknown', 1)).rejects.toThrow('locked')
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a server on a store that is frozen', () => {
  test.each([
    ['load', 3_000],
    ['commit', 3_000],
  ] as const)('responds with 503 if %s is, within %i ms', async (method, heldMs) => {
    const sound = memoryStore()
    let isFrozen = false
    let held = 0
    const world = createWorld({
      store: {
        ...sound,
        [method]: (...given: never[]) => {
          if (!isFrozen) return (sound[method] as (...given: never[]) => Promise<unknown>)(...given)
          held += 1
          return never()
        },
      },
    })
    const client = world.client()
    const { body } = await client.request([incomingAccess])
    const { manage: url, value: token } = body.access_token
    isFrozen = true
    const signed = client.sign({ method: 'POST', url, token, nonce: 'n' })
    let answer: HttpResponse | undefined
    void world.handle(signed).then((response) => {
      answer = response
    })
    // The time must not pass before the server calls the store.
    await expect.poll(() => held).toBe(1)
    const startedAt = performance.now()
    while (answer === undefined) {
      await new Promise(setImmediate)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(performance.now() - startedAt).toBeLessThanOrEqual(heldMs + 1_000)
    expect(answerOf(answer).status).toBe(503)
    expect(world.errors.at(-1)).toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
  })
})

describe('a server on a store that fails', () => {
  test.each([
    ['rejects', () => Promise.reject(new Error('hunter2: connection refused'))],
    ['rejects with a TypeError of its driver', () => Promise.reject(new TypeError('hunter2'))],
    ['rejects with text', () => Promise.reject('hunter2')],
    [
      'throws',
      () => {
        throw new Error('hunter2')
      },
    ],
  ])('responds with 503 and Retry-After if it %s', async (_, fail) => {
    const sound = memoryStore()
    let fails = false
    const load: Store['load'] = (keys) => (fails ? fail() : sound.load(keys))
    const world = createWorld({ store: { ...sound, load } })
    const client = world.client()
    const { body } = await client.request([incomingAccess])
    fails = true
    const answer = await client.rotate(body.access_token)
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
    expect(JSON.stringify(answer.body)).not.toContain('hunter2')
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'busy', reason: 'the store failed' })
    expect(world.errors).toHaveLength(1)
  })

  test('responds with 500 for an error that is not of the store', async () => {
    const random = {
      getRandomValues: () => {
        throw new TypeError('a bug')
      },
    }
    const world = createWorld({ auth: { random } })
    const { status } = await world.client().request([incomingAccess])
    expect(status).toBe(500)
  })
})
