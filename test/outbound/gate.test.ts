import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createGate } from '../../src/outbound/gate.js'

const host = 'shop.example'
const limits = { activeMax: 2, waitingMax: 8, keysMax: 256 }

/** Requests that the test ends in any order. */
function heldRequests() {
  const started: string[] = []
  const ends = new Map<string, { resolve(value: string): void; reject(error: Error): void }>()
  return {
    started,
    request: (name: string) => () => {
      started.push(name)
      return new Promise<string>((resolve, reject) => ends.set(name, { resolve, reject }))
    },
    end: (name: string) => ends.get(name)?.resolve(`answer of ${name}`),
    fail: (name: string) => ends.get(name)?.reject(new Error(`failure of ${name}`)),
  }
}

/** Waits until pending promises have settled. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `r${i + 1}`)
}

describe('requests to one host', () => {
  test('run two at a time, and the next one starts when one has ended', async () => {
    const gate = createGate(limits)
    const { started, request, end } = heldRequests()
    const answers = names(4).map((name) => gate.run(host, request(name)))
    await turn()
    expect(started).toEqual(['r1', 'r2'])
    end('r2')
    await turn()
    expect(started).toEqual(['r1', 'r2', 'r3'])
    end('r1')
    end('r3')
    await turn()
    end('r4')
    expect(await Promise.all(answers)).toEqual(names(4).map((name) => `answer of ${name}`))
  })

  test('wait in order of arrival', async () => {
    const gate = createGate(limits)
    const { started, request, end } = heldRequests()
    const answers = names(10).map((name) => gate.run(host, request(name)))
    for (const name of names(10)) {
      await turn()
      end(name)
    }
    await Promise.all(answers)
    expect(started).toEqual(names(10))
  })

  test('are rejected immediately when two run and eight wait', async () => {
    const gate = createGate(limits)
    const { started, request, end } = heldRequests()
    const answers = names(10).map((name) => gate.run(host, request(name)))
    await expect(gate.run(host, request('one too many'))).rejects.toThrow('too many')
    for (const name of names(10)) {
      await turn()
      end(name)
    }
    await Promise.all(answers)
    expect(started).not.toContain('one too many')
    const after = gate.run(host, request('after'))
    await turn()
    end('after')
    expect(await after).toBe('answer of after')
  })

  test('release their slot when they fail', async () => {
    const gate = createGate(limits)
    const { started, request, end, fail } = heldRequests()
    const answers = names(3).map((name) => gate.run(host, request(name)))
    const failures = Promise.allSettled(answers)
    await turn()
    fail('r1')
    await turn()
    expect(started).toEqual(['r1', 'r2', 'r3'])
    fail('r2')
    end('r3')
    expect((await failures).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
    ])
    const after = names(2).map((name) => gate.run(host, async () => name))
    expect(await Promise.all(after)).toEqual(names(2))
  })

  test('release their slot when they throw synchronously', async () => {
    const gate = createGate(limits)
    const thrower = () => {
      throw new Error('at once')
    }
    for (let i = 0; i < 5; i++) await expect(gate.run(host, thrower)).rejects.toThrow('at once')
    expect(await gate.run(host, async () => 'fine')).toBe('fine')
  })

  test('do not delay requests to other hosts or other ports', async () => {
    const gate = createGate(limits)
    const { request } = heldRequests()
    for (const name of names(10)) void gate.run(host, request(name))
    expect(await gate.run('other.example', async () => 'other host')).toBe('other host')
    expect(await gate.run(`${host}:8443`, async () => 'other port')).toBe('other port')
  })

  test('never run more than two at a time, and all accepted requests end', async () => {
    const events = fc.array(fc.constantFrom('begin', 'end', 'fail') as fc.Arbitrary<string>, {
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(events, async (script) => {
        const gate = createGate(limits)
        const running: { resolve(): void; reject(error: Error): void }[] = []
        const outcomes: Promise<unknown>[] = []
        for (const event of script) {
          if (event === 'begin') {
            const request = () =>
              new Promise<void>((resolve, reject) => running.push({ resolve, reject }))
            outcomes.push(gate.run(host, request).catch(() => undefined))
          } else if (event === 'end') running.shift()?.resolve()
          else running.pop()?.reject(new Error('failed'))
          await turn()
          expect(running.length).toBeLessThanOrEqual(2)
        }
        while (running.length > 0) {
          running.shift()?.resolve()
          await turn()
        }
        await Promise.all(outcomes)
      }),
      { numRuns: 100 },
    )
  })
})

describe('requests to many hosts', () => {
  test('run 256 at a time, and the next one is rejected until one has ended', async () => {
    const gate = createGate(limits)
    const { request, end } = heldRequests()
    const running = names(256).map((name) => gate.run(`${name}.example`, request(name)))
    await expect(gate.run(host, request('one too many'))).rejects.toMatchObject({
      code: 'ERR_GATE_FULL',
    })
    await turn()
    end('r1')
    await turn()
    expect(await gate.run(host, async () => 'now')).toBe('now')
    for (const name of names(256)) end(name)
    await Promise.all(running)
  })

  test('leave nothing behind: a key counts only while its requests run', async () => {
    const gate = createGate({ activeMax: 1, waitingMax: 0, keysMax: 1 })
    for (const name of names(1_000)) expect(await gate.run(name, async () => name)).toBe(name)
  })
})
