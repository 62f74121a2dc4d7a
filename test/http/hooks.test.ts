import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore, type ServerHooks, type Telemetry } from '../../src/index.js'
import { impatiently } from '../support/impatiently.js'
import { bob, createWorld, incomingAccess } from '../support/world.js'

const broken = new Error('the hook is broken')

/** Ways in which a hook fails. */
const failures: Readonly<Record<string, () => unknown>> = {
  'throws an error': () => {
    throw broken
  },
  'throws undefined': () => {
    throw undefined
  },
  'rejects immediately': () => Promise.reject(broken),
  'rejects later': () => new Promise((_, reject) => setImmediate(() => reject(broken))),
  'returns an object with a broken then': () => ({
    // biome-ignore lint/suspicious/noThenProperty: the test needs a broken one.
    then() {
      throw broken
    },
  }),
  'never finishes': () => new Promise(() => undefined),
}

const failing = Object.entries(failures)
const reporting = failing.filter(
  ([name]) => name !== 'never finishes' && name !== 'throws undefined',
)

const unhandled: unknown[] = []
const note = (error: unknown) => void unhandled.push(error)
beforeAll(() => void process.on('unhandledRejection', note))
afterAll(() => void process.off('unhandledRejection', note))

/** Waits until Node has reported promises that nobody handled. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const unsigned = { method: 'POST', url: '/auth', headers: [], body: new Uint8Array() } as const

/** Sends a request that is refused and one that is accepted. */
async function exchange(hooks: ServerHooks) {
  const world = createWorld({ auth: hooks, resources: hooks })
  const refused = await world.handle(unsigned)
  const client = world.client()
  const granted = await client.request([incomingAccess])
  const payment = await client.createPayment(granted.body.access_token?.value, {
    walletAddress: bob,
  })
  await settled()
  const { status: refusedStatus } = refused
  return { statuses: [refusedStatus, granted.status, payment.status], body: refused.body }
}

const undisturbed = await exchange({})

describe.each(failing)('a hook that %s', (_, fail) => {
  test.each(['onRefusal', 'onError'] as const)(
    'does not change a response or leave a rejection unhandled: %s',
    async (name) => {
      expect(await exchange({ [name]: fail })).toEqual(undisturbed)
      expect(unhandled).toEqual([])
    },
  )

  test('does not change the response to a failing store', async () => {
    const store = { ...memoryStore(), commit: () => Promise.reject(new Error('the disk is full')) }
    const world = createWorld({ store, auth: { onError: fail as () => void } })
    const client = world.client()
    const { status } = await impatiently(() => client.request([incomingAccess]))
    await settled()
    expect(status).toBe(503)
    expect(unhandled).toEqual([])
  })
})

describe('onError', () => {
  test.each(reporting)('receives the error of an onRefusal that %s', async (_, fail) => {
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    await exchange({ onRefusal: fail as () => void, onError })
    expect(errors).toEqual([broken])
  })
})

/** Telemetry that fails before, during or after the work that it measures. */
const brokenTelemetry: Readonly<Record<string, (fail: () => unknown) => Telemetry['observe']>> = {
  'instead of the work': (fail) => () => fail() as never,
  'before the work': (fail) => async (_, work) => {
    await fail()
    return work(() => undefined)
  },
  'after the work': (fail) => async (_, work) => {
    const result = await work(() => undefined)
    await fail()
    return result
  },
  'at the outcome': (fail) => (_, work) => work(() => fail() as never),
  'without waiting for the work': (fail) => (_, work) => {
    void work(() => undefined)
    return fail() as never
  },
}

describe.each(Object.entries(brokenTelemetry))('telemetry that fails %s', (_, observe) => {
  test.each(failing)('does not change a response when it %s', async (_, fail) => {
    const telemetry: Telemetry = { observe: observe(fail) }
    expect(await exchange({ telemetry })).toEqual(undisturbed)
    expect(unhandled).toEqual([])
  })
})

describe('telemetry', () => {
  test('causes each store call once, even if it starts the work late or twice', async () => {
    const calls: string[] = []
    const real = memoryStore()
    const store = {
      ...real,
      commit: (commit: Parameters<typeof real.commit>[0]) => {
        calls.push(commit.changes[0]?.kind ?? 'nothing')
        return real.commit(commit)
      },
    }
    const late: Telemetry = {
      async observe(_, work) {
        await settled()
        return work(() => undefined)
      },
    }
    const twice: Telemetry = {
      async observe(_, work) {
        await work(() => undefined)
        return work(() => undefined)
      },
    }
    for (const telemetry of [late, twice]) {
      const world = createWorld({ store, auth: { telemetry } })
      const { status } = await world.client().request([incomingAccess])
      await settled()
      await settled()
      expect(status).toBe(200)
    }
    expect(calls).toEqual(['server', 'grant', 'grant'])
  })

  test('cannot replace the result of a store call', async () => {
    const telemetry: Telemetry = {
      async observe(activity, work) {
        const result = await work(() => undefined)
        return activity.type === 'store' ? (undefined as never) : result
      },
    }
    expect(await exchange({ telemetry })).toEqual(undisturbed)
  })

  test('does not hide the error of the store', async () => {
    const errors: unknown[] = []
    const full = new Error('the disk is full')
    const store = { ...memoryStore(), commit: () => Promise.reject(full) }
    const telemetry: Telemetry = { observe: (_, work) => work(() => undefined) }
    const onError = (error: unknown) => void errors.push(error)
    const world = createWorld({ store, auth: { telemetry, onError } })
    const client = world.client()
    const { status } = await impatiently(() => client.request([incomingAccess]))
    await settled()
    expect(status).toBe(503)
    expect(new Set(errors)).toEqual(new Set([full]))
    expect(errors).toHaveLength(1)
  })

  test('that fails is reported to onError', async () => {
    const errors: unknown[] = []
    const observe = () => {
      throw broken
    }
    const onError = (error: unknown) => void errors.push(error)
    const world = createWorld({ auth: { telemetry: { observe }, onError } })
    await world.handle(unsigned)
    expect(errors).toEqual([broken])
  })
})
