import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type HttpResponse, memoryStore, type Store } from '../../../src/index.js'
import { timedStore } from '../../../src/service/mechanism/timed-store.js'
import { answerOf, createWorld, incomingAccess } from '../../support/world.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const never = <Value>() => new Promise<Value>(() => {})

/** A store whose calls of this method never settle. */
function frozen(method: keyof Store, store = memoryStore()): Store {
  return { ...store, [method]: never }
}

describe('a store with a time limit', () => {
  test.each(['load', 'commit', 'list', 'due', 'remove'] as const)(
    'rejects a call of %s that does not settle',
    async (method) => {
      const store = timedStore(frozen(method), 1_000)
      const call = (store[method] as () => Promise<unknown>)()
      const settled = vi.fn()
      call.catch(settled)
      await vi.advanceTimersByTimeAsync(999)
      expect(settled).not.toHaveBeenCalled()
      await vi.advanceTimersByTimeAsync(1)
      await expect(call).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
    },
  )

  test('passes on results and errors, and leaves no timer', async () => {
    const store = timedStore(
      { ...memoryStore(), remove: () => Promise.reject(new Error('locked')) },
      1_000,
    )
    expect(await store.load('grant', 'unknown')).toBeUndefined()
    await expect(store.remove('grant', 'unknown', 1)).rejects.toThrow('locked')
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a server on a store that is frozen', () => {
  test.each(['load', 'commit'] as const)('responds with 503 if %s is', async (method) => {
    const sound = memoryStore()
    let isFrozen = false
    const world = createWorld({
      store: {
        ...sound,
        [method]: (...given: never[]) =>
          isFrozen ? never() : (sound[method] as (...given: never[]) => Promise<unknown>)(...given),
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
    while (answer === undefined) {
      await new Promise(setImmediate)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(answerOf(answer).status).toBe(503)
    expect(world.errors.at(-1)).toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
  })
})
