import { memoryStore, type Store } from 'open-payments-server'
import type { RecordChange } from 'open-payments-server/adapter'
import { loadOne } from 'open-payments-test-support/one-record'
import { describe, expect, test } from 'vitest'
import { racingStore } from '../src/spending/stores.js'

/** A slow store that logs the start and the end of commits. */
function watchedStore() {
  const told: string[] = []
  const memory = memoryStore()
  const store: Store = {
    ...memory,
    async load(keys) {
      told.push(...keys.map(({ id }) => `read ${id}`))
      return memory.load(keys)
    },
    async commit(commit) {
      const names = commit.changes.map(({ next }) => next.id).join()
      told.push(`begin ${names}`)
      await new Promise((resolve) => setImmediate(resolve))
      const committed = await memory.commit(commit)
      told.push(`end ${names}`)
      return committed
    },
  }
  return { store, told }
}

function change(kind: RecordChange['kind'], id: string, more: object = {}): RecordChange {
  return { kind, next: { id, version: 1, commandId: id, ...more }, expectedVersion: 0 }
}

/** A task that reads and, after a number of its own microtasks, writes. */
function writing(store: Store, id: string, turns: number) {
  return async () => {
    await loadOne(store, 'grant', id)
    for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
    return store.commit({ changes: [change('grant', id, { metadata: id })], guards: [] })
  }
}

describe('tasks in a race', () => {
  test('all read before any writes, and then write together', async () => {
    const { store, told } = watchedStore()
    const { store: racing, race } = racingStore(store)
    const tasks = [writing(racing, 'a', 0), writing(racing, 'b', 5), writing(racing, 'c', 2)]
    expect(await race(tasks, 'together')).toEqual([true, true, true])
    expect(told.slice(0, 3).sort()).toEqual(['read a', 'read b', 'read c'])
    expect(told.slice(3, 6)).toEqual(['begin a', 'begin b', 'begin c'])
  })

  test.each([
    ['in turn', ['begin a', 'end a', 'begin b', 'end b']],
    ['in reverse', ['begin b', 'end b', 'begin a', 'end a']],
  ] as const)(
    'can commit one after the other, regardless of arrival: %s',
    async (order, expected) => {
      for (const turns of [0, 5]) {
        const { store, told } = watchedStore()
        const { store: racing, race } = racingStore(store)
        await race([writing(racing, 'a', 2), writing(racing, 'b', turns)], order)
        expect(told.slice(2)).toEqual(expected)
      }
    },
  )

  test('do not wait for tasks that end without writing or fail', async () => {
    const { store, told } = watchedStore()
    const { store: racing, race } = racingStore(store)
    const idle = async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return false
    }
    expect(await race([writing(racing, 'a', 0), idle, idle], 'in turn')).toEqual([
      true,
      false,
      false,
    ])
    let written: Promise<boolean> | undefined
    const writer = () => (written = writing(racing, 'b', 3)())
    const failing = race([writer, () => Promise.reject(new Error('no'))], 'in turn')
    await expect(failing).rejects.toThrow('no')
    expect(await written).toBe(true)
    expect(told.at(-1)).toBe('end b')
  })

  test('wait only once: their later writes and their quotes are not held', async () => {
    const { store, told } = watchedStore()
    const { store: racing, race } = racingStore(store)
    const twice = async () => {
      await racing.commit({ changes: [change('quote', 'q')], guards: [] })
      await writing(racing, 'a', 0)()
      return racing.commit({ changes: [change('grant', 'again')], guards: [] })
    }
    expect(await race([twice, writing(racing, 'b', 1)], 'in turn')).toEqual([true, true])
    expect(told.filter((line) => line.startsWith('end'))).toContain('end again')
    expect(told.indexOf('end q')).toBeLessThan(told.indexOf('begin a'))
  })

  test('get the error of a commit that fails', async () => {
    const broken: Store = { ...memoryStore(), commit: () => Promise.reject(new Error('lost')) }
    const { store: racing, race } = racingStore(broken)
    await expect(race([writing(racing, 'a', 0)], 'together')).rejects.toThrow('lost')
  })
})

describe('a payment under a grant', () => {
  const paid = change('outgoing-payment', 'p', { grantId: 'g' })
  const revoked = change('grant', 'g', { finalized: { reason: 'revoked', at: 0 } })

  test.each([
    ['that was revoked before is reported', [revoked, paid], true],
    ['that is revoked later is not reported', [paid, revoked], false],
    ['that is approved is not reported', [change('grant', 'g', { granted: [] }), paid], false],
    [
      'while another grant is revoked is not reported',
      [{ ...revoked, next: { ...revoked.next, id: 'h' } }, paid],
      false,
    ],
  ])('%s', async (_, changes, isProblem) => {
    const { store, problem } = racingStore(memoryStore())
    for (const each of changes) await store.commit({ changes: [each], guards: [] })
    expect(problem() !== undefined).toBe(isProblem)
  })

  test('is not reported if its commit failed', async () => {
    const memory = memoryStore()
    const { store, problem } = racingStore(memory)
    await store.commit({ changes: [revoked], guards: [] })
    const guards = [{ kind: 'grant', id: 'g', version: 7 }] as const
    expect(await store.commit({ changes: [paid], guards })).toBe(false)
    expect(problem()).toBeUndefined()
  })
})
