import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createGate, type Rank } from '../../src/network/gate.js'

interface Answer {
  readonly responded: boolean
  readonly path: string
}

/** Requests that the test ends in any order, and that ignore their signal. */
function setUp({ requestMs = 2_000, firstPerHost = 1 } = {}) {
  const started: string[] = []
  const signals = new Map<string, AbortSignal>()
  const ends = new Map<string, (answer: Answer) => void>()
  const gate = createGate<Answer>({
    requestMs,
    firstPerHost,
    send: ({ href, pathname }, signal) => {
      started.push(href)
      signals.set(href, signal)
      return new Promise((resolve) =>
        ends.set(href, (answer) => resolve({ ...answer, path: pathname })),
      )
    },
  })
  const outcomes = new Map<number, string>()
  let asked = 0
  return {
    started,
    signals,
    outcomes,
    /** Asks for a URL; its outcome is `answered`, `full` or `late`. */
    ask(href: string, rank: Rank = 1): Promise<string> {
      const number = asked++
      const outcome = gate(new URL(href), rank).then(
        () => 'answered',
        (error) => (error.code === 'ERR_GATE_FULL' ? 'full' : 'late'),
      )
      return outcome.then((text) => {
        outcomes.set(number, text)
        return text
      })
    },
    async end(href: string, responded = true): Promise<void> {
      ends.get(href)?.({ responded, path: '' })
      ends.delete(href)
      await vi.advanceTimersByTimeAsync(0)
    },
  }
}

function urls(count: number, host = 'shop.example'): string[] {
  return Array.from({ length: count }, (_, i) => `https://${host}/${i}`)
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('requests for one URL at the same time', () => {
  test('are one request, whose answer all callers get', async () => {
    const { started, ask, end } = setUp()
    const asked = [1, 2, 3].map(() => ask('https://shop.example/'))
    expect(started).toHaveLength(1)
    await end('https://shop.example/')
    expect(await Promise.all(asked)).toEqual(['answered', 'answered', 'answered'])
    void ask('https://shop.example/')
    expect(started).toHaveLength(2)
  })
})

describe('requests to one host', () => {
  test('run one at a time at first, and one more with each response, up to four', async () => {
    const { started, ask, end } = setUp()
    const all = urls(30)
    for (const url of all) void ask(url)
    const inProgress = [started.length]
    for (let ended = 1; ended <= 6; ended++) {
      await end(all[ended - 1] ?? '')
      inProgress.push(started.length - ended)
    }
    expect(inProgress).toEqual([1, 2, 3, 4, 4, 4, 4])
  })

  test('run one at a time again when the host does not respond', async () => {
    const { started, ask, end } = setUp()
    const all = urls(30)
    for (const url of all) void ask(url)
    for (let i = 0; i < 3; i++) await end(all[i] ?? '')
    expect(started).toHaveLength(3 + 4)
    for (let i = 3; i < 7; i++) await end(all[i] ?? '', false)
    expect(started).toHaveLength(8)
    await end(all[7] ?? '', false)
    expect(started).toHaveLength(9)
  })

  test('run in the order of their rank, and of arrival', async () => {
    const { started, ask, end } = setUp()
    const asked: [string, Rank][] = [
      ['running', 1],
      ['failed', 2],
      ['new', 1],
      ['known', 0],
      ['new too', 1],
    ]
    for (const [name, rank] of asked) void ask(`https://shop.example/${name}`, rank)
    for (let i = 0; i < 5; i++) await end(started[i] ?? '', false)
    expect(started.map((url) => decodeURI(new URL(url).pathname))).toEqual([
      ...['/running', '/known', '/new', '/new too', '/failed'],
    ])
  })

  test('are turned away when they did not get a turn in 5 s', async () => {
    const { started, ask } = setUp({ requestMs: 60_000 })
    const [first = '', second = ''] = urls(2)
    void ask(first)
    const waiting = ask(second)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await waiting).toBe('full')
    expect(started).toEqual([first])
  })

  test('do not delay requests to other hosts or other ports', () => {
    const { started, ask } = setUp()
    for (const url of urls(10)) void ask(url)
    void ask('https://other.example/')
    void ask('https://shop.example:8443/')
    expect(started.slice(1)).toEqual(['https://other.example/', 'https://shop.example:8443/'])
  })
})

describe('a request that never settles', () => {
  test('frees its slot at the deadline, and its signal aborts', async () => {
    const { started, signals, ask } = setUp({ requestMs: 2_000 })
    const [first = '', second = ''] = urls(2)
    const asked = [ask(first), ask(first), ask(second)]
    await vi.advanceTimersByTimeAsync(1_999)
    expect([started.length, signals.get(first)?.aborted]).toEqual([1, false])
    await vi.advanceTimersByTimeAsync(1)
    expect(await Promise.all(asked.slice(0, 2))).toEqual(['late', 'late'])
    expect([started.length, signals.get(first)?.aborted]).toEqual([2, true])
  })

  test.each([
    ['256 domains', 256, (i: number) => `https://shop-${i}.example/`],
    ['16 hosts of a domain', 16, (i: number) => `https://h${i}.shop.example/`],
  ])('leaves its slot to others within the deadline: %s', async (_, count, urlOf) => {
    const { started, ask, end } = setUp()
    for (let i = 0; i < count; i++) void ask(urlOf(i))
    await vi.advanceTimersByTimeAsync(4_000)
    const honest = ask('https://honest.shop.example/')
    expect(started.at(-1)).toBe('https://honest.shop.example/')
    await end('https://honest.shop.example/')
    expect(await honest).toBe('answered')
  })
})

describe('requests to many hosts', () => {
  test('run 8 at a time for the hosts of one site', async () => {
    const { started, ask, end } = setUp()
    for (let i = 0; i < 100; i++) void ask(`https://h${i}.shop.example/`)
    expect(started).toHaveLength(8)
    await end(started[0] ?? '')
    expect(started).toHaveLength(9)
  })

  test('leave 128 of 256 slots to sites that have no request in progress', async () => {
    const { started, ask, end } = setUp()
    for (let site = 0; site < 40; site++) {
      for (let i = 0; i < 8; i++) void ask(`https://h${i}.site-${site}.example/`)
    }
    // 16 sites have eight requests each, and 24 have one.
    expect(started).toHaveLength(128 + 24)
    for (let site = 40; site < 300; site++) void ask(`https://site-${site}.example/`)
    expect(started).toHaveLength(256)
    await end('https://site-40.example/')
    expect(started.at(-1)).toBe('https://site-144.example/')
  })

  test('are turned away for the site that has most callers when more than 512 wait', async () => {
    const { ask, outcomes } = setUp()
    for (const url of urls(450, 'big.example')) void ask(url)
    for (const url of urls(40, 'small.example')) void ask(url)
    for (let i = 0; i < 100; i++) void ask('https://honest.example/')
    await vi.advanceTimersByTimeAsync(0)
    const away = [...outcomes].filter(([, outcome]) => outcome === 'full')
    expect(away.map(([number]) => number)).toEqual(
      Array.from({ length: 450 + 40 + 100 - 512 }, (_, i) => 449 - i),
    )
  })
})

describe('for any requests and any behaviour of hosts', () => {
  test('limits hold, every caller gets an outcome in time, and nothing is left behind', async () => {
    const event = fc.oneof(
      fc.record({ ask: fc.tuple(fc.nat(3), fc.nat(2), fc.nat(9)), rank: fc.nat(2) }),
      fc.record({ end: fc.nat(9), responded: fc.boolean() }),
      fc.record({ wait: fc.constantFrom(1, 500, 3_000) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 80 }), async (events) => {
        const running = new Map<string, () => void>()
        const most = { host: 0, site: 0 }
        const count = (part: string) => [...running.keys()].filter((u) => u.includes(part)).length
        const gate = createGate<{ responded: boolean }>({
          requestMs: 2_000,
          firstPerHost: 1,
          send: ({ href, host }, signal) => {
            let settle: (answer: { responded: boolean }) => void = () => undefined
            const answer = new Promise<{ responded: boolean }>((resolve) => {
              settle = resolve
            })
            running.set(href, () => settle({ responded: true }))
            signal.addEventListener('abort', () => running.delete(href))
            most.host = Math.max(most.host, count(host))
            most.site = Math.max(most.site, count(host.split('.').slice(1).join('.')))
            return answer
          },
        })
        let open = 0
        for (const each of events) {
          if ('ask' in each) {
            const [site, host, path] = each.ask
            open += 1
            const url = new URL(`https://h${host}.s${site}.example/${path}`)
            const ended = () => {
              open -= 1
            }
            gate(url, each.rank as Rank).then(ended, ended)
          } else if ('end' in each) {
            const [href, end] = [...running][each.end] ?? []
            running.delete(href ?? '')
            end?.()
          } else await vi.advanceTimersByTimeAsync(each.wait)
          await vi.advanceTimersByTimeAsync(0)
          expect(most.host).toBeLessThanOrEqual(4)
          expect(most.site).toBeLessThanOrEqual(8)
        }
        await vi.advanceTimersByTimeAsync(7_000)
        expect([open, vi.getTimerCount()]).toEqual([0, 0])
      }),
      { numRuns: 100 },
    )
  })
})
