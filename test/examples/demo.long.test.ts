import { afterAll, describe, expect, test } from 'vitest'
import { adapters } from '../../examples/wallet/start.js'
import { exited, killPrograms, run } from './program.js'

afterAll(killPrograms)

describe('the demo', () => {
  test.each(Object.keys(adapters))('runs without errors on %s', async (adapter) => {
    const { printed, ended } = run('examples/demo/main.ts', { ADAPTER: adapter })
    expect(await ended, printed.err).toEqual(exited)
    expect(printed.out).toContain(`A wallet on ${adapter}`)
    expect(printed.out).toContain('Everything worked as expected.')
    expect(printed.err).toBe('')
  })
})
