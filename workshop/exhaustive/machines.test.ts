import { describe, expect, test } from 'vitest'
import { isLong } from '../../test/support/runs.js'
import { grantMachine } from './grant.js'
import { processesOf } from './processes.js'
import { type Found, search, told } from './search.js'

/** The number of steps that the searches go in `npm run test:long` and in `npm test`. */
const depthMax = isLong ? 12 : 5

/** Two tokens have several times as many states at the same depth. */
const depthMaxOfSets = isLong ? 10 : 5

function expectLaws(found: Found, depth = depthMax): void {
  console.log(told(found))
  expect(found.broken).toBeUndefined()
  expect(found.depth === depth || found.complete).toBe(true)
}

describe('two processes keep every law in every state of a grant within reach', () => {
  test.each([
    { kind: 'poll' },
    { kind: 'redirect', keys: true },
    { kind: 'at once', amends: true, windows: 2 },
    { kind: 'at once', keys: true },
    { kind: 'at once', replays: 'signature' },
    { kind: 'at once', replays: 'nonce' },
  ] as const)('%j', (setting) => {
    expectLaws(search(processesOf(grantMachine(setting)), depthMax))
  })

  test.each(['at once', 'poll'] as const)('two tokens, %s', (kind) => {
    const machine = grantMachine({ kind, labels: ['a', 'b'] })
    expectLaws(search(processesOf(machine), depthMaxOfSets), depthMaxOfSets)
  })
})
